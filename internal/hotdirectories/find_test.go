package hotdirectories

import (
	"fmt"
	"net/netip"
	"testing"
	"time"
)

var start = time.Unix(1e9, 0)

func TestADirectoryIsFoundAndCoolsDown(t *testing.T) {
	on := Search{Clients: 8, Servers: 4}
	for name, tc := range map[string]struct {
		search  Search
		clients int
		found   int
		// age is how old the record is; negative: there is none.
		age            time.Duration
		record, cooled bool
	}{
		"too few clients":                 {search: on, clients: 7, age: -1},
		"enough":                          {search: on, clients: 8, age: -1, record: true},
		"enough, and one place is left":   {search: on, clients: 8, found: MaxFound - 1, age: -1, record: true},
		"enough, and no place is left":    {search: on, clients: 500, found: MaxFound, age: -1},
		"none are looked for":             {clients: 500, age: -1},
		"one data server":                 {search: Search{Clients: 2, Servers: 1}, clients: 500, age: -1},
		"hot, just recorded":              {search: on, clients: 500, found: MaxFound, age: RenewAfter - time.Second},
		"hot, recorded a while ago":       {search: on, clients: 8, found: MaxFound, age: RenewAfter, record: true},
		"hot, with fewer clients":         {search: on, clients: 7, found: 1, age: RenewAfter},
		"hot, without clients for long":   {search: on, found: 1, age: HotFor},
		"cooled down":                     {search: on, found: 1, age: HotFor + time.Second, cooled: true},
		"enough when it should cool down": {search: on, clients: 8, found: 1, age: HotFor + time.Second, record: true, cooled: true},
		"no longer looked for":            {clients: 500, found: 1, age: time.Second, cooled: true},
	} {
		now, last := start.Add(24*time.Hour), time.Time{}
		if tc.age >= 0 {
			last = now.Add(-tc.age)
		}
		if got := tc.search.Records(tc.clients, last, now, func() int { return tc.found }); got != tc.record {
			t.Errorf("%s: recorded: %t", name, got)
		}
		if got := tc.search.HasCooled(last, now); got != tc.cooled {
			t.Errorf("%s: cooled: %t", name, got)
		}
	}
}

func TestARecordOfAClockThatIsAheadDoesNotKeepADirectoryHot(t *testing.T) {
	s := Search{Clients: 2, Servers: 2}
	if s.HasCooled(start.Add(time.Minute), start) {
		t.Error("a minute ahead: cooled")
	}
	if !s.HasCooled(start.Add(HotFor+time.Second), start) {
		t.Error("more than an hour ahead: hot until then")
	}
}

// The time that the rule allows between two changes of a directory, whatever clients do: it is hot for an hour at least.
func TestADirectoryDoesNotFlap(t *testing.T) {
	s := Search{Clients: 3, Servers: 2}
	last, changes := time.Time{}, []time.Time{}
	for now, i := start, 0; now.Before(start.Add(24 * time.Hour)); now, i = now.Add(30*time.Second), i+1 {
		clients := 2 + i%2 // Around the limit all the time, and then none for two hours.
		if i/240%2 == 1 {
			clients = 0
		}
		if s.HasCooled(last, now) {
			last, changes = time.Time{}, append(changes, now)
		}
		if s.Records(clients, last, now, func() int { return 0 }) {
			if last.IsZero() {
				changes = append(changes, now)
			}
			last = now
		}
	}
	if len(changes) != 12 {
		t.Errorf("%d changes in a day of two hours with clients and two without, want 12", len(changes))
	}
	for i := 1; i < len(changes); i += 2 {
		if hot := changes[i].Sub(changes[i-1]); hot < HotFor {
			t.Errorf("hot for %s only", hot)
		}
	}
}

// enters has a client ask as Linux does when it mounts a directory.
func enters(v *Visits, directory string, i int, now time.Time) int {
	v.Look(directory, client(i), now)
	v.Note(directory, client(i), now)
	n, _ := v.Note(directory, client(i), now.Add(20*time.Millisecond))
	return n
}

