package placement

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const unlimited = math.MaxInt

// targetsOf are servers that export everything.
func targetsOf(names ...string) (targets []Target) {
	for _, name := range names {
		targets = append(targets, Target{Server: name})
	}
	return targets
}

// some are n directories of a share on a server.
func some(share, server string, n int) (directories []Movable) {
	for i := range n {
		directories = append(directories, Movable{Share: share, Path: fmt.Sprintf("%s-%d", server, i), Server: server})
	}
	return directories
}

func TestEvacuate(t *testing.T) {
	leavingC := func(d Movable) bool { return d.Server == "c" }
	tests := map[string]struct {
		targets     []Target
		directories []Movable
		budget      int
		want        []Move
		homeless    int
	}{
		"each goes where the rule puts a new one": {
			targets:     targetsOf("a", "b"),
			directories: slices.Concat(some("s", "a", 2), some("s", "b", 1), some("s", "c", 3)),
			budget:      unlimited,
			want:        []Move{{"s", "c-0", "c", "b"}, {"s", "c-1", "c", "a"}, {"s", "c-2", "c", "b"}},
		},
		"of equals the one with fewer of all shares takes it": {
			targets:     targetsOf("a", "b"),
			directories: slices.Concat(some("other", "a", 1), some("s", "c", 1)),
			budget:      unlimited,
			want:        []Move{{"s", "c-0", "c", "b"}},
		},
		"the budget ends it": {
			targets: targetsOf("a"), directories: some("s", "c", 3), budget: 2,
			want: []Move{{"s", "c-0", "c", "a"}, {"s", "c-1", "c", "a"}},
		},
		"one with little room takes nothing while another can": {
			targets:     []Target{{Server: "a", Last: true}, {Server: "b"}},
			directories: slices.Concat(some("s", "b", 5), some("s", "c", 2)),
			budget:      unlimited,
			want:        []Move{{"s", "c-0", "c", "b"}, {"s", "c-1", "c", "b"}},
		},
		"one with little room is better than none": {
			targets:     []Target{{Server: "a", Last: true}, {Server: "b", Serves: func(share string) bool { return share != "s" }}},
			directories: some("s", "c", 1),
			budget:      unlimited,
			want:        []Move{{"s", "c-0", "c", "a"}},
		},
		"a server that does not export the share takes nothing of it": {
			targets:     []Target{{Server: "a", Serves: func(share string) bool { return share != "s" }}, {Server: "b"}},
			directories: slices.Concat(some("s", "b", 5), some("s", "c", 1)),
			budget:      unlimited,
			want:        []Move{{"s", "c-0", "c", "b"}},
		},
		"where no server can take them they stay, and are counted": {directories: some("s", "c", 2), budget: unlimited, homeless: 2},
		"nothing leaves": {targets: targetsOf("a", "b"), directories: some("s", "a", 9), budget: unlimited},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, homeless := Evacuate(tc.targets, tc.directories, leavingC, tc.budget)
			if diff := cmp.Diff(tc.want, got); diff != "" || homeless != tc.homeless {
				t.Errorf("moves (-want +got):\n%s%d homeless, want %d", diff, homeless, tc.homeless)
			}
		})
	}
}

