package filesharesnapshotschedule

import (
	"cmp"
	"slices"
	"time"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/controllers/conditions"
)

const (
	// maxRemovals is how many snapshots a schedule deletes at a time, and removalPause how long it then waits. A wrong
	// clock or a mistake in spec.retention deletes at most five a minute, so there is time to correct it.
	maxRemovals  = 5
	removalPause = time.Minute
)

// made is a snapshot of the schedule that was Ready at some time.
type made struct {
	name string
	// at is its moment.
	at time.Time
	// ready: it can be read.
	ready bool
}

// keep is the retention: a number of the newest snapshots, and those not older than an age. 0 keeps none.
type keep struct {
	last int
	age  time.Duration
}

// retire returns the snapshots to delete now, and when there may be more to delete; zero if never.
func retire(o *observed, when calendar) (remove []*v1alpha1.FileShareSnapshot, next time.Time) {
	var all []made
	for _, snapshot := range o.snapshots {
		if snapshot.Status.ReadyTime != nil {
			all = append(all, made{snapshot.Name, momentOf(snapshot, o.now), conditions.IsTrue(snapshot.Status.Conditions, v1alpha1.ConditionReady)})
		}
	}
	retention := &o.schedule.Spec.Retention
	names, next := expired(all, certainTime(o, when), keep{int(retention.KeepLast), time.Duration(retention.KeepForSeconds) * time.Second})
	if !next.After(o.now) {
		next = time.Time{} // The clocks do not agree on it. The next snapshot causes the next pass.
	}
	if len(names) == 0 {
		return nil, next
	}
	if o.pause > 0 {
		return nil, o.now.Add(o.pause)
	}
	if len(names) > maxRemovals {
		names, next = names[:maxRemovals], o.now.Add(removalPause)
	}
	for _, name := range names {
		at := slices.IndexFunc(o.snapshots, func(s *v1alpha1.FileShareSnapshot) bool { return s.Name == name })
		remove = append(remove, o.snapshots[at])
	}
	return remove, next
}

// expired returns the names of snapshots that do not stay, oldest first, and when the next one expires; zero if none
// does. The newest readable snapshot always stays, so that a schedule that makes no more snapshots keeps one.
func expired(all []made, now time.Time, keep keep) (names []string, next time.Time) {
	newestFirst := slices.Clone(all)
	slices.SortFunc(newestFirst, func(a, b made) int { return cmp.Or(b.at.Compare(a.at), cmp.Compare(b.name, a.name)) })
	newestReady := slices.IndexFunc(newestFirst, func(m made) bool { return m.ready })
	for i, m := range newestFirst {
		switch end := m.at.Add(keep.age); {
		case i < keep.last || i == newestReady:
		case keep.age > 0 && now.Before(end):
			next = end // The last of these is the oldest, which is the next to go.
		default:
			names = append(names, m.name)
		}
	}
	slices.Reverse(names)
	return names, next
}
