package hotdirectories

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestTheNearestIsFirstAndTheOrderOfTheOthersStays(t *testing.T) {
	all := servers(6)
	near := map[string]Nearness{"training-4": SameNode, "training-1": SameZone, "training-3": SameZone}
	for i := range 200 {
		plain, got := Order(all, "d", client(i), nil), Order(all, "d", client(i), near)
		if got[0] != "training-4" || near[got[1]] != SameZone || near[got[2]] != SameZone {
			t.Fatalf("client %d: %v", i, got)
		}
		for _, class := range []Nearness{SameZone, Far} {
			of := func(names []string) []string {
				return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return near[name] != class })
			}
			if !slices.Equal(of(plain), of(got)) {
				t.Fatalf("client %d: those that are equally near are %v, and without nearness %v", i, of(got), of(plain))
			}
		}
	}
}

func TestNearnessDecidesBetweenEqualsAndANodeMayHaveOneMore(t *testing.T) {
	for name, tc := range map[string]struct {
		node, zone string // one that is at the client's node, and one in its zone
		clients    map[string]int
		want       string
	}{
		"nothing is known":                    {"", "", map[string]int{"b": 1}, "a"},
		"none yet: the node":                  {"c", "b", nil, "c"},
		"none yet: the zone":                  {"", "b", nil, "b"},
		"the node has one more":               {"c", "", map[string]int{"a": 3, "b": 3, "c": 4}, "c"},
		"the node has two more":               {"c", "", map[string]int{"a": 3, "b": 3, "c": 5}, "a"},
		"the node has too many: the zone":     {"c", "b", map[string]int{"a": 3, "b": 3, "c": 5}, "b"},
		"the zone has one more":               {"", "b", map[string]int{"a": 3, "b": 4, "c": 3}, "a"},
		"the zone has one more than one":      {"", "b", map[string]int{"a": 5, "b": 4, "c": 3}, "c"},
		"the node before a zone with fewer":   {"c", "b", map[string]int{"a": 3, "b": 2, "c": 3}, "c"},
		"by the one with the fewest, not all": {"c", "", map[string]int{"a": 1, "b": 9, "c": 3}, "a"},
	} {
		near := map[string]Nearness{}
		if tc.node != "" {
			near[tc.node] = SameNode
		}
		if tc.zone != "" {
			near[tc.zone] = SameZone
		}
		order := []string{"a", "b", "c"}
		slices.SortStableFunc(order, func(a, b string) int { return int(near[b] - near[a]) })
		if got := order[Choose(order, tc.clients, near)]; got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
}

// However clients lie and in whatever order they come, data servers differ by two at most, and by one if no client is on the node of one.
func TestNearnessNeverGathersClients(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, k := range []int{2, 3, 5, 16} {
		all := servers(k)
		for round := range 200 {
			nodes, limit := round%2 == 0, 1
			if nodes {
				limit = 2
			}
			count := map[string]int{}
			for i := range 8 * k {
				near := map[string]Nearness{}
				for _, server := range all {
					near[server] = Nearness(random.IntN(2)) // Far or SameZone
				}
				// A third of the clients is on the node of the first, as on a node with many addresses.
				switch at := random.IntN(3 * k); {
				case nodes && at < k:
					near[all[0]] = SameNode
				case nodes && at < 2*k:
					near[all[at-k]] = SameNode
				}
				order := Order(all, "d", client(i), near)
				count[order[Choose(order, count, near)]]++
				fewest, most := 8*k, 0
				for _, server := range all {
					fewest, most = min(fewest, count[server]), max(most, count[server])
				}
				if most-fewest > limit {
					t.Fatalf("%d data servers, after %d clients: %v", k, i+1, count)
				}
			}
		}
	}
}

// local has clients come in random orders, and gives which part of those that are on the node of a data server, or in the zone of one, was sent to
// such a one, and the largest number of clients of one data server.
func local(all []string, nearOf []map[string]Nearness, class Nearness) (part float64, most int) {
	random := rand.New(rand.NewPCG(3, 4))
	sent, could := 0, 0
	for range 500 {
		count := map[string]int{}
		for _, i := range random.Perm(len(nearOf)) {
			near := nearOf[i]
			order := Order(all, "d", client(i), near)
			chosen := order[Choose(order, count, near)]
			count[chosen]++
			if slices.Contains(slices.Collect(maps.Values(near)), class) {
				could++
				if near[chosen] == class {
					sent++
				}
			}
		}
		most = max(most, slices.Max(slices.Collect(maps.Values(count))))
	}
	return float64(sent) / float64(could), most
}

// Kernel clients of a node have one address, so eight pods of it are one client.
func TestClientsWithADataServerOnTheirNodeMostlyGetIt(t *testing.T) {
	all := servers(5)
	for name, tc := range map[string]struct {
		others int
		least  float64
		most   int
	}{
		"five nodes, a data server on each": {0, 1, 1},
		"five nodes more":                   {5, 1, 3},
		"as many as a job has":              {35, 1, 9},
	} {
		nearOf := make([]map[string]Nearness, 5+tc.others)
		for i := range all {
			nearOf[i] = map[string]Nearness{all[i]: SameNode}
		}
		part, most := local(all, nearOf, SameNode)
		t.Logf("FIGURE %s: %.2f of the clients on the node of a data server get it; no data server has more than %d of %d", name, part, most, len(nearOf))
		if part < tc.least || most > tc.most {
			t.Errorf("%s: %.2f, want %.2f; one has %d, want %d", name, part, tc.least, most, tc.most)
		}
	}
}

func TestClientsInZonesMostlyGetTheirsAndAllDataServersAreUsed(t *testing.T) {
	all := servers(4)
	inZone := func(zone int) map[string]Nearness {
		return map[string]Nearness{all[2*zone]: SameZone, all[2*zone+1]: SameZone}
	}
	nearOf := make([]map[string]Nearness, 40)
	for i := range nearOf {
		nearOf[i] = inZone(i % 2)
	}
	part, most := local(all, nearOf, SameZone)
	t.Logf("FIGURE 40 clients in two zones with two data servers each: %.2f get one of their zone; no data server has more than %d", part, most)
	if part < 0.75 || most != 10 {
		t.Errorf("%.2f, and one has %d", part, most)
	}
	// All clients are in one zone: its data servers serve half of them, not all.
	for i := range nearOf {
		nearOf[i] = inZone(0)
	}
	if part, most := local(all, nearOf, SameZone); fmt.Sprintf("%.2f", part) != "0.50" || most != 10 {
		t.Errorf("all in one zone: %.2f, and one has %d", part, most)
	}
}
