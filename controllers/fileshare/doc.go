// Package fileshare reconciles FileShares: it decides where declared directories live and writes their ShareDirectories, writes the share's exports, its place in
// the storage and its attachment, makes the ready-made PersistentVolume and claim, reports what a share still waits for, and takes a share apart in the order
// that loses nothing.
//
// reconciler.go reads as observe, decide, execute, report. decide.go and what it calls are pure; a plan gives its writes as stages of apply.Change, and
// apply.Execute writes them. The volume and the claim, which users may own parts of, are written by apply.Applier. teardown.go observes and writes step by step:
// each step needs that the one before is done, and looks past the cache for what would be left.
//
// One thing is remembered between passes: what the limits gave to a share and its status does not show yet (ledger). A restart loses nothing, because
// the status has it by then or the share asks again. What was applied is remembered by the Applier. Both forget a share that is gone.
//
// The package must not import another controller: it meets the others (FileServer, data servers, namespace servers) in API objects only.
package fileshare
