package filesharesnapshotschedule

import (
	"cmp"
	"slices"
	"time"
)

// made is a snapshot that the schedule made and that was there once.
type made struct {
	name string
	// at is its moment.
	at time.Time
	// ready: it can be read.
	ready bool
}

// keep is what stays: the newest so many, and what is not older than that. 0 keeps nothing.
type keep struct {
	last int
	age  time.Duration
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
