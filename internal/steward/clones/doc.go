// Package clones makes the Ceph subvolume of a share that starts as a copy of a snapshot. It decides the next step (step.go)
// by what Ceph has under the subvolume's name and by whether the copy was begun (status.cloneBeginTime of the ShareStorage),
// and takes it (clone.go). The steward, which runs it, writes to the API.
package clones
