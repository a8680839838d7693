package filesharesnapshotschedule

import (
	"cmp"
	"slices"
	"time"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/controllers/conditions"
)

const (
	// maxRemovals is how many snapshots a schedule deletes at a time, and removalPause how long it waits before it deletes more. Whatever is wrong with a
	// clock or was mistyped in spec.retention takes five a minute at most, and can be put right.
	maxRemovals  = 5
	removalPause = time.Minute
)

// made is a snapshot that the schedule made and that was there once.
type made struct {
	name string
	// at is its moment.
	at time.Time
	// ready: it can be read.
	ready bool
}

// keep is what stays: a number of the newest, and what is not older than an age. 0 keeps nothing.
type keep struct {
	last int
	age  time.Duration
}

// retire are the snapshots that retention does not keep, as many as may be deleted now, and when there may be more to delete; zero if never.
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
		next = time.Time{} // A clock that is not sure of it: the next snapshot brings the next pass.
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

// expired are the names of those that do not stay, the oldest first, and when the next one will have outlived its age; zero if none does. The newest
// that can be read always stays: a schedule that makes none any more must not end with nothing.
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
