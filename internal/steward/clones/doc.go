// Package clones makes in Ceph the subvolume of a share that is to begin as a copy of a snapshot. It decides by what Ceph has under the subvolume's name, and
// by whether the copy was begun (status.cloneBeginTime of the ShareStorage), what is to be done next (step.go), and does it (clone.go). It writes nothing to
// the API: the steward of a FileServer, which runs it, does.
package clones
