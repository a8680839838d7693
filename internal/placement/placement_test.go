package placement

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func slot(server string, volume int32, share, all int) Slot {
	return Slot{Owner: Owner{server, volume}, Ready: true, ShareDirectories: share, Directories: all}
}

func sized(s Slot, used, total int64) Slot {
	s.UsedBytes, s.TotalBytes = used, total
	s.Tight = total > 0 && used*100 > 95*total
	return s
}

func full(s Slot) Slot {
	s.Tight, s.Full = true, true
	return s
}

func down(s Slot) Slot {
	s.Ready = false
	return s
}

func TestChoose(t *testing.T) {
	tests := map[string]struct {
		slots []Slot
		want  Owner
		err   error
	}{
		"the server with the fewest directories of the share wins over one with fewer of all": {
			slots: []Slot{slot("a", 0, 2, 2), slot("b", 0, 1, 90)},
			want:  Owner{"b", 0},
		},
		"with equal counts of the share the fewest of all shares win": {
			slots: []Slot{slot("a", 0, 1, 9), slot("b", 0, 1, 8)},
			want:  Owner{"b", 0},
		},
		"with equal counts the least used fraction wins, not the least used bytes": {
			slots: []Slot{sized(slot("a", 0, 1, 1), 50, 100), sized(slot("b", 0, 1, 1), 60, 1000)},
			want:  Owner{"b", 0},
		},
		"counts come before bytes": {
			slots: []Slot{sized(slot("a", 0, 1, 1), 0, 100), sized(slot("b", 0, 0, 0), 90, 100)},
			want:  Owner{"b", 0},
		},
		"with everything equal the first name wins, by number": {
			slots: []Slot{slot("fs-10", 0, 0, 0), slot("fs-2", 0, 0, 0)},
			want:  Owner{"fs-2", 0},
		},
		"a server counts with all its volumes": {
			slots: []Slot{slot("a", 0, 1, 1), slot("a", 1, 1, 1), slot("b", 0, 1, 1)},
			want:  Owner{"b", 0},
		},
		"within a server the volume with the fewest directories of the share wins": {
			slots: []Slot{slot("a", 0, 1, 1), slot("a", 1, 0, 7), slot("b", 0, 5, 5)},
			want:  Owner{"a", 1},
		},
		"a server that is not ready is skipped": {
			slots: []Slot{down(slot("a", 0, 0, 0)), slot("b", 0, 7, 7)},
			want:  Owner{"b", 0},
		},
		"a server of which all volumes are over the limit is skipped": {
			slots: []Slot{sized(slot("a", 0, 0, 0), 96, 100), slot("b", 0, 7, 7)},
			want:  Owner{"b", 0},
		},
		"a volume at the limit is not over it": {
			slots: []Slot{sized(slot("a", 0, 0, 0), 95, 100), slot("b", 0, 7, 7)},
			want:  Owner{"a", 0},
		},
		"the full volume of a server is skipped, its other one is not": {
			slots: []Slot{sized(slot("a", 0, 0, 0), 99, 100), sized(slot("a", 1, 3, 3), 10, 100), slot("b", 0, 7, 7)},
			want:  Owner{"a", 1},
		},
		"when all are full the rule goes on without the limit": {
			slots: []Slot{sized(slot("a", 0, 2, 2), 96, 100), sized(slot("b", 0, 1, 1), 99, 100)},
			want:  Owner{"b", 0},
		},
		"where all have little room, one that is full is skipped": {
			slots: []Slot{full(slot("a", 0, 0, 0)), sized(slot("b", 0, 7, 7), 99, 100)},
			want:  Owner{"b", 0},
		},
		"when all are full the rule goes on": {
			slots: []Slot{full(slot("a", 0, 2, 2)), full(slot("b", 0, 1, 1))},
			want:  Owner{"b", 0},
		},
		"a volume without inodes is full, whatever its bytes": {
			slots: []Slot{full(sized(slot("a", 0, 0, 0), 1, 100)), sized(slot("b", 0, 7, 7), 90, 100)},
			want:  Owner{"b", 0},
		},
		"a full server is better than one that is not ready": {
			slots: []Slot{sized(slot("a", 0, 2, 2), 96, 100), down(slot("b", 0, 0, 0))},
			want:  Owner{"a", 0},
		},
		"sizes near the largest number compare right": {
			slots: []Slot{
				sized(slot("a", 0, 0, 0), math.MaxInt64/2+1, math.MaxInt64),
				sized(slot("b", 0, 0, 0), math.MaxInt64/2, math.MaxInt64),
			},
			want: Owner{"b", 0},
		},
		"no server is an error":       {err: ErrNoneEligible},
		"no ready server is an error": {slots: []Slot{down(slot("a", 0, 0, 0))}, err: ErrNoneEligible},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := Choose(tc.slots)
			if !errors.Is(err, tc.err) {
				t.Fatalf("error %v, want %v", err, tc.err)
			}
			if got != tc.want {
				t.Errorf("chose %v, want %v", got, tc.want)
			}
		})
	}
}

