package snapshots

import (
	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
)

// step is what is to be done next for a ShareSnapshot.
type step string

const (
	// nothing: it is as it should be.
	nothing step = "nothing"
	// begin: say that it is about to be made. What is found without that is somebody else's.
	begin step = "begin"
	// create: make it.
	create step = "create"
	// describe: it is there; say where and of when.
	describe step = "describe"
	// refuse: there is one of its name that is not Howdah's.
	refuse step = "refuse"
	// remove: remove it from Ceph.
	remove step = "remove"
	// release: it is not there; say that the object may go.
	release step = "release"
)

// next is the step for a ShareSnapshot, if Ceph has one of its name or not. It needs no answer of Ceph for one that is as it should be (isSettled).
func next(snapshot *internalv1.ShareSnapshot, exists bool) step {
	begun := snapshot.Status.BeginTime != nil
	if snapshot.DeletionTimestamp != nil {
		if begun && exists {
			return remove
		}
		return release
	}
	switch {
	case isSettled(snapshot):
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

// isSettled: it was made and described. It is not looked at again: a snapshot does not change.
func isSettled(snapshot *internalv1.ShareSnapshot) bool {
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
