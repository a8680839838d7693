package clones

// finding is what Ceph has under the clone's name.
type finding string

const (
	// absent: nothing.
	absent finding = "absent"
	// foreign: a subvolume that is not a clone.
	foreign finding = "foreign"
	// copying: a clone that Ceph copies now or later.
	copying finding = "copying"
	// complete: a clone that can be used.
	complete finding = "complete"
	// failed: a clone that Ceph has given up or that was canceled.
	failed finding = "failed"
)

// step is the next step.
type step string

const (
	// begin: record that the clone is about to be made. A subvolume found without this record belongs to another share.
	begin step = "begin"
	// start: have Ceph copy.
	start step = "start"
	// wait: Ceph copies.
	wait step = "wait"
	// use: the clone is complete.
	use step = "use"
	// refuse: a subvolume of this name exists that was not begun for this share.
	refuse step = "refuse"
	// fail: report that the copy failed.
	fail step = "fail"
	// cancel: make Ceph stop the copy.
	cancel step = "cancel"
	// discard: remove the incomplete copy.
	discard step = "discard"
	// leave: no subvolume belongs to this share.
	leave step = "leave"
)

// next returns the step for a subvolume that was never used.
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

// last returns the step if the share is deleted. An incomplete copy was never the share's data, so it is removed whatever the
// data policy is; a complete one is the share's data.
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
