package hotdirectories

import (
	"net/netip"
	"time"
)

const (
	// Lately is how long a client counts after it asked last. Linux asks again at least every eleven minutes for a path that it uses.
	Lately = 15 * time.Minute
	// HotFor is how long a directory is hot after it last had enough clients.
	HotFor = time.Hour
	// RenewAfter is how old the record of that may get before it is written again.
	RenewAfter = 20 * time.Minute
	// MaxFound is how many directories of a share can be hot because they were found.
	MaxFound = 16
	// entryGap is the longest time between the two questions by which a client enters a directory (Visits).
	entryGap = 5 * time.Second
	// sweepEvery bounds the work when there is no room for visits.
	sweepEvery = time.Minute
)

// Search is when directories of a share are found to be hot (spec.findHotDirectories). The zero value finds none.
type Search struct {
	// Clients is how many clients a directory must have.
	Clients int
	// Servers is how many data servers then serve it.
	Servers int
}

// IsOn reports whether directories are looked for.
func (s Search) IsOn() bool { return s.Clients > 0 && s.Servers > 1 }

// Records reports whether it is to be recorded that a directory has enough clients now. last is when that was recorded last, zero if the directory
// is not hot. found is asked how many directories of the share are hot because they were found.
func (s Search) Records(clients int, last, now time.Time, found func() int) bool {
	switch {
	case !s.IsOn() || clients < s.Clients:
		return false
	case last.IsZero():
		return found() < MaxFound
	}
	return now.Sub(last) >= RenewAfter
}

// HasCooled reports whether a directory that was found is to have one data server again. A record from a clock that was far ahead counts for nothing.
func (s Search) HasCooled(last, now time.Time) bool {
	return !last.IsZero() && (!s.IsOn() || now.Sub(last) > HotFor || last.Sub(now) > HotFor)
}

// Visits are the clients that have entered directories, as one namespace server knows them. The zero value has none. It has no lock.
//
// Linux asks where a directory is once to show it (ls -l of the directory above, again whenever that has changed) and once every ten minutes when it
// goes through it. Each time it looks the name up first, and learns that what has the name is elsewhere. To mount it, it asks twice more, one
// directly after the other: it looks the name up again and asks, and then asks for the locations without a look. So a client that asks within entryGap,
// and has not looked in between, enters; and one that has entered counts for as long as it asks again in time. Several processes of a client can do
// so at the same moment: looks are counted.
type Visits struct {
	kept  Kept[string, visit]
	swept time.Time
}

type visit struct {
	asked   time.Time
	entered bool
	// looks are those that were not followed by a question yet, the last one at looked.
	looks  int
	looked time.Time
}

// open are the looks that can still be followed by a question.
func (v visit) open(now time.Time) int {
	if now.Sub(v.looked) > entryGap {
		return 0
	}
	return v.looks
}

// Look counts that a client looked up the name of a directory, and learned that it is elsewhere.
func (v *Visits) Look(directory string, client netip.Addr, now time.Time) {
	client = client.Unmap().WithZone("")
	before := v.kept.Of(directory)[client]
	before.looks, before.looked = before.open(now)+1, now
	v.keep(directory, client, before, now)
}

// Note counts that a client got the location of a directory, and gives how many clients have entered it and asked lately, and whether this one enters it
// now. If there are too many visits to remember, new ones are not counted: then a directory stays as it is.
func (v *Visits) Note(directory string, client netip.Addr, now time.Time) (clients int, enters bool) {
	client = client.Unmap().WithZone("")
	before := v.kept.Of(directory)[client]
	looks, gap := before.open(now), now.Sub(before.asked)
	if gap > Lately {
		before.entered = false
	}
	enters = looks == 0 && gap <= entryGap
	v.keep(directory, client, visit{asked: now, entered: before.entered || enters, looks: max(looks-1, 0), looked: before.looked}, now)
	return len(v.Entered(directory, now)), enters
}

// keep remembers a visit, if there is room.
func (v *Visits) keep(directory string, client netip.Addr, now visit, at time.Time) {
	if !v.kept.HasRoom(directory, client) {
		v.sweep(at)
	}
	if v.kept.HasRoom(directory, client) {
		v.kept.Keep(directory, client, now)
	}
}

// Entered are the clients that have entered a directory and asked lately.
func (v *Visits) Entered(directory string, now time.Time) (clients []netip.Addr) {
	for client, visit := range v.kept.Of(directory) {
		if visit.entered && now.Sub(visit.asked) <= Lately {
			clients = append(clients, client)
		}
	}
	return clients
}

// sweep forgets clients that have not asked lately.
func (v *Visits) sweep(now time.Time) {
	if now.Sub(v.swept) < sweepEvery {
		return
	}
	v.swept = now
	v.kept.Forget(func(_ netip.Addr, visit visit) bool { return now.Sub(visit.asked) > Lately })
}
