package tree

import (
	"cmp"
	"slices"
	"strings"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
)

func (t *Tree) entry(n *node) Entry {
	e := Entry{
		ID: n.id, Path: n.path, Share: n.share, Rel: n.rel, Directory: n.directory,
		Change: n.change(), Entries: len(n.order),
	}
	e.Modified, e.Changed, e.Accessed = n.times()
	a := n.attributes()
	e.Owner, e.Group, e.Mode = a.owner, a.group, a.mode
	if n.junction() {
		e.Target = t.target(n.share, n.directory)
	}
	return e
}

func (t *Tree) target(s *Share, r *Directory) *Target { return t.targetOn(s, r, r.Server) }

// targetOn is the target with a data server, the owner or another one that has the same directories. t.mu is held.
func (t *Tree) targetOn(s *Share, r *Directory, name string) *Target {
	out := &Target{Server: name, Volume: r.Volume, Path: ExportPath(s.Name, r.Volume, r.Path)}
	if server := t.servers[name]; server != nil {
		out.Address, out.Outside = server.Address, server.Outside
		out.Serves = server.Address != "" && server.Serves[s.Name] && r.State != internalv1.DirectoryMissing && !t.isOtherRoot(s, r)
	}
	return out
}

// isOtherRoot: what the owner has as the root of a Single share is not the directory that it was. t.mu is held.
func (t *Tree) isOtherRoot(s *Share, r *Directory) bool {
	if !s.Single || r.Path != RootPath || r.RootID == "" {
		return false
	}
	now := t.inventories[r.Server][s.Name].RootID(r.Volume)
	return now != "" && now != r.RootID
}

// Root is the root of the namespace.
func (t *Tree) Root() Entry {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.entry(t.root)
}

// Get is the entry with an identity.
func (t *Tree) Get(id ID) (Entry, bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	n := t.nodes[id]
	if n == nil {
		return Entry{}, false
	}
	return t.entry(n), true
}

// At is the entry with an absolute path.
func (t *Tree) At(path string) (Entry, bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	n := t.at(path)
	if n == nil {
		return Entry{}, false
	}
	return t.entry(n), true
}

// Resolve is Get. moving: there is none, because the directory is getting another name: for a moment it has none.
func (t *Tree) Resolve(id ID) (e Entry, ok, moving bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	n := t.nodes[id]
	if n == nil {
		return Entry{}, false, t.moving[id] != ""
	}
	return t.entry(n), true, false
}

// Parent is the directory above one; false for the root and for what is gone.
func (t *Tree) Parent(id ID) (Entry, bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	n := t.nodes[id]
	if n == nil || n.parent == nil {
		return Entry{}, false
	}
	return t.entry(n.parent), true
}

// Lookup is the entry of a name in a directory.
func (t *Tree) Lookup(dir ID, name string) (Entry, bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	n := t.nodes[dir]
	if n == nil || n.kids[name] == nil {
		return Entry{}, false
	}
	return t.entry(n.kids[name]), true
}

// Pending is the ShareDirectory of a name that is not shown yet: its directory is being made
// or is getting this name. nil: there is none, and the name does not exist.
func (t *Tree) Pending(dir ID, name string) *Directory {
	t.mu.RLock()
	defer t.mu.RUnlock()
	s, path := t.placeNamed(dir, name)
	if s == nil {
		return nil
	}
	r := t.directories[s.Name][path]
	if r == nil || r.Shown() {
		return nil
	}
	return r
}

// Place is the share and the path in it of a name in a directory, whether there is such a directory or not. false: directories of no share have it.
func (t *Tree) Place(dir ID, name string) (share *Share, path string, ok bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	share, path = t.placeNamed(dir, name)
	return share, path, share != nil
}

// placeNamed is Place with t.mu held.
func (t *Tree) placeNamed(dir ID, name string) (*Share, string) {
	n := t.nodes[dir]
	if n == nil {
		return nil, ""
	}
	if n.share != nil {
		return n.share, strings.TrimPrefix(n.rel+"/"+name, "/")
	}
	path := strings.TrimSuffix(n.path, "/") + "/" + name
	for _, s := range t.mounted {
		if s.Single && s.Path == path {
			return s, RootPath
		}
	}
	return nil, ""
}

// List calls yield for the entries of a directory that come after a cookie, in the
// order of their cookies, until it returns false. It holds the tree's lock: yield must not call the tree. false: there is no such directory (any more).
func (t *Tree) List(dir ID, after uint64, yield func(*Entry) bool) bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	n := t.nodes[dir]
	if n == nil {
		return false
	}
	i, _ := slices.BinarySearchFunc(n.order, after+1, byCookie)
	for ; i < len(n.order); i++ {
		e := t.entry(n.order[i])
		if !yield(&e) {
			break
		}
	}
	return true
}

// Share is a share that is shown.
func (t *Tree) Share(name string) (*Share, bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	s, ok := t.mounted[name]
	return s, ok
}

