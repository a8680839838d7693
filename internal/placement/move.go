package placement

import (
	"cmp"
	"slices"
)

// Moving a directory is giving it another owner. It takes storage that all data servers have (storage.ceph): nothing is copied. The rule is
// that of Choose, and where it lets go: docs/design/2026-11-22-moves.md.

// Target is a data server that directories may move to: it is ready, and stays.
type Target struct {
	Server string
	// Serves tells whether the server exports a share; nil: it exports all of them.
	Serves func(share string) bool
	// Last: the server has little room. Directories go there only if no other target can take them, and none to make loads even.
	Last bool
}

// Movable is a directory that has an owner and may get another.
type Movable struct {
	Share, Path string
	// Server is the owner.
	Server string
	// Weight is what the directory counts; 0 is 1. By number all weigh the same; bytes and bytes a second are other figures.
	Weight int64
}

// Move is a directory with its owner before and after.
type Move struct{ Share, Path, From, To string }

func (m Movable) weight() int64 { return max(1, m.Weight) }

func compareMovable(a, b Movable) int {
	return cmp.Or(CompareNatural(a.Share, b.Share), CompareNatural(a.Path, b.Path))
}

// ledger has what each target carries.
type ledger struct {
	targets []Target // in order of their names
	last    map[string]bool
	share   map[string]map[string]int64
	all     map[string]int64
}

func newLedger(targets []Target, directories []Movable) *ledger {
	l := &ledger{targets: slices.Clone(targets), last: map[string]bool{}, share: map[string]map[string]int64{}, all: map[string]int64{}}
	for _, t := range targets {
		l.last[t.Server] = t.Last
	}
	slices.SortFunc(l.targets, func(a, b Target) int { return CompareNatural(a.Server, b.Server) })
	for _, d := range directories {
		l.add(d.Share, d.Server, d.weight())
	}
	return l
}

func (l *ledger) add(share, server string, weight int64) {
	if l.share[share] == nil {
		l.share[share] = map[string]int64{}
	}
	l.share[share][server] += weight
	l.all[server] += weight
}

// of are the targets that export a share.
func (l *ledger) of(share string) []string {
	names := make([]string, 0, len(l.targets))
	for _, t := range l.targets {
		if t.Serves == nil || t.Serves(share) {
			names = append(names, t.Server)
		}
	}
	return names
}

// best is where the rule puts a directory of a share; "" if no target exports it.
func (l *ledger) best(share string) string {
	best := ""
	for _, server := range l.of(share) {
		if best == "" || l.compare(share, server, best) < 0 {
			best = server
		}
	}
	return best
}

func (l *ledger) compare(share, a, b string) int {
	switch {
	case l.last[a] && !l.last[b]:
		return 1
	case l.last[b] && !l.last[a]:
		return -1
	}
	return cmp.Or(cmp.Compare(l.share[share][a], l.share[share][b]), cmp.Compare(l.all[a], l.all[b]))
}

// Best is where the rule puts a directory of a share; "" if no target can take it. directories are all that there are.
func Best(targets []Target, directories []Movable, share string) string {
	return newLedger(targets, directories).best(share)
}

// Evacuate plans where the directories go that are to leave their servers, at most budget of them, in order of share and path. directories
// are all that there are, so that those that stay count. homeless is how many no target can take at present.
func Evacuate(targets []Target, directories []Movable, leaving func(Movable) bool, budget int) (moves []Move, homeless int) {
	l := newLedger(targets, directories)
	ordered := slices.SortedFunc(slices.Values(directories), compareMovable)
	for _, d := range ordered {
		if !leaving(d) {
			continue
		}
		to := l.best(d.Share)
		switch {
		case to == "":
			homeless++
		case len(moves) < budget:
			l.add(d.Share, d.Server, -d.weight())
			l.add(d.Share, to, d.weight())
			moves = append(moves, Move{d.Share, d.Path, d.Server, to})
		}
	}
	return moves, homeless
}
