package tree

import (
	"maps"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/lru"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
)

// maxTombstones bounds the memory for deleted ShareDirectories. A tombstone is needed for
// as long as a watch may lag, which is far less than this many deletions.
const maxTombstones = 1 << 14

// Tree is the namespace of one FileServer. All methods may be called at any time
// from anywhere; none waits for anything but the lock.
type Tree struct {
	fileServer string

	mu          sync.RWMutex
	root        *node
	nodes       map[ID]*node
	paths       map[string]*node
	shares      map[string]*Share                // all that could be shown
	filed       map[string]map[string]*Share     // the same, by the places of their paths (fleet.Places) and by name
	mounted     map[string]*Share                // those that are: no older share is in their way
	directories map[string]map[string]*Directory // by share and path
	counts      map[string]map[Slot]int          // directories of a share on a volume
	servers     map[string]*Server
	ready       map[string]bool              // Data servers that say that they are ready.
	exports     map[string]map[string]bool   // Shares that a data server serves whenever it is ready, by server.
	inventories map[string]map[string]Export // What the API knows of exports, by server and share.
	// gone has the UIDs of the last deleted ShareDirectories.
	gone    *lru.Cache
	clients clientNodes
	near    map[string]*nearClients // by data server
	limits  internalv1.DirectoryLimits
	// moving has the ShareDirectories of directories that are getting another name, by the identity that they keep.
	moving map[ID]string
}

// Slot is a volume of a data server.
type Slot struct {
	Server string
	Volume int32
}

// New is an empty tree.
func New(fileServer string) *Tree {
	t := &Tree{
		fileServer:  fileServer,
		nodes:       map[ID]*node{},
		paths:       map[string]*node{},
		shares:      map[string]*Share{},
		filed:       map[string]map[string]*Share{},
		mounted:     map[string]*Share{},
		directories: map[string]map[string]*Directory{},
		counts:      map[string]map[Slot]int{},
		servers:     map[string]*Server{},
		ready:       map[string]bool{},
		exports:     map[string]map[string]bool{},
		inventories: map[string]map[string]Export{},
		gone:        lru.New(maxTombstones),
		moving:      map[ID]string{},
		near:        map[string]*nearClients{},
	}
	t.root = &node{path: "/"}
	t.root.id = t.root.identify()
	t.nodes[t.root.id], t.paths["/"] = t.root, t.root
	return t
}

// SetDirectory takes a state of a ShareDirectory. States older than the known one
// are ignored: a replica shows its own changes at once, before its watch has them.
func (t *Tree) SetDirectory(o *internalv1.ShareDirectory) { t.setDirectory(o, false) }

// RestoreDirectory takes an earlier state of a ShareDirectory than the known one, or one of what was deleted: the API has it again.
func (t *Tree) RestoreDirectory(o *internalv1.ShareDirectory) { t.setDirectory(o, true) }

func (t *Tree) setDirectory(o *internalv1.ShareDirectory, earlier bool) {
	if o.Spec.FileServerRef.Name != t.fileServer {
		return
	}
	r := NewDirectory(o)
	t.mu.Lock()
	defer t.mu.Unlock()
	if earlier {
		t.gone.Remove(r.UID)
	}
	if _, ok := t.gone.Get(r.UID); ok {
		return
	}
	paths := t.directories[r.Share]
	if paths == nil {
		paths = map[string]*Directory{}
		t.directories[r.Share] = paths
	}
	before := paths[r.Path]
	if before != nil {
		if !earlier && before.Version > r.Version || (before.Version == r.Version && before.UID == r.UID && r.Version != 0) {
			return
		}
		if before.UID != r.UID {
			t.follow(before, false) // A watch that was interrupted does not tell of its end.
		}
		r.keepMade(before)
		t.count(before, -1)
	}
	paths[r.Path] = r
	t.count(r, +1)
	t.follow(r, r.State == internalv1.DirectoryRenaming)
	s := t.mounted[r.Share]
	if s == nil {
		return
	}
	if before != nil && before.Shown() && !(r.Shown() && r.fits(s)) {
		t.displace(s, before)
	}
	t.place(s, r)
}

// DeleteDirectory forgets a ShareDirectory that is deleted; a later one of the same name stays.
// States of it that arrive afterwards are ignored. It returns the directory if nothing explains the deletion: no
// removal, no rename, no end of the share. Then its data is where it was.
func (t *Tree) DeleteDirectory(share, path, uid string) *Directory {
	t.mu.Lock()
	defer t.mu.Unlock()
	if uid != "" {
		t.gone.Add(uid, true)
	}
	r := t.directories[share][path]
	if r == nil || r.UID != uid {
		return nil
	}
	delete(t.directories[share], path)
	if len(t.directories[share]) == 0 {
		delete(t.directories, share)
	}
	t.count(r, -1)
	t.follow(r, false)
	s := t.mounted[share]
	if s == nil {
		return nil
	}
	if r.Shown() {
		t.displace(s, r)
	}
	id := directoryID(r)
	switch {
	case !r.isLostIfDeleted(s.AcceptedLosses) || t.moving[id] != "" || t.nodes[id] != nil:
		return nil
	case r.Server == "" && t.at(absolute(s, r.Path)) == nil:
		return nil // It was empty, and nowhere but in the namespace.
	}
	return r
}

