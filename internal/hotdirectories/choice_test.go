package hotdirectories

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"
)

func servers(n int) (names []string) {
	for i := range n {
		names = append(names, fmt.Sprint("training-", i))
	}
	return names
}

func client(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}) }

func TestServingHasTheOwnerFirstAndAsManyAsAskedFor(t *testing.T) {
	for name, tc := range map[string]struct {
		others  int
		n, want int
	}{
		"only the owner":                {4, 1, 1},
		"two of five":                   {4, 2, 2},
		"all":                           {4, 5, 5},
		"more than there are":           {2, 64, 3},
		"there is no other":             {0, 5, 1},
		"not even one (refused before)": {4, 0, 1},
	} {
		all := servers(tc.others + 1)
		got := Serving("d", all[0], all[1:], tc.n)
		slices.Sort(got[1:])
		if len(got) != tc.want || got[0] != "training-0" || len(slices.Compact(slices.Clone(got))) != len(got) {
			t.Errorf("%s: %v, want %d with the owner first", name, got, tc.want)
		}
	}
	if got := Serving("d", "training-0", servers(3), 3); len(got) != 3 {
		t.Errorf("an owner among the others counts once: %v", got)
	}
}

func TestServingDependsOnTheOrderOfNothing(t *testing.T) {
	all := servers(8)
	want := Serving("d", all[0], all[1:], 4)
	shuffled := slices.Clone(all[1:])
	slices.Reverse(shuffled)
	if got := Serving("d", all[0], shuffled, 4); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if shuffled[0] != "training-7" {
		t.Errorf("the argument was changed: %v", shuffled)
	}
}

func TestOneOfThoseServingChangesWhenADataServerComesOrGoes(t *testing.T) {
	all := servers(9)
	for directory := range 200 {
		name := fmt.Sprint("directory", directory)
		before, after := Serving(name, all[0], all[1:8], 4), Serving(name, all[0], all[1:9], 4)
		if kept := common(before, after); kept < 3 {
			t.Fatalf("%s: %v, then %v", name, before, after)
		}
	}
}

func TestHotDirectoriesAreOnDifferentDataServers(t *testing.T) {
	all := servers(9)
	count := map[string]int{}
	const directories = 1000
	for directory := range directories {
		for _, server := range Serving(fmt.Sprint("directory", directory), all[0], all[1:], 3)[1:] {
			count[server]++
		}
	}
	for _, server := range all[1:] { // Each should have a quarter of two in eight: 250.
		if n := count[server]; n < 200 || n > 300 {
			t.Errorf("%s serves %d of %d directories beside the owner, want about 250", server, n, directories)
		}
	}
}

func TestClientsPreferEachDataServerAsOften(t *testing.T) {
	count := map[string]int{}
	const clients = 2000
	for i := range clients {
		count[Order(servers(5), "d", client(i), nil)[0]]++
	}
	for _, server := range servers(5) {
		if n := count[server]; n < 340 || n > 460 {
			t.Errorf("%s is the first of %d of %d clients, want about 400", server, n, clients)
		}
	}
}

func TestWithoutOneDataServerOnlyItsClientsGoElsewhere(t *testing.T) {
	all := servers(5)
	fewer := slices.Delete(slices.Clone(all), 2, 3)
	moved := map[string]int{}
	for i := range 1000 {
		before, after := Order(all, "d", client(i), nil), Order(fewer, "d", client(i), nil)
		if want := slices.DeleteFunc(slices.Clone(before), func(name string) bool { return name == all[2] }); !slices.Equal(after, want) {
			t.Fatalf("client %d: %v, then %v, want %v", i, before, after, want)
		}
		if before[0] == all[2] {
			moved[after[0]]++
		}
	}
	for _, server := range fewer {
		if moved[server] < 25 {
			t.Errorf("of the clients of %s, %d go to %s", all[2], moved[server], server)
		}
	}
}

func TestOneClientHasOneOrderHoweverItsAddressIsWritten(t *testing.T) {
	want := Order(servers(7), "d", netip.MustParseAddr("10.0.0.9"), nil)
	if got := Order(servers(7), "d", netip.MustParseAddr("::ffff:10.0.0.9"), nil); !slices.Equal(got, want) {
		t.Errorf("mapped: %v, want %v", got, want)
	}
	if a, b := Order(servers(7), "d", netip.MustParseAddr("fe80::9%eth0"), nil), Order(servers(7), "d", netip.MustParseAddr("fe80::9%eth1"), nil); !slices.Equal(a, b) {
		t.Errorf("zones: %v and %v", a, b)
	}
}

func TestTheNextClientGoesWhereFewestAre(t *testing.T) {
	order := []string{"c", "a", "b"}
	for name, tc := range map[string]struct {
		clients map[string]int
		want    string
	}{
		"none yet":             {nil, "c"},
		"as many everywhere":   {map[string]int{"a": 2, "b": 2, "c": 2}, "c"},
		"one is behind":        {map[string]int{"a": 2, "b": 1, "c": 2}, "b"},
		"two are: in order":    {map[string]int{"a": 1, "b": 1, "c": 2}, "a"},
		"one who is not there": {map[string]int{"d": 0, "c": 1, "a": 1, "b": 1}, "c"},
	} {
		if got := order[Choose(order, tc.clients, nil)]; got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
}

// As many clients as data servers are one on each, in whatever order they come: by their order alone they would be on two thirds.
func TestAsManyClientsAsDataServersReachAll(t *testing.T) {
	for _, n := range []int{2, 3, 5, 16} {
		for round := range 50 {
			count := map[string]int{}
			for i := range 3 * n {
				order := Order(servers(n), "d", client(round*100+i), nil)
				count[order[Choose(order, count, nil)]]++
			}
			for _, server := range servers(n) {
				if count[server] != 3 {
					t.Fatalf("%d data servers: %v", n, count)
				}
			}
		}
	}
}

func common(a, b []string) (n int) {
	for _, name := range a {
		if slices.Contains(b, name) {
			n++
		}
	}
	return n
}
