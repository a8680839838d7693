package tree

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// node is one name of the tree. A node is a directory above the shares (no share),
// a share's root, a directory above the share's depth (with a ShareDirectory, or implied by
// what is below it) or a junction.
type node struct {
	id        ID
	cookie    uint64
	path      string
	parent    *node
	share     *Share
	rel       string // path below the share's root; "" is the root
	directory *Directory

	kids  map[string]*node
	order []*node // kids by cookie
	// sum is the sum of the kids' weights: it differs when the listing differs.
	sum    uint64
	weight uint64
	// newest is the newest creation time among the kids, born what the node counted as with its parent. Both in nanoseconds since 1970.
	newest, born int64
}

func (n *node) name() string {
	_, name := split(n.path)
	return name
}

func (n *node) junction() bool { return n.directory != nil && n.directory.Server != "" }

// created is when the directory was made, in nanoseconds since 1970.
func (n *node) created() int64 {
	switch {
	case n.directory != nil && (n.rel != "" || n.share.Single):
		return n.directory.Created.UnixNano()
	case n.share != nil:
		return n.share.Created.UnixNano()
	}
	return 0
}

// weigh is what the node adds to its parent's change attribute: all that the listing shows of it.
func (n *node) weigh() uint64 {
	parts := []string{n.name()}
	if n.share != nil && n.rel == "" {
		parts = append(parts, n.share.UID, strconv.FormatInt(n.share.Generation, 10))
	}
	if n.directory != nil {
		parts = append(parts, n.directory.UID, n.directory.Server, strconv.Itoa(int(n.directory.Volume)))
	}
	return hash64(parts...)
}

// change is the change attribute of a directory. It is not a counter: the
// same content gives the same value on every replica and after a restart.
func (n *node) change() uint64 {
	v := n.sum
	if n.share != nil {
		a := n.attributes()
		v ^= uint64(a.owner)<<32 ^ uint64(a.group)<<16 ^ uint64(a.mode) ^ uint64(n.share.Generation)<<48
	}
	if n.directory != nil && !n.directory.Changed.IsZero() {
		v += hash64("changed", n.directory.Changed.UTC().Format(time.RFC3339Nano))
	}
	// The finalizer of splitmix64, so that neighbouring sums don't look alike.
	v += 0x9e3779b97f4a7c15
	v = (v ^ v>>30) * 0xbf58476d1ce4e5b9
	v = (v ^ v>>27) * 0x94d049bb133111eb
	return v ^ v>>31
}

// attributes are the owner, group and mode that permission is judged by. What clients gave a share's root holds until
// the share asks for something else than it did then.
func (n *node) attributes() attributes {
	switch {
	case n.directory != nil && (n.rel != "" || n.share.Single || n.directory.share != nil && *n.directory.share == n.share.attributes()):
		return attributes{n.directory.Owner, n.directory.Group, n.directory.Mode}
	case n.share != nil:
		return n.share.attributes()
	}
	return attributes{0, 0, 0o555}
}

// times are when the directory was last modified, changed and accessed. What came into it after the last change that
// its ShareDirectory knows of is known from its age.
func (n *node) times() (modified, changed, accessed time.Time) {
	made, newest := time.Unix(0, n.created()), time.Unix(0, n.newest)
	modified, changed = made, made
	if r := n.directory; r != nil && !r.Changed.IsZero() {
		changed, accessed = r.Changed, r.Accessed
		if !r.Modified.IsZero() {
			modified = r.Modified
		}
	}
	if newest.After(changed) {
		modified, changed = newest, newest
	}
	if accessed.IsZero() {
		accessed = modified
	}
	return modified, changed, accessed
}

// implied tells whether the node exists only for what is below it.
func (n *node) implied() bool {
	return n.parent != nil && n.directory == nil && (n.share == nil || n.rel != "")
}

func byCookie(n *node, cookie uint64) int { return cmp.Compare(n.cookie, cookie) }

// attach puts a node under its parent.
func (t *Tree) attach(parent, n *node) {
	n.parent = parent
	n.id = n.identify()
	t.nodes[n.id], t.paths[n.path] = n, n
	if parent.kids == nil {
		parent.kids = map[string]*node{}
	}
	parent.kids[n.name()] = n
	parent.arrange(n)
	n.weight, n.born = n.weigh(), n.created()
	parent.sum += n.weight
	parent.newest = max(parent.newest, n.born)
}

