package consistency

import (
	"fmt"
	"path"
	"slices"
	"time"
)

// Promise is how much weaker than linearizable answers may be. The zero value is none.
type Promise struct {
	// Stale is how old what Stat and List show of a name may be: whether it was there at a moment before the call, by at most this. Then
	// a List is no picture of one moment, either: each of its names is judged by itself. A client's own changes of a name are never
	// missing if it asks the same server.
	Stale time.Duration
	// Behind are times in which a server did not learn of changes: what it shows may be as old as their beginning.
	Behind []Window
	// Refusals: changes may be refused (EEXIST, ENOENT, ENOTEMPTY) because of such an older state, too. Successful changes never rest
	// on one.
	Refusals bool
	// Aliases: a directory that got its name by a Rename may be answered with ESTALE. A Linux that knows it by an older name gives it the
	// new one only while nothing is renamed in that mount, nor changed at the older place (__d_unalias in fs/dcache.c); else it does not
	// ask the server. Its own Rename into another directory counts.
	Aliases bool
	// TwoWalks: an operation during which the directory above was removed or renamed twice may be answered with ESTALE. Linux walks the
	// path once more after that answer, and not twice.
	TwoWalks bool
}

// weak reports whether an operation is judged by what it shows, and not by porcupine.
func (p Promise) weak(o *Operation) bool {
	looks := o.Kind == Stat || o.Kind == List || o.Looked || p.Refusals && o.Kind.Changes() && o.Error != ""
	return looks && (p.Stale > 0 || len(p.Behind) > 0)
}

// look is what an operation showed of a name.
type look struct {
	name  string
	there bool
}

// seen has what an operation showed: one of each group was true.
func seen(o *Operation, names []string) (groups [][]look) {
	missing := func(paths ...string) (out []look) {
		for _, p := range paths {
			for ; p != ""; p = parent(p) {
				out = append(out, look{p, false})
			}
		}
		return out
	}
	inside := func(dir string) (out []look) {
		for _, name := range names {
			if parent(name) == dir {
				out = append(out, look{name, true})
			}
		}
		return out
	}
	switch {
	case o.Error == Missing && o.Kind == Mkdir:
		return [][]look{missing(parent(o.Path))}
	case o.Error == Missing && o.Kind == Rename:
		return [][]look{missing(o.Path, parent(o.To))}
	case o.Error == Missing:
		return [][]look{missing(o.Path)}
	case o.Error == Exists && o.Kind == Mkdir:
		return [][]look{{{o.Path, true}}}
	case o.Error == NotEmpty && o.Kind == Rmdir:
		return [][]look{inside(o.Path)}
	case (o.Error == Exists || o.Error == NotEmpty) && o.Kind == Rename:
		return [][]look{inside(o.To)}
	case o.Error != "":
		return [][]look{nil} // Nothing explains it.
	case o.Kind == Stat:
		return [][]look{{{o.Path, true}}}
	case o.Kind == List:
		for _, listed := range o.Names {
			groups = append(groups, []look{{path.Join(o.Path, listed), true}})
		}
		for _, name := range names {
			if parent(name) == o.Path && !slices.Contains(o.Names, path.Base(name)) {
				groups = append(groups, []look{{name, false}})
			}
		}
	}
	return groups
}

// judgeLooks judges what operations showed, each by itself. age is how old it was at the most, where no server was behind.
func (p Promise) judgeLooks(h History, initial []string) (violations []string, age time.Duration) {
	h = withRepetitions(h).sorted()
	all := map[string]bool{}
	changes := map[string]History{}
	for _, o := range h {
		for _, name := range []string{o.Path, o.To} {
			if name == "" {
				continue
			}
			all[name] = true
			if o.Path != o.To && o.Kind.Changes() && o.Error == "" {
				changes[name] = append(changes[name], o)
			}
		}
	}
	var names []string
	for name := range all {
		names = append(names, name)
	}
	slices.Sort(names)
	for i := range h {
		o := &h[i]
		if !p.weak(o) || o.Open() || p.excuses(o, changes) {
			continue
		}
		for _, group := range seen(o, names) {
			oldest, why := Never, "it was not made or removed\n"
			for _, l := range group {
				old, proof := howOld(o, l, changes[l.name], slices.Contains(initial, l.name))
				if old <= oldest {
					oldest, why = old, proof
				}
			}
			allowed := o.Call - p.earliest(o)
			if oldest > allowed {
				what := fmt.Sprintf("it showed a state that was over %s before, and %s is allowed", oldest.Round(time.Microsecond), allowed.Round(time.Microsecond))
				if oldest == Never {
					what = "it showed what it can't have seen"
				}
				violations = append(violations, what+":\n"+why+o.String()+"\n")
			} else if allowed <= p.Stale {
				age = max(age, oldest)
			}
		}
	}
	return violations, age
}

// excuses reports whether ESTALE is the client's own answer. changes are those of each name.
func (p Promise) excuses(o *Operation, changes map[string]History) bool {
	return p.Aliases && alias(o, changes[o.Path]) || p.TwoWalks && lostTwice(o, changes)
}

// lostTwice reports whether a directory above an operation's names was taken away twice while it went on.
func lostTwice(o *Operation, changes map[string]History) bool {
	if o.Error != StaleHandle {
		return false
	}
	for _, name := range []string{o.Path, o.To} {
		above, taken := parent(name), 0
		for _, c := range changes[above] {
			if c.Path == above && c.Kind != Mkdir && !c.Open() && c.Call <= o.Return && c.Return >= o.Call {
				taken++
			}
		}
		if above != "" && taken > 1 {
			return true
		}
	}
	return false
}

// alias reports whether an operation was refused by a Linux that knows its directory by an older name. changes are those of its name.
func alias(o *Operation, changes History) bool {
	return o.Error == StaleHandle && slices.ContainsFunc(changes, func(c Operation) bool { return c.Kind == Rename && c.To == o.Path && c.Call <= o.Return })
}

// howOld is how old at least a state is that a look shows: how long before the call the name was like that for the last time. Never: it
// never was. proof are the operations that show it.
func howOld(o *Operation, l look, changes History, initially bool) (age time.Duration, proof string) {
	// possible: this change may have led to what was shown, between another one and the answer.
	possible := func(c, against *Operation) bool {
		return leads(c, l) && c.Call <= o.Return && (against == nil || c.Return >= against.Call && (c.Client != against.Client || c.Call != against.Call))
	}
	if initially != l.there && !slices.ContainsFunc(changes, func(c Operation) bool { return possible(&c, nil) }) {
		return Never, "it was not made or removed before\n"
	}
	for i := range changes {
		against := &changes[i]
		if leads(against, l) || against.Open() || against.Repeated || against.first || against.Return >= o.Call {
			continue
		}
		if slices.ContainsFunc(changes, func(c Operation) bool { return possible(&c, against) }) {
			continue
		}
		old := o.Call - against.Return
		if against.Client == o.Client && against.Server == o.Server {
			old = Never // its own
		}
		if old > age {
			age, proof = old, against.String()+"\n"
		}
	}
	return age, proof
}

// leads reports whether a change of a name leads to what a look shows.
func leads(change *Operation, l look) bool {
	made := change.Kind == Mkdir && change.Path == l.name || change.Kind == Rename && change.To == l.name
	return made == l.there
}

// earliest is when the state that an operation shows was there at the latest.
func (p Promise) earliest(o *Operation) time.Duration {
	earliest := o.Call
	for _, w := range p.Behind {
		if w.of(o) && o.Call <= w.Until && o.Return >= w.From {
			earliest = min(earliest, w.From)
		}
	}
	return earliest - p.Stale
}
