// Package snapshots makes and removes in Ceph what ShareSnapshots ask for, and says so in their status. It decides by what Ceph has and by
// status.beginTime what is to be done (step.go), and does it (keeper.go). It knows nothing of who runs it: the steward of a FileServer.
package snapshots
