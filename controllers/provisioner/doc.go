// Package provisioner makes a FileShare and a PersistentVolume for each PersistentVolumeClaim of a StorageClass with
// the provisioner howdah.io/share, and deletes both by the volume's reclaim policy.
//
// A pass observes, decides, executes and notifies (reconciler.go). Observation decides nothing: a decision that deletes
// something names its doubt, which is read past the caches, and the pass decides again. parameters.go, path.go,
// claim.go, objects.go and decide.go are pure. All objects of a claim have one name, naming.ProvisionedVolume of its
// UID; the controller's queue has these names.
//
// Two things are remembered between passes: the last refusal in a claim's events, so that there is one event
// (notified), and placed directories that the cache does not show yet (assumed). A restart may lose both.
//
// The package must not import another controller.
package provisioner