func TestPlanKeepsOwnersAndSpreadsTheRest(t *testing.T) {
	slots := Count([]Slot{slot("a", 0, 0, 0), slot("b", 0, 0, 0), slot("c", 0, 0, 0)}, "s", []Directory{
		{Share: "s", Path: "2", Owner: Owner{"a", 0}},
		{Share: "other", Path: "2", Owner: Owner{"b", 0}},
		{Share: "s", Path: "lost", Owner: Owner{"gone", 3}},
	})
	got, err := Plan(slots, map[string]Owner{"2": {"a", 0}}, []string{"10", "2", "1", "0"})
	if err != nil {
		t.Fatal(err)
	}
	want := []Assignment{
		{Path: "0", Owner: Owner{"c", 0}, New: true},
		{Path: "1", Owner: Owner{"b", 0}, New: true},
		{Path: "2", Owner: Owner{"a", 0}},
		// By now every server has one directory of the share, and b has one of another share, too.
		{Path: "10", Owner: Owner{"a", 0}, New: true},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("plan (-want +got):\n%s", diff)
	}
}

func TestPlanRefuses(t *testing.T) {
	one := []Slot{slot("a", 0, 0, 0)}
	tests := map[string]struct {
		slots []Slot
		paths []string
		want  string
	}{
		"a path that is listed twice": {one, []string{"x", "y", "x"}, `directory "x" is listed twice; list it once`},
		"a slot that is listed twice": {append(one, one...), nil, `volume 0 of data server "a" is listed twice; list it once`},
		"new paths without a server":  {nil, []string{"x"}, "no data server can take a new directory: 0 of 0 are ready; wait until one is"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			plan, err := Plan(tc.slots, nil, tc.paths)
			if err == nil || err.Error() != tc.want || plan != nil {
				t.Errorf("plan %v, error %v, want error %s", plan, err, tc.want)
			}
		})
	}
}

func TestPlanNeedsNoServerForDirectoriesThatHaveOne(t *testing.T) {
	plan, err := Plan(nil, map[string]Owner{"x": {"gone", 0}}, []string{"x"})
	if err != nil || len(plan) != 1 || plan[0].New {
		t.Errorf("plan %v, error %v", plan, err)
	}
}

// world is a random set of servers, with directories of two shares on them.
func world(random *rand.Rand) ([]Slot, []Directory) {
	var slots []Slot
	for server := range 1 + random.IntN(8) {
		ready := random.IntN(5) > 0
		for volume := range 1 + random.IntN(3) {
			s := Slot{Owner: Owner{fmt.Sprintf("fs-%d", server), int32(volume)}, Ready: ready}
			if random.IntN(2) > 0 {
				s.TotalBytes = 1 + random.Int64N(1000)
				s.UsedBytes = random.Int64N(s.TotalBytes + 1)
				s.Tight, s.Full = random.IntN(4) == 0, random.IntN(8) == 0
			}
			slots = append(slots, s)
		}
	}
	var directories []Directory
	for i := range random.IntN(30) {
		directories = append(directories, Directory{
			Share: []string{"s", "other"}[random.IntN(2)],
			Path:  fmt.Sprintf("old/%d", i),
			Owner: slots[random.IntN(len(slots))].Owner,
		})
	}
	return slots, directories
}

func TestPlanDoesNotDependOnOrder(t *testing.T) {
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 1))
		slots, directories := world(random)
		paths := make([]string, random.IntN(50))
		for i := range paths {
			paths[i] = fmt.Sprintf("new/%d", i)
		}
		want, wantErr := Plan(Count(slots, "s", directories), nil, paths)
		for range 3 {
			random.Shuffle(len(slots), func(i, j int) { slots[i], slots[j] = slots[j], slots[i] })
			random.Shuffle(len(paths), func(i, j int) { paths[i], paths[j] = paths[j], paths[i] })
			random.Shuffle(len(directories), func(i, j int) { directories[i], directories[j] = directories[j], directories[i] })
			got, err := Plan(Count(slots, "s", directories), nil, paths)
			if diff := cmp.Diff(want, got); diff != "" || (err == nil) != (wantErr == nil) {
				t.Fatalf("seed %d: plan changed (-want +got):\n%s\nerrors %v, %v", seed, diff, wantErr, err)
			}
		}
	}
}

// A plan for many and one choice after the other are the same thing: the operator
// plans declared directories, the namespace servers choose for each mkdir.
func TestPlanIsChooseRepeated(t *testing.T) {
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 2))
		slots, directories := world(random)
		paths := make([]string, random.IntN(40))
		for i := range paths {
			paths[i] = fmt.Sprintf("new/%02d", i)
		}
		plan, planErr := Plan(Count(slots, "s", directories), nil, paths)
		for i, path := range paths {
			owner, err := Choose(Count(slots, "s", directories))
			if planErr != nil {
				if err == nil {
					t.Fatalf("seed %d: plan failed with %v, choose did not", seed, planErr)
				}
				break
			}
			if err != nil || plan[i].Owner != owner {
				t.Fatalf("seed %d: step %d chose %v (%v), plan says %v", seed, i, owner, err, plan[i])
			}
			directories = append(directories, Directory{Share: "s", Path: path, Owner: owner})
		}
	}
}

