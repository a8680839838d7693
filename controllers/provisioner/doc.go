// Package provisioner turns PersistentVolumeClaims of StorageClasses with the provisioner howdah.io/share into FileShares of
// their own, with a PersistentVolume for each, and takes both away as the volume's reclaim policy says.
//
// reconciler.go reads as observe, decide, execute, tell. parameters.go, path.go, claim.go, objects.go and decide.go are pure. Everything of one
// claim goes by one name, naming.ProvisionedVolume of its UID, which is also what the controller's queue holds. The package must
// not import another controller: it meets that of FileShares in FileShares.
package provisioner
