package placement

import (
	"cmp"
	"slices"
)

// Limits are those of a rebalancing.
type Limits struct {
	// Moves is how many there may be.
	Moves int
	// Worth is by how much, in the unit of weights, a move must bring two servers nearer to each other; 0: by anything. A move costs
	// clients their caches, and what directories weigh in bytes or load is never even to the last byte.
	Worth int64
}

// worthParts is into how many parts of what a server should carry Worth divides it: what is nearer than that is as even as figures are.
const worthParts = 50

// WorthOf is the limit for directories that weigh by bytes or load: a fiftieth of what each target would carry if all carried the same.
func WorthOf(targets []Target, directories []Movable) int64 {
	if len(targets) == 0 {
		return 0
	}
	var all int64
	for _, d := range directories {
		all += d.weight()
	}
	return all / int64(len(targets)) / worthParts
}

// Rebalance plans moves after which every share is spread over the targets as evenly as its directories allow, and, as far as that
// leaves a choice, all directories are; within the limits, the most useful first. By number (all weights 1, Worth 0) no two targets differ
// then by more than one directory of a share. What is on servers that are no targets stays there, and a Last target gets nothing.
//
// Each step takes from the fullest and gives to the emptiest, and makes the sum of squares of what they carry smaller: so it ends, nothing
// moves there and back, and what is balanced is left alone.
func Rebalance(targets []Target, directories []Movable, limits Limits) []Move {
	b := newBalance(targets, directories)
	b.worth = limits.Worth
	for _, share := range b.shares {
		b.level(share)
	}
	for share, moved := b.levelAll(); moved; share, moved = b.levelAll() {
		b.level(share)
	}
	return b.moves(limits.Moves)
}

// balance is a plan that is being made.
type balance struct {
	*ledger
	directories []Movable // in order, with the owners that they have
	shares      []string
	worth       int64
	// on are directories by share and owner, as planned.
	on map[string]map[string][]int
	// to is where directories are planned to be, began the order in which they were taken.
	to    map[int]string
	began []int
}

func newBalance(targets []Target, directories []Movable) *balance {
	b := &balance{
		ledger: newLedger(targets, directories), directories: slices.SortedFunc(slices.Values(directories), compareMovable),
		on: map[string]map[string][]int{}, to: map[int]string{},
	}
	for i, d := range b.directories {
		if b.on[d.Share] == nil {
			b.on[d.Share] = map[string][]int{}
			b.shares = append(b.shares, d.Share)
		}
		b.on[d.Share][d.Server] = append(b.on[d.Share][d.Server], i)
	}
	return b
}

// pair is a server that gives and one that takes, and how much more the one carries.
type pair struct {
	from, to string
	gap      int64
}

// pairs are those that a move could bring nearer, the farthest apart first.
func pairs(servers []string, load func(server string) int64) []pair {
	var all []pair
	for _, from := range servers {
		for _, to := range servers {
			if gap := load(from) - load(to); gap > 1 { // No directory weighs less than 1.
				all = append(all, pair{from, to, gap})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b pair) int { return cmp.Compare(b.gap, a.gap) })
	return all
}

// level spreads a share as evenly as its directories allow.
func (b *balance) level(share string) {
	for again := true; again; again = b.levelShare(share) {
		// What is on the two servers differs now: another pair may be the farthest apart.
	}
}

// levelShare moves one directory of a share to where the share has less; false: that makes nothing better.
func (b *balance) levelShare(share string) bool {
	servers := b.of(share)
	all := pairs(servers, func(server string) int64 { return b.share[share][server] })
	// Of pairs as far apart, the one that also evens out all directories.
	slices.SortStableFunc(all, func(x, y pair) int {
		return cmp.Or(cmp.Compare(y.gap, x.gap), cmp.Compare(b.all[y.from]-b.all[y.to], b.all[x.from]-b.all[x.to]))
	})
	for _, p := range all {
		if b.last[p.to] {
			continue
		}
		if at := b.fitting(b.on[share][p.from], p.gap, func(int) bool { return true }); at >= 0 {
			b.move(at, p)
			return true
		}
	}
	return false
}

// levelAll moves one directory to where there is less of all shares, without making its share, which it returns, less even; false: none can.
func (b *balance) levelAll() (share string, moved bool) {
	names := make([]string, 0, len(b.targets))
	for _, t := range b.targets {
		names = append(names, t.Server)
	}
	for _, p := range pairs(names, func(server string) int64 { return b.all[server] }) {
		for _, share := range b.shares {
			here := b.on[share][p.from]
			if len(here) == 0 || b.last[p.to] || !slices.Contains(b.of(share), p.to) || !slices.Contains(b.of(share), p.from) {
				continue
			}
			gap := b.share[share][p.from] - b.share[share][p.to]
			if at := b.fitting(here, p.gap, func(i int) bool { return b.directories[i].weight() <= gap }); at >= 0 {
				b.move(at, p)
				return share, true
			}
		}
	}
	return "", false
}

// fitting is the directory that brings two servers so far apart nearest to each other; -1 if each only makes the other one the fuller, or
// none is worth it.
func (b *balance) fitting(candidates []int, gap int64, may func(int) bool) int {
	best, rest := -1, gap
	for _, i := range candidates {
		left := gap - 2*b.directories[i].weight()
		if left = max(left, -left); left < rest && gap-left >= b.worth && may(i) {
			best, rest = i, left
		}
	}
	return best
}

func (b *balance) move(i int, p pair) {
	d := b.directories[i]
	b.add(d.Share, p.from, -d.weight())
	b.add(d.Share, p.to, d.weight())
	on := b.on[d.Share]
	on[p.from] = slices.DeleteFunc(on[p.from], func(other int) bool { return other == i })
	at, _ := slices.BinarySearch(on[p.to], i)
	on[p.to] = slices.Insert(on[p.to], at, i)
	if _, moved := b.to[i]; !moved {
		b.began = append(b.began, i)
	}
	b.to[i] = p.to
}

// moves are those from where directories are to where they end, in the order in which they were taken.
func (b *balance) moves(budget int) []Move {
	var all []Move
	for _, i := range b.began {
		if d := b.directories[i]; b.to[i] != d.Server && len(all) < budget {
			all = append(all, Move{d.Share, d.Path, d.Server, b.to[i]})
		}
	}
	return all
}
