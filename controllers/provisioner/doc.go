// Package provisioner turns PersistentVolumeClaims of StorageClasses with the provisioner howdah.io/share into FileShares of
// their own, with a PersistentVolume for each, and takes both away as the volume's reclaim policy says.
//
// reconciler.go reads as observe, decide, execute, notify. Observation decides nothing: a decision that takes something away names its doubt, which is read past
// the caches, and the pass decides again. parameters.go, path.go, claim.go, objects.go and decide.go are pure. Everything of one claim has one name,
// naming.ProvisionedVolume of its UID, which is also what the controller's queue holds.
//
// Two things are remembered between passes: the last refusal in a claim's events, so that it comes once (notified), and directories that were placed and
// that the cache lacks so far (assumed). A restart loses both without harm.
//
// The package must not import another controller: it meets the one of FileShares in FileShares.
package provisioner
