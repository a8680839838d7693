// Package fileshare reconciles FileShares: it decides where declared directories
// live and writes their ShareDirectories, makes the ready-made PersistentVolume and
// claim, reports what a share still waits for, and takes a share apart in the order that loses nothing.
//
// reconciler.go reads as observe, decide, apply, report. decide.go, directories.go, claim.go,
// status.go and teardown.go are pure. The package must not import another controller: it meets the others
// (FileServer, data servers, namespace servers) in API objects only.
package fileshare
