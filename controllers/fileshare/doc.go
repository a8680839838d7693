// Package fileshare reconciles FileShares. It places declared directories and writes their ShareDirectories. It writes
// the share's exports, storage and attachment, and the ready-made PersistentVolume and claim. It reports what a share
// waits for, and deletes a share's parts in an order that loses no data.
//
// A pass observes, decides, executes and reports (reconciler.go). decide.go and what it calls are pure. A plan returns
// its writes as stages of apply.Change, which apply.Execute writes. apply.Applier writes the volume and the claim,
// because users may own parts of them. teardown.go observes and writes step by step: each step needs the result of the
// one before, and reads past the cache.
//
// Two things are remembered between passes: grants of limits that a share's status does not show yet (ledger), and what
// was applied (Applier). A restart loses nothing. Both forget a deleted share.
//
// The package must not import another controller. It meets other parts (FileServer, data servers, namespace servers)
// only in API objects.
package fileshare