// Shares are the shares that are shown, by name.
func (t *Tree) Shares() []*Share {
	t.mu.RLock()
	defer t.mu.RUnlock()
	out := make([]*Share, 0, len(t.mounted))
	for _, s := range t.mounted {
		out = append(out, s)
	}
	slices.SortFunc(out, func(a, b *Share) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// Directory is the ShareDirectory of a path of a share.
func (t *Tree) Directory(share, path string) (*Directory, bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	r, ok := t.directories[share][path]
	return r, ok
}

// Directories is how many ShareDirectories a share has, those that are being made included.
func (t *Tree) Directories(share string) int {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.number(share)
}

// number is Directories. t.mu is held.
func (t *Tree) number(share string) int {
	n := len(t.directories[share])
	if t.directories[share][RootPath] != nil {
		n-- // the root is there whatever the limit
	}
	return n
}

// Unfinished are the ShareDirectories of directories that are not finished.
func (t *Tree) Unfinished() []*Directory {
	t.mu.RLock()
	defer t.mu.RUnlock()
	var out []*Directory
	for _, paths := range t.directories {
		for _, r := range paths {
			if r.Unfinished() {
				out = append(out, r)
			}
		}
	}
	slices.SortFunc(out, func(a, b *Directory) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// Below tells whether any ShareDirectory of a share is below a path of it.
func (t *Tree) Below(share, path string) bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	s := t.mounted[share]
	if s == nil {
		return false
	}
	if n := t.at(absolute(s, path)); n != nil && len(n.kids) > 0 {
		return true
	}
	for other := range t.directories[share] {
		if strings.HasPrefix(other, path+"/") {
			return true
		}
	}
	return false
}

// AllBelow are the ShareDirectories below a path of a share, by path.
func (t *Tree) AllBelow(share, path string) []*Directory {
	return t.directoriesBelow(share, path, func(string) bool { return false })
}

// DirectoriesIn are the ShareDirectories below a path of a share that are below no other of them.
func (t *Tree) DirectoriesIn(share, path string) []*Directory {
	return t.directoriesBelow(share, path, func(above string) bool { return t.directories[share][above] != nil })
}

// directoriesBelow leaves out those that have a directory above them, up to path, that the caller does not want anything below of.
func (t *Tree) directoriesBelow(share, path string, stop func(above string) bool) []*Directory {
	t.mu.RLock()
	defer t.mu.RUnlock()
	var out []*Directory
next:
	for other, r := range t.directories[share] {
		if !strings.HasPrefix(other, path+"/") {
			continue
		}
		for at := strings.LastIndexByte(other, '/'); at > len(path); at = strings.LastIndexByte(other[:at], '/') {
			if stop(other[:at]) {
				continue next
			}
		}
		out = append(out, r)
	}
	slices.SortFunc(out, func(a, b *Directory) int { return cmp.Compare(a.Path, b.Path) })
	return out
}

// HasMove tells whether a ShareDirectory of a share has a move between volumes.
func (t *Tree) HasMove(share, id string) bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	for _, r := range t.directories[share] {
		if r.Move == id {
			return true
		}
	}
	return false
}

// DirectoriesOn are the ShareDirectories of a share's directories on a volume, by path.
func (t *Tree) DirectoriesOn(share string, slot Slot) []*Directory {
	t.mu.RLock()
	defer t.mu.RUnlock()
	out := make([]*Directory, 0, t.counts[share][slot])
	for _, r := range t.directories[share] {
		if r.Server == slot.Server && r.Volume == slot.Volume {
			out = append(out, r)
		}
	}
	slices.SortFunc(out, func(a, b *Directory) int { return cmp.Compare(a.Path, b.Path) })
	return out
}

// Server is a data server.
func (t *Tree) Server(name string) (*Server, bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	s, ok := t.servers[name]
	return s, ok
}

// Servers are the data servers, by name.
func (t *Tree) Servers() []*Server {
	t.mu.RLock()
	defer t.mu.RUnlock()
	out := make([]*Server, 0, len(t.servers))
	for _, s := range t.servers {
		out = append(out, s)
	}
	slices.SortFunc(out, func(a, b *Server) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// ProbeTargets are the addresses of the data servers that own directories or have served, by name.
func (t *Tree) ProbeTargets() map[string]string {
	t.mu.RLock()
	defer t.mu.RUnlock()
	out := map[string]string{}
	for _, s := range t.servers {
		if s.Started && s.Address != "" {
			out[s.Name] = s.Address
		}
	}
	for _, slots := range t.counts {
		for slot := range slots {
			if s := t.servers[slot.Server]; s != nil && s.Address != "" {
				out[s.Name] = s.Address
			}
		}
	}
	return out
}

// ServerAt is the data server with the address; false if none has it.
func (t *Tree) ServerAt(address string) (*Server, bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	for _, s := range t.servers {
		if s.Address == address {
			return s, true
		}
	}
	return nil, false
}

// IdentityAt is what the data server with the address calls itself (RFC 8881 section 2.10.4); "" if none has it,
// or if its DataServer does not tell.
func (t *Tree) IdentityAt(address string) string {
	if s, ok := t.ServerAt(address); ok {
		return s.Identity
	}
	return ""
}

// Counts are the directories of a share on each volume, those that are being made included.
func (t *Tree) Counts(share string) map[Slot]int {
	t.mu.RLock()
	defer t.mu.RUnlock()
	out := make(map[Slot]int, len(t.counts[share]))
	for slot, n := range t.counts[share] {
		out[slot] = n
	}
	return out
}

// Sizes tells how large the tree is.
type Sizes struct{ Shares, Directories, Junctions, Unfinished, Servers int }

// Sizes counts what is in the tree.
func (t *Tree) Sizes() Sizes {
	t.mu.RLock()
	defer t.mu.RUnlock()
	out := Sizes{Shares: len(t.mounted), Servers: len(t.servers)}
	for _, n := range t.nodes {
		if n.junction() {
			out.Junctions++
		} else {
			out.Directories++
		}
	}
	for _, paths := range t.directories {
		for _, r := range paths {
			if r.State != internalv1.DirectoryReady {
				out.Unfinished++
			}
		}
	}
	return out
}