// arrange puts a kid to its place by its cookie.
func (n *node) arrange(kid *node) {
	kid.cookie = kid.id.Cookie()
	i, _ := slices.BinarySearchFunc(n.order, kid.cookie, byCookie)
	n.order = slices.Insert(n.order, i, kid)
}

// misplace takes a kid from its place.
func (n *node) misplace(kid *node) {
	i, _ := slices.BinarySearchFunc(n.order, kid.cookie, byCookie)
	for n.order[i] != kid { // entries whose cookies are equal
		i++
	}
	n.order = slices.Delete(n.order, i, i+1)
}

// detach takes a node from its parent.
func (t *Tree) detach(n *node) {
	parent := n.parent
	t.unregister(n)
	delete(parent.kids, n.name())
	parent.misplace(n)
	parent.sum -= n.weight
	parent.aged(n.born)
	n.parent = nil
}

// unregister takes a node's handle and path out.
func (t *Tree) unregister(n *node) {
	delete(t.paths, n.path)
	// While a directory is renamed it may be at both places for a moment: its handle stands for the newer.
	if t.nodes[n.id] == n {
		delete(t.nodes, n.id)
	}
}

// reidentify gives a node the identity of what it is now.
func (t *Tree) reidentify(n *node) {
	id := n.identify()
	if n.parent == nil || n.id == id && t.nodes[id] == n {
		return
	}
	if t.nodes[n.id] == n {
		delete(t.nodes, n.id)
	}
	n.parent.misplace(n)
	n.id = id
	t.nodes[id] = n
	n.parent.arrange(n)
}

// aged finds the newest kid again, if it was the one that is gone.
func (n *node) aged(gone int64) {
	if gone < n.newest {
		return
	}
	n.newest = 0
	for _, k := range n.order {
		n.newest = max(n.newest, k.born)
	}
}

// reweigh brings the parent up to date after a node's ShareDirectory or share changed.
func (n *node) reweigh() {
	if n.parent == nil {
		return
	}
	before := n.born
	n.parent.sum -= n.weight
	n.weight, n.born = n.weigh(), n.created()
	n.parent.sum += n.weight
	n.parent.newest = max(n.parent.newest, n.born)
	if n.born < before {
		n.parent.aged(before)
	}
}

// at is the node with an absolute path.
func (t *Tree) at(path string) *node { return t.paths[path] }

// ensure is the directory of a share with a path below its root; what is missing above it is made.
func (t *Tree) ensure(s *Share, rel string) *node {
	path := absolute(s, rel)
	if n := t.at(path); n != nil {
		return n
	}
	n := &node{path: path}
	if rel != "" {
		parent := ""
		if i := strings.LastIndexByte(rel, '/'); i >= 0 {
			parent = rel[:i]
		}
		n.share, n.rel = s, rel
		t.attach(t.ensure(s, parent), n)
		return n
	}
	n.share = s
	t.attach(t.above(s.Path), n)
	return n
}

// above is the parent of a share's path; what is missing is made.
func (t *Tree) above(path string) *node {
	parent, _ := split(path)
	if n := t.at(parent); n != nil {
		return n
	}
	n := &node{path: parent}
	t.attach(t.above(parent), n)
	return n
}

// place shows a ShareDirectory's directory, if it is one that is shown.
func (t *Tree) place(s *Share, r *Directory) {
	if !r.Shown() || !r.fits(s) {
		return
	}
	rel := r.Path
	if rel == RootPath {
		rel = ""
	}
	n := t.ensure(s, rel)
	n.directory = r
	t.reidentify(n)
	n.reweigh()
}

// displace hides a ShareDirectory's directory. A directory that others are below of stays, implied by them.
func (t *Tree) displace(s *Share, r *Directory) {
	n := t.at(absolute(s, r.Path))
	if n == nil || n.directory != r {
		return
	}
	n.directory = nil
	if len(n.kids) > 0 || n.rel == "" && !s.Single {
		t.reidentify(n)
		n.reweigh()
		return
	}
	t.remove(n)
}

// remove takes out a node with all below it, and what was implied by it above.
func (t *Tree) remove(n *node) {
	parent := n.parent
	t.forget(n)
	t.detach(n)
	for parent.implied() && len(parent.kids) == 0 {
		up := parent.parent
		t.detach(parent)
		parent = up
	}
}

// forget takes the handles and paths of all below a node out.
func (t *Tree) forget(n *node) {
	for _, k := range n.order {
		t.unregister(k)
		t.forget(k)
	}
}
