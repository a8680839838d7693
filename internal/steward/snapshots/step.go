package snapshots

import (
	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
)

// step is the next step for a ShareSnapshot.
type step string

const (
	// nothing: the snapshot is made and described.
	nothing step = "nothing"
	// begin: record that the snapshot is about to be made. A snapshot found without this record was not made by Howdah.
	begin step = "begin"
	// create: make the snapshot.
	create step = "create"
	// describe: the snapshot exists; report its path and time.
	describe step = "describe"
	// refuse: a snapshot of this name exists that Howdah did not make.
	refuse step = "refuse"
	// remove: remove the snapshot from Ceph.
	remove step = "remove"
	// release: the snapshot does not exist; report that the object may be deleted.
	release step = "release"
)

// next returns the step for a ShareSnapshot. exists says whether Ceph has a snapshot of its name.
func next(snapshot *internalv1.ShareSnapshot, exists bool) step {
	begun := snapshot.Status.BeginTime != nil
	if snapshot.DeletionTimestamp != nil {
		if begun && exists {
			return remove
		}
		return release
	}
	switch {
	case isComplete(snapshot):
		return nothing
	case exists && begun:
		return describe
	case exists:
		return refuse
	case begun:
		return create
	}
	return begin
}

// isComplete reports whether the snapshot was made and described. It is not checked again, because a snapshot does not change.
func isComplete(snapshot *internalv1.ShareSnapshot) bool {
	if snapshot.DeletionTimestamp != nil {
		return false
	}
	for _, c := range snapshot.Status.Conditions {
		if c.Type == v1alpha1.ConditionReady && c.Status == "True" {
			return true
		}
	}
	return false
}
