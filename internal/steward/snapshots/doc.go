// Package snapshots makes and removes the Ceph snapshots that ShareSnapshots ask for, and reports in their statuses. It
// decides the next step (step.go) by what Ceph has and by status.beginTime, and takes it (reconciler.go). The steward runs it.
package snapshots