func TestRebalance(t *testing.T) {
	tests := map[string]struct {
		targets     []Target
		directories []Movable
		budget      int
		worth       int64
		want        []Move
	}{
		"a new server gets its part, and no more moves than that": {
			targets:     targetsOf("a", "b", "c"),
			directories: slices.Concat(some("s", "a", 3), some("s", "b", 3)),
			budget:      unlimited,
			want:        []Move{{"s", "a-0", "a", "c"}, {"s", "b-0", "b", "c"}},
		},
		"one apart is even": {targets: targetsOf("a", "b"), directories: slices.Concat(some("s", "a", 2), some("s", "b", 1)), budget: unlimited},
		"shares of one directory each are spread, too": {
			targets:     targetsOf("a", "b"),
			directories: slices.Concat(some("r", "a", 1), some("s", "a", 1), some("t", "a", 1)),
			budget:      unlimited,
			want:        []Move{{"r", "a-0", "a", "b"}},
		},
		"a share stays even when all are evened out": {
			targets:     targetsOf("a", "b"),
			directories: slices.Concat(some("big", "a", 2), some("big", "b", 2), some("s", "a", 2), some("t", "a", 1)),
			budget:      unlimited,
			want:        []Move{{"s", "a-0", "a", "b"}},
		},
		"the budget ends it": {
			targets: targetsOf("a", "b"), directories: some("s", "a", 8), budget: 1,
			want: []Move{{"s", "a-0", "a", "b"}},
		},
		"no budget, no moves": {targets: targetsOf("a", "b"), directories: some("s", "a", 8)},
		"what is on a server that can't be asked stays there": {
			targets: targetsOf("a"), directories: slices.Concat(some("s", "away", 5), some("s", "a", 1)), budget: unlimited,
		},
		"a server that does not export the share takes no part": {
			targets:     []Target{{Server: "a"}, {Server: "b", Serves: func(share string) bool { return share == "t" }}},
			directories: some("s", "a", 6),
			budget:      unlimited,
		},
		"one with little room gets nothing, and gives": {
			targets:     []Target{{Server: "a", Last: true}, {Server: "b"}, {Server: "c"}},
			directories: slices.Concat(some("s", "a", 3), some("s", "b", 3)),
			budget:      unlimited,
			want:        []Move{{"s", "a-0", "a", "c"}, {"s", "b-0", "b", "c"}},
		},
		"nothing goes to one with little room": {targets: []Target{{Server: "a"}, {Server: "b", Last: true}}, directories: some("s", "a", 8), budget: unlimited},
		"weights count, where they are given": {
			targets: targetsOf("a", "b"),
			directories: []Movable{
				{Share: "s", Path: "heavy", Server: "a", Weight: 90}, {Share: "s", Path: "x", Server: "a", Weight: 30}, {Share: "s", Path: "y", Server: "a", Weight: 20},
			},
			budget: unlimited,
			want:   []Move{{"s", "heavy", "a", "b"}},
		},
		"a move that brings servers hardly nearer is not worth it": {
			targets: targetsOf("a", "b"),
			directories: []Movable{
				{Share: "s", Path: "1", Server: "a", Weight: 1000}, {Share: "s", Path: "2", Server: "b", Weight: 980}, {Share: "s", Path: "crumb", Server: "a", Weight: 9},
			},
			budget: unlimited, worth: 19,
		},
		"of many, those that are worth it go": {
			targets: targetsOf("a", "b"),
			directories: []Movable{
				{Share: "s", Path: "crumb", Server: "a", Weight: 1}, {Share: "s", Path: "half", Server: "a", Weight: 40}, {Share: "s", Path: "large", Server: "a", Weight: 60},
			},
			budget: unlimited, worth: 2,
			want: []Move{{"s", "large", "a", "b"}},
		},
		"nothing weighs nothing": {targets: targetsOf("a", "b", "c"), budget: unlimited},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := Rebalance(tc.targets, tc.directories, Limits{tc.budget, tc.worth})
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("moves (-want +got):\n%s", diff)
			}
		})
	}
}

// spreadOut is a random set of directories on servers, the last of which may be no targets.
func spreadOut(random *rand.Rand, weighed bool) (targets []Target, directories []Movable) {
	servers, shares := 1+random.IntN(7), 1+random.IntN(5)
	var names []string
	for i := range servers {
		names = append(names, fmt.Sprintf("fs-%d", i))
	}
	ready := 1 + random.IntN(servers)
	for _, name := range names[:ready] {
		target := Target{Server: name}
		if random.IntN(4) == 0 {
			without := fmt.Sprintf("s%d", random.IntN(shares))
			target.Serves = func(share string) bool { return share != without }
		}
		targets = append(targets, target)
	}
	for i := range random.IntN(60) {
		d := Movable{Share: fmt.Sprintf("s%d", random.IntN(shares)), Path: fmt.Sprint(i), Server: names[random.IntN(servers)]}
		if weighed {
			d.Weight = random.Int64N(50)
		}
		directories = append(directories, d)
	}
	return targets, directories
}

// after are the directories with the owners that moves give them.
func after(t *testing.T, directories []Movable, moves []Move) []Movable {
	t.Helper()
	done := slices.Clone(directories)
	for _, m := range moves {
		at := slices.IndexFunc(done, func(d Movable) bool { return d.Share == m.Share && d.Path == m.Path })
		if at < 0 || done[at].Server != m.From || m.From == m.To {
			t.Fatalf("%+v is no move: it moves twice, or is not there", m)
		}
		done[at].Server = m.To
	}
	return done
}

// unevenness is what Rebalance makes smaller: first that of shares, then that of all.
func unevenness(targets []Target, directories []Movable) (shares, all int64) {
	l := newLedger(targets, directories)
	for _, on := range l.share {
		for _, target := range targets {
			shares += on[target.Server] * on[target.Server]
		}
	}
	for _, target := range targets {
		all += l.all[target.Server] * l.all[target.Server]
	}
	return shares, all
}

func better(sharesA, allA, sharesB, allB int64) bool {
	return sharesA < sharesB || sharesA == sharesB && allA < allB
}