func TestSpreadIsAtMostOneApart(t *testing.T) {
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 3))
		var slots []Slot
		servers, volumes := 1+random.IntN(12), 1+random.IntN(4)
		for server := range servers {
			for volume := range volumes {
				// Other shares and bytes differ wildly, all below the limit: they must not matter.
				slots = append(slots, sized(slot(fmt.Sprintf("fs-%d", server), int32(volume), 0, random.IntN(100)), random.Int64N(95), 100))
			}
		}
		paths := make([]string, random.IntN(200))
		for i := range paths {
			paths[i] = fmt.Sprint(i)
		}
		plan, err := Plan(slots, nil, paths)
		if err != nil {
			t.Fatal(err)
		}
		perServer, perVolume := map[string]int{}, map[Owner]int{}
		for _, s := range slots {
			perServer[s.Server], perVolume[s.Owner] = 0, 0
		}
		for _, assignment := range plan {
			perServer[assignment.Owner.Server]++
			perVolume[assignment.Owner]++
		}
		if gap := spread(perServer); gap > 1 {
			t.Fatalf("seed %d: servers are %d apart: %v", seed, gap, perServer)
		}
		for server := range servers {
			name := fmt.Sprintf("fs-%d", server)
			own := map[Owner]int{}
			for owner, count := range perVolume {
				if owner.Server == name {
					own[owner] = count
				}
			}
			if gap := spread(own); gap > 1 {
				t.Fatalf("seed %d: volumes of %s are %d apart: %v", seed, name, gap, own)
			}
		}
	}
}

func spread[K comparable](counts map[K]int) int {
	low, high := math.MaxInt, 0
	for _, count := range counts {
		low, high = min(low, count), max(high, count)
	}
	return high - low
}

// The life of a share, step by step, with byte figures that lag as the real ones do.
func TestSimulatedLife(t *testing.T) {
	three := []Slot{
		sized(slot("fs-0", 0, 0, 0), 900, 1000), sized(slot("fs-1", 0, 0, 0), 0, 1000), sized(slot("fs-2", 0, 0, 0), 0, 1000),
	}
	var placed []Directory
	mkdir := func(slots []Slot, count int) map[string]int {
		t.Helper()
		for range count {
			owner, err := Choose(Count(slots, "s", placed))
			if err != nil {
				t.Fatal(err)
			}
			placed = append(placed, Directory{Share: "s", Path: fmt.Sprint(len(placed)), Owner: owner})
		}
		counts := map[string]int{}
		for _, directory := range placed {
			counts[directory.Owner.Server]++
		}
		return counts
	}
	steps := []struct {
		name  string
		slots []Slot
		count int
		want  map[string]int
	}{
		{"twelve at once spread over all, though one is 90 percent full", three, 12, map[string]int{"fs-0": 4, "fs-1": 4, "fs-2": 4}},
		{"while one is down the others take them", []Slot{down(three[0]), three[1], three[2]}, 4, map[string]int{"fs-0": 4, "fs-1": 6, "fs-2": 6}},
		{"when it is back it catches up first", three, 5, map[string]int{"fs-0": 7, "fs-1": 7, "fs-2": 7}},
		{"a server that was added takes new ones until it has as many", append(slices.Clone(three), slot("fs-3", 0, 0, 0)), 7, map[string]int{"fs-0": 7, "fs-1": 7, "fs-2": 7, "fs-3": 7}},
	}
	for _, step := range steps {
		if got := mkdir(step.slots, step.count); !cmp.Equal(step.want, got) {
			t.Fatalf("%s: %v, want %v", step.name, got, step.want)
		}
	}
}

func TestCompareNatural(t *testing.T) {
	want := []string{"", "a", "a/0", "a/00", "a/01", "a/1", "a/2", "a/10", "a/10b", "b"}
	for i, a := range want {
		for j, b := range want {
			if got := CompareNatural(a, b); got != sign(i-j) {
				t.Errorf("CompareNatural(%q, %q) = %d", a, b, got)
			}
		}
	}
}

func sign(n int) int { return min(1, max(-1, n)) }

func FuzzCompareNatural(f *testing.F) {
	f.Add("train/2", "train/10", "train/02")
	f.Add("", "0", "00a")
	f.Fuzz(func(t *testing.T, a, b, c string) {
		if CompareNatural(a, b) != -CompareNatural(b, a) {
			t.Errorf("%q and %q: not antisymmetric", a, b)
		}
		if (CompareNatural(a, b) == 0) != (a == b) {
			t.Errorf("%q and %q: equal only if identical", a, b)
		}
		if CompareNatural(a, b) <= 0 && CompareNatural(b, c) <= 0 && CompareNatural(a, c) > 0 {
			t.Errorf("%q, %q, %q: not transitive", a, b, c)
		}
	})
}
