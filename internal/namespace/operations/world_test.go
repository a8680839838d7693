package operations

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/fleet"
	"github.com/howdah/howdah/internal/namespace/tree"
	"github.com/howdah/howdah/internal/naming"
	"github.com/howdah/howdah/internal/nfs4/rpc"
	"github.com/howdah/howdah/internal/nfs4/session"
	"github.com/howdah/howdah/test/builders"
)

var born = metav1.NewTime(time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC))

// mutator makes, removes and renames in the tree what it is asked for.
type mutator struct {
	tree    *tree.Tree
	status  nfsv4.Nfsstat4
	version int
	mkdirs  []MkdirRequest
	set     []tree.Settings
	// refresh brings the tree up to date; nil: it is. gone: what is asked for is in the tree and not in the API.
	refresh func(parent tree.Entry, name string)
	gone    bool
	// awaited is a name, or "", that lost its ShareDirectory; looks counts how often its data server was looked at.
	awaited func(name string) bool
	looks   atomic.Int32
}

func (m *mutator) MayBeAwaited(_ tree.Entry, name string) bool {
	return m.awaited != nil && m.awaited(name)
}

func (m *mutator) Awaited(_ context.Context, _ tree.Entry, name string) bool {
	m.looks.Add(1)
	return m.awaited(name)
}

func (m *mutator) Mkdir(_ context.Context, req MkdirRequest) (tree.Entry, nfsv4.Nfsstat4) {
	m.mkdirs = append(m.mkdirs, req)
	if m.status != nfsv4.NFS4_OK {
		return tree.Entry{}, m.status
	}
	m.version++
	rel := req.Name
	if req.Parent.Rel != "" {
		rel = req.Parent.Rel + "/" + rel
	}
	server := ""
	if tree.Depth(rel) == req.Parent.Share.Depth {
		server = "fs-0"
	}
	m.tree.SetDirectory(directory(req.Parent.Share.Name, rel, server, internalv1.DirectoryReady, 1000+m.version))
	e, _ := m.tree.Lookup(req.Parent.ID, req.Name)
	return e, nfsv4.NFS4_OK
}

func (m *mutator) Rmdir(_ context.Context, e tree.Entry, _ tree.Credentials) nfsv4.Nfsstat4 {
	if m.status == nfsv4.NFS4_OK {
		m.tree.DeleteDirectory(e.Share.Name, e.Rel, e.Directory.UID)
	}
	return m.status
}

func (m *mutator) Begun(tree.Entry, string) bool { return false }

func (m *mutator) Removed(tree.Entry, string) bool { return false }

func (m *mutator) Renamed(context.Context, tree.Entry, string, tree.Entry, string) nfsv4.Nfsstat4 {
	return nfsv4.NFS4ERR_NOENT
}

func (m *mutator) Refresh(_ context.Context, parent tree.Entry, name string) (bool, nfsv4.Nfsstat4) {
	if m.refresh != nil {
		m.refresh(parent, name)
	}
	_, ok := m.tree.Lookup(parent.ID, name)
	return ok && !m.gone, nfsv4.NFS4_OK
}

func (m *mutator) SetAttributes(_ context.Context, e tree.Entry, s tree.Settings, _ tree.Credentials) nfsv4.Nfsstat4 {
	m.set = append(m.set, s)
	return m.status
}

func (m *mutator) Rename(context.Context, tree.Entry, tree.Entry, string, tree.Credentials) nfsv4.Nfsstat4 {
	return m.status
}

func share(name, path string, edit func(*v1alpha1.FileShareSpec)) *v1alpha1.FileShare {
	s := &v1alpha1.FileShare{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), CreationTimestamp: born, Generation: 1}}
	s.Spec = v1alpha1.FileShareSpec{FileServerRef: v1alpha1.FileServerReference{Name: "fs"}, Path: path, Mode: "0755"}
	if edit != nil {
		edit(&s.Spec)
	}
	return builders.Defaulted(s)
}

func directory(share, path, server string, state internalv1.DirectoryState, version int) *internalv1.ShareDirectory {
	uid, gid := int64(1000), int64(1000)
	r := &internalv1.ShareDirectory{
		ObjectMeta: metav1.ObjectMeta{
			Name: naming.Directory("fs", share, path), UID: types.UID(fmt.Sprintf("%s/%s/%d", share, path, version)),
			ResourceVersion: fmt.Sprint(version), CreationTimestamp: born,
		},
		Spec:   internalv1.ShareDirectorySpec{FileServerRef: internalv1.FileServerReference{Name: "fs"}, FileShareRef: internalv1.FileShareReference{Name: share}, Path: path, UID: &uid, GID: &gid, Mode: "0755"},
		Status: internalv1.ShareDirectoryStatus{State: state},
	}
	if server != "" {
		volume := int32(1)
		r.Spec.DataServerRef.Name, r.Spec.Volume = server, &volume
	}
	return r
}

// world is a handler with a tree:
//
//	/open       depth 2, everybody may write; has plain/, plain/junction (fs-0), plain/idle (fs-1, which does not serve),
//	            and plain/making, which is being made
//	/open2      depth 1, like it, empty
//	/closed     depth 1, root's, 0700
//	/limited    depth 1: 10.1.0.0/16 may read, 10.2.0.0/16 write with everybody squashed, others don't see it
//	/deep/single a Single share on fs-0
type world struct {
	handler *Handler
	mutator *mutator
	now     time.Time
	down    map[string]bool
	minor   uint32
}