// Linux looks the name up before it asks, each time it shows the directory. That can be often, if the directory above changes.
func TestAVisitorIsNotWhoListsOften(t *testing.T) {
	var v Visits
	now := start
	for range 100 {
		now = now.Add(time.Millisecond)
		v.Look("d", client(1), now)
		if n, enters := v.Note("d", client(1), now); n != 0 || enters {
			t.Fatalf("%s after the first list %d count", now.Sub(start), n)
		}
	}
	// Two processes of a client list it at the same moment.
	for range 2 {
		v.Look("d", client(2), now)
	}
	for range 2 {
		if n, enters := v.Note("d", client(2), now); n != 0 || enters {
			t.Fatalf("two lists at the same moment: %d count", n)
		}
	}
	// One lists it while the other enters it.
	for range 2 {
		v.Look("d", client(2), now)
	}
	for i, want := range []int{0, 0, 1} {
		if n, _ := v.Note("d", client(2), now); n != want {
			t.Fatalf("a list and an entry at the same moment: %d count after question %d", n, i+1)
		}
	}
	// A look that no question followed, because its process was killed, counts for a moment only.
	v.Look("d", client(3), now)
	if n := enters(&v, "d", 3, now.Add(entryGap+time.Millisecond)); n != 2 {
		t.Errorf("after a look without a question %d count, want 2", n)
	}
}

func TestAVisitorIsWhoEnters(t *testing.T) {
	var v Visits
	for i := range 50 {
		if n, _ := v.Note("d", client(i), start); n != 0 {
			t.Fatalf("%d clients that have only listed it count", n)
		}
	}
	if _, enters := v.Note("d", client(60), start); enters {
		t.Error("who asks once enters")
	}
	if n, enters := v.Note("d", client(60), start.Add(entryGap)); n != 1 || !enters {
		t.Errorf("who asks twice does not enter: %d", n)
	}
	v = Visits{}
	for i := range 5 {
		if n := enters(&v, "d", 100+i, start); n != i+1 {
			t.Errorf("%d have entered, and %d count", i+1, n)
		}
	}
	if n := enters(&v, "d", 100, start); n != 5 {
		t.Errorf("one enters again: %d", n)
	}
	if n := enters(&v, "other", 100, start); n != 1 {
		t.Errorf("another directory: %d", n)
	}
	if n, _ := v.Note("d", netip.AddrFrom16(client(100).As16()), start); n != 5 {
		t.Errorf("the same client, its address written otherwise: %d", n)
	}
	// Nor does who asks again and again without a look, but slowly.
	for i := range 10 {
		if n, _ := v.Note("listed", client(1), start.Add(time.Duration(i)*(entryGap+time.Second))); n != 0 {
			t.Errorf("%d count", n)
		}
	}
}

func TestAClientCountsForAsLongAsItAsks(t *testing.T) {
	var v Visits
	enters(&v, "d", 1, start)
	now := start
	for range 6 { // An hour, once every eleven minutes.
		now = now.Add(11 * time.Minute)
		if n, _ := v.Note("d", client(1), now); n != 1 {
			t.Fatalf("%s later %d count", now.Sub(start), n)
		}
	}
	now = now.Add(Lately + time.Second)
	if n, _ := v.Note("d", client(2), now); n != 0 {
		t.Errorf("the client has not asked for %s, and %d count", Lately, n)
	}
	if n, _ := v.Note("d", client(1), now); n != 0 {
		t.Errorf("it asks once, as for a list, and %d count", n)
	}
}

func TestVisitsAreBounded(t *testing.T) {
	var v Visits
	for i := range MaxKept {
		v.Note(fmt.Sprint(i%1000), client(i), start)
	}
	if n := enters(&v, "late", 70000, start.Add(time.Second)); n != 0 || v.kept.count != MaxKept {
		t.Errorf("one more than there is room for: %d count, %d are kept", n, v.kept.count)
	}
	if n := enters(&v, "late", 70000, start.Add(Lately+time.Minute+time.Second)); n != 1 {
		t.Errorf("when others are forgotten: %d", n)
	}
	total := 0
	for _, known := range v.kept.directories {
		total += len(known)
	}
	if total != v.kept.count || total != 1 {
		t.Errorf("%d are counted, %d are there, want 1", v.kept.count, total)
	}
}

// Whoever has one address of IPv6 has all of its /64.
func TestTheAddressesOfOneSubnetDoNotUseUpTheRoomForVisits(t *testing.T) {
	var v Visits
	for i := range MaxKept + MaxKept/4 {
		v.Note(fmt.Sprint(i%30000), netip.AddrFrom16([16]byte{0xfd, 13: byte(i >> 16), 14: byte(i >> 8), 15: byte(i)}), start)
	}
	for i := range 8 {
		if n := enters(&v, "late", 70000+i, start.Add(time.Second)); n != i+1 {
			t.Errorf("%d clients of other subnets have entered, and %d count", i+1, n)
		}
	}
}