func FuzzRebalance(f *testing.F) {
	for seed := range uint64(200) {
		f.Add(seed, uint16(seed%7), seed%2 == 0)
	}
	f.Fuzz(func(t *testing.T, seed uint64, budget uint16, weighed bool) {
		random := rand.New(rand.NewPCG(seed, 4))
		targets, directories := spreadOut(random, weighed)
		checkRebalance(t, targets, directories, weighed)
		// In small portions it ends, too.
		for rounds := 0; ; rounds++ {
			moves := Rebalance(targets, directories, Limits{Moves: 1 + int(budget%5)})
			if len(moves) > 1+int(budget%5) {
				t.Fatalf("%d moves are over the budget", len(moves))
			}
			if len(moves) == 0 {
				break
			}
			if rounds > 1000 {
				t.Fatalf("it does not end: %v", moves)
			}
			directories = after(t, directories, moves)
		}
		checkEven(t, targets, directories, weighed)
	})
}

// checkRebalance holds a plan to what it promises.
func checkRebalance(t *testing.T, targets []Target, directories []Movable, weighed bool) {
	t.Helper()
	moves := Rebalance(targets, directories, Limits{Moves: unlimited})
	shuffled, turned := slices.Clone(directories), slices.Clone(targets)
	slices.Reverse(shuffled)
	slices.Reverse(turned)
	if diff := cmp.Diff(moves, Rebalance(turned, shuffled, Limits{Moves: unlimited})); diff != "" {
		t.Fatalf("the plan depends on the order of what it is made from:\n%s", diff)
	}
	done := after(t, directories, moves)
	checkEven(t, targets, done, weighed)
	if again := Rebalance(targets, done, Limits{Moves: unlimited}); len(again) > 0 {
		t.Fatalf("what is balanced is moved again: %v", again)
	}
	shares, all := unevenness(targets, done)
	for i, m := range moves {
		if m.From == m.To || !slices.ContainsFunc(targets, func(target Target) bool {
			return target.Server == m.To && (target.Serves == nil || target.Serves(m.Share))
		}) {
			t.Fatalf("%+v goes where it can't be", m)
		}
		without := after(t, directories, slices.Concat(moves[:i], moves[i+1:]))
		if s, a := unevenness(targets, without); !better(shares, all, s, a) {
			t.Fatalf("%+v makes nothing better", m)
		}
	}
}

// With what is worth it limited, a plan still leaves alone what it has balanced.
func TestRebalanceRestsWhereNothingIsWorthIt(t *testing.T) {
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 6))
		targets, directories := spreadOut(random, true)
		limits := Limits{Moves: unlimited, Worth: WorthOf(targets, directories)}
		done := after(t, directories, Rebalance(targets, directories, limits))
		if again := Rebalance(targets, done, limits); len(again) > 0 {
			t.Fatalf("seed %d: what is balanced is moved again: %v", seed, again)
		}
		limits.Worth = 1 << 40
		if none := Rebalance(targets, directories, limits); len(none) > 0 {
			t.Fatalf("seed %d: nothing is worth it, and %v moves", seed, none)
		}
	}
}

// checkEven finds no move that would make anything better and, by number, no share that is two apart.
func checkEven(t *testing.T, targets []Target, directories []Movable, weighed bool) {
	t.Helper()
	shares, all := unevenness(targets, directories)
	l := newLedger(targets, directories)
	for i, d := range directories {
		servers := l.of(d.Share)
		if !slices.Contains(servers, d.Server) {
			continue
		}
		for _, to := range servers {
			moved := slices.Clone(directories)
			moved[i].Server = to
			if s, a := unevenness(targets, moved); better(s, a, shares, all) {
				t.Fatalf("%+v would be better on %s", d, to)
			}
			if apart := l.share[d.Share][d.Server] - l.share[d.Share][to]; !weighed && apart > 1 {
				t.Fatalf("share %s has %d more on %s than on %s", d.Share, apart, d.Server, to)
			}
		}
	}
}

// With one share the least number of moves is known: what is too much here, or too little there.
func TestRebalanceMovesNoMoreThanNeeded(t *testing.T) {
	for seed := range uint64(500) {
		random := rand.New(rand.NewPCG(seed, 5))
		servers := 1 + random.IntN(8)
		var targets []Target
		var directories []Movable
		counts := make([]int, servers)
		total := 0
		for i := range servers {
			name := fmt.Sprintf("fs-%d", i)
			counts[i] = random.IntN(20)
			total += counts[i]
			targets = append(targets, Target{Server: name})
			directories = append(directories, some("s", name, counts[i])...)
		}
		least, most := total/servers, (total+servers-1)/servers
		above, below := 0, 0
		for _, count := range counts {
			above += max(0, count-most)
			below += max(0, least-count)
		}
		if moves := Rebalance(targets, directories, Limits{Moves: unlimited}); len(moves) != max(above, below) {
			t.Fatalf("seed %d: %d moves for %v, %d are enough", seed, len(moves), counts, max(above, below))
		}
	}
}