// follow notes whether a directory is getting another name.
func (t *Tree) follow(r *Directory, moving bool) {
	if r.Identity == "" {
		return
	}
	id := directoryID(r)
	switch {
	case moving:
		t.moving[id] = r.UID
	case t.moving[id] == r.UID:
		delete(t.moving, id)
	}
}

// SetServer takes the newest state of a DataServer.
func (t *Tree) SetServer(o *internalv1.DataServer) {
	if o.Spec.FileServerRef.Name != t.fileServer {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.servers[o.Name] = NewServer(o)
	t.clients.set(o.Name, o.Spec.NodeNetworks)
	t.setNear(o)
	t.setLimits(o)
	t.ready[o.Name] = meta.IsStatusConditionTrue(o.Status.Conditions, v1alpha1.ConditionReady)
	t.serve(o.Name)
}

// SetExport takes the newest state of a ShareExport. It tells whether that changed which shares the server serves.
func (t *Tree) SetExport(o *internalv1.ShareExport) bool {
	if o.Spec.FileServerRef.Name != t.fileServer {
		return false
	}
	t.noteExport(o)
	serves := o.DeletionTimestamp == nil && meta.IsStatusConditionTrue(o.Status.Conditions, internalv1.ExportServing)
	return t.setExport(o.Spec.DataServerRef.Name, o.Spec.FileShareRef.Name, serves)
}

// DeleteExport forgets a ShareExport that is deleted.
func (t *Tree) DeleteExport(server, share string) bool {
	t.mu.Lock()
	delete(t.inventories[server], share)
	t.mu.Unlock()
	return t.setExport(server, share, false)
}

// Export is what the tree knows of a ShareExport beside whether it is served.
type Export struct {
	UID types.UID
	// Inventory is what was last reported of it. It is not to be changed.
	Inventory internalv1.ShareInventory
	// RootIDs are the identities of the share's directories, by volume.
	RootIDs []string
}

// RootID is the identity of the share's directory on a volume; "" if it is not known.
func (e Export) RootID(volume int32) string {
	if int(volume) < len(e.RootIDs) {
		return e.RootIDs[volume]
	}
	return ""
}

func (t *Tree) noteExport(o *internalv1.ShareExport) {
	t.mu.Lock()
	defer t.mu.Unlock()
	shares := t.inventories[o.Spec.DataServerRef.Name]
	if shares == nil {
		shares = map[string]Export{}
		t.inventories[o.Spec.DataServerRef.Name] = shares
	}
	shares[o.Spec.FileShareRef.Name] = Export{o.UID, o.Status.Inventory, o.Status.RootIDs}
}

// Export is a ShareExport.
func (t *Tree) Export(server, share string) (Export, bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	export, ok := t.inventories[server][share]
	return export, ok
}

func (t *Tree) setExport(server, share string, serves bool) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.exports[server][share] == serves {
		return false
	}
	shares := map[string]bool{}
	maps.Copy(shares, t.exports[server]) // The one before may be in use.
	if serves {
		shares[share] = true
	} else {
		delete(shares, share)
	}
	t.exports[server] = shares
	t.serve(server)
	return true
}

// serve gives a data server the shares that it serves: none while it is not ready, because after a
// restart its volumes may be others. t.mu is held.
func (t *Tree) serve(name string) {
	before := t.servers[name]
	if before == nil {
		return
	}
	now := *before // It is never changed after it was given out.
	now.Serves = map[string]bool{}
	if t.ready[name] {
		now.Serves = t.exports[name]
	}
	t.servers[name] = &now
}

// DeleteServer forgets a DataServer. Directories that it owns stay: their junctions are not served.
func (t *Tree) DeleteServer(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.servers, name)
	t.clients.set(name, nil)
	delete(t.near, name)
	delete(t.ready, name)
}

func (t *Tree) count(r *Directory, by int) {
	if r.Server == "" {
		return
	}
	slots := t.counts[r.Share]
	if slots == nil {
		slots = map[Slot]int{}
		t.counts[r.Share] = slots
	}
	slot := Slot{r.Server, r.Volume}
	if slots[slot] += by; slots[slot] == 0 {
		delete(slots, slot)
	}
	if len(slots) == 0 {
		delete(t.counts, r.Share)
	}
}

// absolute is the path in the namespace of a path of a share.
func absolute(s *Share, rel string) string {
	if rel == "" || rel == RootPath {
		return s.Path
	}
	return s.Path + "/" + rel
}

// split gives the parent path and the name of an absolute path below the root.
func split(path string) (parent, name string) {
	i := strings.LastIndexByte(path, '/')
	if i == 0 {
		return "/", path[1:]
	}
	return path[:i], path[i+1:]
}