// moveJunction has another data server own the junction, as the operator does it: with another identity if its files were copied.
func (w *world) moveJunction(server, identity string) {
	o := directory("open", "plain/junction", server, internalv1.DirectoryReady, 2)
	o.ResourceVersion, o.Spec.Identity = "500", identity
	w.handler.Tree.SetDirectory(o)
	w.handler.Tree.SetExport(builders.ShareExport("default", "fs", "open", server))
}

func newWorld(t testing.TB) *world {
	t.Helper()
	tr := tree.New("fs")
	w := &world{now: born.Time, down: map[string]bool{}, minor: 2, mutator: &mutator{tree: tr}}
	for _, s := range []*v1alpha1.FileShare{
		share("open", "/open", func(s *v1alpha1.FileShareSpec) { s.Depth, s.Mode = 2, "0777" }),
		share("open2", "/open2", func(s *v1alpha1.FileShareSpec) { s.Mode = "0777" }),
		share("closed", "/closed", func(s *v1alpha1.FileShareSpec) { s.Mode = "0700" }),
		share("single", "/deep/single", func(s *v1alpha1.FileShareSpec) { s.Layout = v1alpha1.LayoutSingle }),
		share("limited", "/limited", func(s *v1alpha1.FileShareSpec) {
			s.Mode = "0777"
			s.Access = []v1alpha1.AccessRule{
				{Clients: []string{"10.1.0.0/16"}, AccessType: v1alpha1.AccessReadOnly},
				{Clients: []string{"10.2.0.0/16"}, Squash: v1alpha1.SquashAll},
			}
		}),
	} {
		tr.SetShare(fleet.ShareOf(s))
	}
	for i, serves := range [][]string{{"open", "open2", "single", "limited"}, {}} {
		d := &internalv1.DataServer{ObjectMeta: metav1.ObjectMeta{Name: naming.DataServer("fs", int32(i))}}
		d.Spec = internalv1.DataServerSpec{FileServerRef: internalv1.FileServerReference{Name: "fs"}, Address: fmt.Sprintf("10.9.0.%d", i), Volumes: 2, NodeNetworks: []string{"10.0.0.0/8"}}
		d.Status.Conditions = builders.ReadyConditions()
		tr.SetServer(d)
		for _, name := range serves {
			tr.SetExport(builders.ShareExport("", "fs", name, d.Name))
		}
	}
	for _, r := range []*internalv1.ShareDirectory{
		directory("open", "plain", "", internalv1.DirectoryReady, 1),
		directory("open", "plain/junction", "fs-0", internalv1.DirectoryReady, 2),
		directory("open", "plain/idle", "fs-1", internalv1.DirectoryReady, 3),
		directory("open", "plain/making", "fs-0", internalv1.DirectoryCreating, 4),
		directory("single", ".", "fs-0", internalv1.DirectoryReady, 5),
	} {
		tr.SetDirectory(r)
	}
	w.handler = New(Config{
		Tree: tr, Mutator: w.mutator, Reachable: func(s string) bool { return !w.down[s] }, Now: func() time.Time { return w.now },
		LeaseSeconds: 60,
	})
	return w
}

var (
	rootUser = rpc.Caller{Addr: netip.MustParseAddr("10.0.0.1")}
	alice    = rpc.Caller{Addr: netip.MustParseAddr("10.0.0.1"), UID: 1000, GID: 1000}
	bob      = rpc.Caller{Addr: netip.MustParseAddr("10.0.0.1"), UID: 2000, GID: 2000}
	reader1  = rpc.Caller{Addr: netip.MustParseAddr("10.1.0.1"), UID: 1000, GID: 1000}
	squashed = rpc.Caller{Addr: netip.MustParseAddr("10.2.0.1")}
	noAuth   = rpc.Caller{Addr: netip.MustParseAddr("10.0.0.1"), Anonymous: true}
)

// handleAt marks a handle in a table of tests that is that of a path in the tree.
const handleAt = "handle of "

func (w *world) withHandle(op nfsv4.NfsArgop4) nfsv4.NfsArgop4 {
	put, ok := op.(*nfsv4.NfsArgop4_OP_PUTFH)
	if !ok {
		return op
	}
	path, ok := strings.CutPrefix(string(put.Opputfh.Object), handleAt)
	if !ok {
		return op
	}
	e, _ := w.handler.Tree.At(path)
	return putfh(tree.EncodeHandle(tree.HandleDirectory, e.ID))
}

// do runs operations until one fails, as the session layer does, and gives all results and the last status.
func (w *world) do(caller rpc.Caller, ops ...nfsv4.NfsArgop4) ([]nfsv4.NfsResop4, nfsv4.Nfsstat4) {
	c := w.handler.Begin(context.Background(), caller, w.minor)
	var out []nfsv4.NfsResop4
	for _, op := range ops {
		op = w.withHandle(op)
		res := c.Do(context.Background(), op)
		out = append(out, res)
		if status := session.StatusOf(res); status != nfsv4.NFS4_OK {
			return out, status
		}
	}
	return out, nfsv4.NFS4_OK
}
