package tree

import (
	"strings"

	"github.com/howdah/howdah/internal/fleet"
)

// SetShare takes the newest state of a share of the FileServer's Kubernetes namespace. It is shown unless it is being
// deleted, belongs to another FileServer, or its path conflicts with that of an older share, also if that one is not shown itself: otherwise the deletion of a
// third share could let the older one win and tear the younger from its clients. It returns the names of shares that are shown and were not before.
func (t *Tree) SetShare(o fleet.Share) (shown []string) {
	if o.Deleting || o.FileServer != t.fileServer {
		return t.DeleteShare(o.Key)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	share := NewShare(o)
	share.nodes = &t.clients
	t.unfile(o.Key)
	before := t.shares[o.Key]
	t.shares[o.Key] = share
	for _, place := range fleet.Places(share.Path) {
		if t.filed[place] == nil {
			t.filed[place] = map[string]*Share{}
		}
		t.filed[place][share.Name] = share
	}
	return t.remount(before, share)
}

// DeleteShare forgets a share, by its key. Its ShareDirectories stay known until they are deleted themselves. It returns the names of shares that it has
// hidden, and that are shown now.
func (t *Tree) DeleteShare(name string) (shown []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	gone := t.shares[name]
	if gone == nil {
		return nil
	}
	t.unfile(name)
	delete(t.shares, name)
	return t.remount(gone)
}

// unfile takes a share from the places of its path.
func (t *Tree) unfile(name string) {
	known := t.shares[name]
	if known == nil {
		return
	}
	for _, place := range fleet.Places(known.Path) {
		if delete(t.filed[place], name); len(t.filed[place]) == 0 {
			delete(t.filed, place)
		}
	}
}

// conflicts calls yield for each share whose path conflicts with a share's, until it returns false.
func (t *Tree) conflicts(s *Share, yield func(other *Share) bool) {
	for _, place := range fleet.ConflictPlaces(s.Path) {
		for _, other := range t.filed[place] {
			if other.Name != s.Name && !yield(other) {
				return
			}
		}
	}
}

// wins tells whether a share is shown: there is no older one in its way.
func (t *Tree) wins(s *Share) bool {
	won := true
	t.conflicts(s, func(other *Share) bool {
		won = older(s, other) < 0
		return won
	})
	return won
}

// remount makes the shares that are shown those that should be, after changes of some. A change concerns those whose paths conflict as well. It returns the names
// of those that were not shown before.
func (t *Tree) remount(changed ...*Share) (shown []string) {
	concerned := map[string]bool{}
	for _, s := range changed {
		if s == nil {
			continue
		}
		concerned[s.Name] = true
		t.conflicts(s, func(other *Share) bool {
			concerned[other.Name] = true
			return true
		})
	}
	want := map[string]*Share{}
	for name := range concerned {
		if s := t.shares[name]; s != nil && t.wins(s) {
			want[name] = s
		}
	}
	// First those that go: they may be in the way of those that come.
	for name := range concerned {
		s, w := t.mounted[name], want[name]
		if s != nil && (w == nil || w.UID != s.UID || w.Path != s.Path || w.Single != s.Single || w.Depth != s.Depth) {
			t.unmount(s)
		}
	}
	for name, s := range want {
		if t.mounted[name] == nil {
			shown = append(shown, name)
		}
		if t.mounted[name] != s {
			t.mount(s)
		}
	}
	return shown
}

// mount shows a share and its directories, or takes over changed owner, mode and access rules.
func (t *Tree) mount(s *Share) {
	before := t.mounted[s.Name]
	t.mounted[s.Name] = s
	if before != nil {
		if n := t.at(s.Path); n != nil {
			t.reshare(n, s)
		}
		return
	}
	if !s.Single {
		t.ensure(s, "")
	}
	for _, r := range t.directories[s.Name] {
		t.place(s, r)
	}
}

func (t *Tree) unmount(s *Share) {
	delete(t.mounted, s.Name)
	if n := t.at(s.Path); n != nil && n.share != nil && n.share.Name == s.Name {
		t.remove(n)
	}
}

// reshare points a share's nodes at its new state.
func (t *Tree) reshare(n *node, s *Share) {
	n.share = s
	if n.rel == "" || n.directory == nil {
		n.reweigh() // What the others weigh does not depend on it, nor when they were made.
	}
	for _, k := range n.order {
		t.reshare(k, s)
	}
}

// older orders shares by age, then by name.
func older(a, b *Share) int {
	if c := a.Created.Compare(b.Created); c != 0 {
		return c
	}
	return strings.Compare(a.Name, b.Name)
}
