package clones

// finding is what Ceph has under the name of a subvolume that is to be a clone.
type finding string

const (
	// absent: nothing.
	absent finding = "absent"
	// foreign: a subvolume that is no clone.
	foreign finding = "foreign"
	// copying: a clone that Ceph is at, or will be.
	copying finding = "copying"
	// complete: a clone that can be used.
	complete finding = "complete"
	// failed: a clone of which nothing more will come.
	failed finding = "failed"
)

// step is what is to be done next.
type step string

const (
	// begin: say that it is about to be made. What is found without that is somebody else's.
	begin step = "begin"
	// start: have Ceph copy.
	start step = "start"
	// wait: Ceph copies.
	wait step = "wait"
	// use: it is there.
	use step = "use"
	// refuse: there is something of its name that was not begun for this share.
	refuse step = "refuse"
	// fail: say that nothing will come of it.
	fail step = "fail"
	// cancel: have Ceph end the copying.
	cancel step = "cancel"
	// discard: remove what there is of it.
	discard step = "discard"
	// leave: nothing is there of this share's.
	leave step = "leave"
)

// next is the step for a place that was never used.
func next(begun bool, found finding) step {
	switch {
	case found == absent && !begun:
		return begin
	case found == absent:
		return start
	case !begun || found == foreign:
		return refuse
	case found == copying:
		return wait
	case found == failed:
		return fail
	}
	return use
}

// last is the step for such a place whose share is deleted. A copy that is not whole was never anybody's data, so it goes, whatever is to become of the
// share's; a whole one is the share's data.
func last(begun bool, found finding) step {
	switch {
	case !begun || found == absent || found == foreign:
		return leave
	case found == copying:
		return cancel
	case found == failed:
		return discard
	}
	return use
}
