package client_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"
	"github.com/google/go-cmp/cmp"

	"github.com/howdah/howdah/internal/nfs4/client"
	"github.com/howdah/howdah/internal/nfs4/rpc"
	"github.com/howdah/howdah/internal/nfs4/session"
)

// testTimeout is for what takes milliseconds unless the machine is very busy.
const testTimeout = time.Minute

// tree is a file server of directories and empty files in memory.
type tree struct {
	mu    sync.Mutex
	nodes map[string]*node
	next  uint64
	// delays is how many operations on names are answered with NFS4ERR_DELAY.
	delays atomic.Int32
	// creates counts executed CREATEs; each calls onCreate first.
	creates  atomic.Int32
	onCreate atomic.Pointer[func()]
}

type node struct {
	id         uint64
	dir        bool
	mode       uint32
	owner, gid uint32
}

func newTree() *tree {
	return &tree{nodes: map[string]*node{"/": {id: 1, dir: true, mode: 0o755}}, next: 1}
}

func (t *tree) file(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.next++
	t.nodes[name] = &node{id: t.next, mode: 0o644}
}

func (t *tree) names() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var names []string
	for name := range t.nodes {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func (t *tree) Begin(_ context.Context, caller rpc.Caller, _ uint32) session.Compound {
	return &compound{tree: t, caller: caller}
}

type compound struct {
	tree       *tree
	caller     rpc.Caller
	cur, saved string
}

func (c *compound) Do(_ context.Context, op nfsv4.NfsArgop4) nfsv4.NfsResop4 {
	t := c.tree
	if _, ok := op.(*nfsv4.NfsArgop4_OP_CREATE); ok {
		if hook := t.onCreate.Load(); hook != nil {
			(*hook)()
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	switch op := op.(type) {
	case *nfsv4.NfsArgop4_OP_PUTROOTFH:
		c.cur = "/"
	case *nfsv4.NfsArgop4_OP_SAVEFH:
		c.saved = c.cur
	case *nfsv4.NfsArgop4_OP_RESTOREFH:
		c.cur = c.saved
	case *nfsv4.NfsArgop4_OP_LOOKUP:
		child := path.Join(c.cur, op.Oplookup.Objname)
		switch {
		case t.delays.Add(-1) >= 0:
			return session.Fail(op, nfsv4.NFS4ERR_DELAY)
		case !t.nodes[c.cur].dir:
			return session.Fail(op, nfsv4.NFS4ERR_NOTDIR)
		case t.nodes[child] == nil:
			return session.Fail(op, nfsv4.NFS4ERR_NOENT)
		}
		c.cur = child
	case *nfsv4.NfsArgop4_OP_VERIFY:
		if dir := bytes.Equal(op.Opverify.ObjAttributes.AttrVals, []byte{0, 0, 0, 2}); dir != t.nodes[c.cur].dir {
			return session.Fail(op, nfsv4.NFS4ERR_NOT_SAME)
		}
	case *nfsv4.NfsArgop4_OP_SETATTR:
		t.nodes[c.cur].mode = binary.BigEndian.Uint32(op.Opsetattr.ObjAttributes.AttrVals)
	case *nfsv4.NfsArgop4_OP_GETATTR:
		return &nfsv4.NfsResop4_OP_GETATTR{Opgetattr: &nfsv4.Getattr4res_NFS4_OK{Resok4: nfsv4.Getattr4resok{
			ObjAttributes: t.nodes[c.cur].attributes(op.Opgetattr.AttrRequest),
		}}}
	case *nfsv4.NfsArgop4_OP_CREATE:
		t.creates.Add(1)
		return c.create(op)
	case *nfsv4.NfsArgop4_OP_REMOVE:
		return c.remove(op)
	case *nfsv4.NfsArgop4_OP_RENAME:
		from, to := path.Join(c.saved, op.Oprename.Oldname), path.Join(c.cur, op.Oprename.Newname)
		if t.nodes[from] == nil {
			return session.Fail(op, nfsv4.NFS4ERR_NOENT)
		}
		t.nodes[to] = t.nodes[from]
		delete(t.nodes, from)
		return &nfsv4.NfsResop4_OP_RENAME{Oprename: &nfsv4.Rename4res_NFS4_OK{}}
	case *nfsv4.NfsArgop4_OP_READDIR:
		return c.readdir(op)
	default:
		return session.Fail(op, nfsv4.NFS4ERR_NOTSUPP)
	}
	return session.Fail(op, nfsv4.NFS4_OK)
}

func (c *compound) create(op *nfsv4.NfsArgop4_OP_CREATE) nfsv4.NfsResop4 {
	name := path.Join(c.cur, op.Opcreate.Objname)
	if c.tree.nodes[name] != nil {
		return session.Fail(op, nfsv4.NFS4ERR_EXIST)
	}
	if c.caller.UID == 4711 {
		return session.Fail(op, nfsv4.NFS4ERR_ACCESS)
	}
	c.tree.next++
	made := &node{id: c.tree.next, dir: true, owner: c.caller.UID, gid: c.caller.GID}
	values := bytes.NewReader(op.Opcreate.Createattrs.AttrVals)
	for bit := range 64 {
		mask := op.Opcreate.Createattrs.Attrmask
		if bit/32 >= len(mask) || mask[bit/32]&(1<<(bit%32)) == 0 {
			continue
		}
		var word uint32
		_ = binary.Read(values, binary.BigEndian, &word)
		switch bit {
		case nfsv4.FATTR4_MODE:
			made.mode = word & 0o1777 // as mkdir(2) has it
		case nfsv4.FATTR4_OWNER, nfsv4.FATTR4_OWNER_GROUP:
			text := make([]byte, (word+3)&^3)
			_, _ = io.ReadFull(values, text)
			field := &made.owner
			if bit == nfsv4.FATTR4_OWNER_GROUP {
				field = &made.gid
			}
			_, _ = fmt.Sscan(string(text[:word]), field)
		}
	}
	c.tree.nodes[name] = made
	return &nfsv4.NfsResop4_OP_CREATE{Opcreate: &nfsv4.Create4res_NFS4_OK{}}
}

func (c *compound) remove(op *nfsv4.NfsArgop4_OP_REMOVE) nfsv4.NfsResop4 {
	name := path.Join(c.cur, op.Opremove.Target)
	for other := range c.tree.nodes {
		if strings.HasPrefix(other, name+"/") {
			return session.Fail(op, nfsv4.NFS4ERR_NOTEMPTY)
		}
	}
	delete(c.tree.nodes, name)
	return &nfsv4.NfsResop4_OP_REMOVE{Opremove: &nfsv4.Remove4res_NFS4_OK{}}
}

func (c *compound) readdir(op *nfsv4.NfsArgop4_OP_READDIR) nfsv4.NfsResop4 {
	var children []string
	for name := range c.tree.nodes {
		if name != "/" && path.Dir(name) == c.cur {
			children = append(children, name)
		}
	}
	slices.Sort(children)
	var page nfsv4.Readdir4resok
	next := &page.Reply.Entries
	page.Reply.Eof = true
	for i, name := range children {
		if uint64(i+1) <= op.Opreaddir.Cookie {
			continue
		}
		if uint64(i) >= op.Opreaddir.Cookie+100 {
			page.Reply.Eof = false
			break
		}
		*next = &nfsv4.Entry4{Cookie: uint64(i + 1), Name: path.Base(name), Attrs: c.tree.nodes[name].attributes(op.Opreaddir.AttrRequest)}
		next = &(*next).Nextentry
	}
	return &nfsv4.NfsResop4_OP_READDIR{Opreaddir: &nfsv4.Readdir4res_NFS4_OK{Resok4: page}}
}

func (n *node) attributes(request []uint32) nfsv4.Fattr4 {
	var out nfsv4.Fattr4
	var values bytes.Buffer
	put := func(v any) { _ = binary.Write(&values, binary.BigEndian, v) }
	text := func(id uint32) {
		s := fmt.Sprint(id)
		put(uint32(len(s)))
		values.WriteString(s)
		values.Write(make([]byte, -len(s)&3))
	}
	out.Attrmask = make([]uint32, 2)
	for bit := range 64 {
		if bit/32 >= len(request) || request[bit/32]&(1<<(bit%32)) == 0 {
			continue
		}
		out.Attrmask[bit/32] |= 1 << (bit % 32)
		switch bit {
		case nfsv4.FATTR4_TYPE:
			put(uint32(map[bool]int{true: 2, false: 1}[n.dir]))
		case nfsv4.FATTR4_CHANGE, nfsv4.FATTR4_SIZE, nfsv4.FATTR4_FILEID:
			put(n.id)
		case nfsv4.FATTR4_FSID:
			put([2]uint64{7, 8})
		case nfsv4.FATTR4_RDATTR_ERROR:
			put(uint32(0))
		case nfsv4.FATTR4_LEASE_TIME:
			put(uint32(90))
		case nfsv4.FATTR4_MODE:
			put(n.mode)
		case nfsv4.FATTR4_NUMLINKS:
			put(uint32(2))
		case nfsv4.FATTR4_OWNER:
			text(n.owner)
		case nfsv4.FATTR4_OWNER_GROUP:
			text(n.gid)
		case nfsv4.FATTR4_TIME_ACCESS, nfsv4.FATTR4_TIME_METADATA, nfsv4.FATTR4_TIME_MODIFY:
			put(int64(1234))
			put(uint32(5678))
		}
	}
	out.AttrVals = values.Bytes()
	return out
}

// server runs a session server on loopback. Its state can be lost, its
// connections cut, without a change of address.
type server struct {
	addr string
	tree *tree
	stop func()
}

func serve(t *testing.T, tree *tree, addr string) *server {
	t.Helper()
	sessions, err := session.New(session.Config{Handler: tree, Owner: "owner-1", Scope: "scope-1"})
	if err != nil {
		t.Fatal(err)
	}
	var listener net.Listener
	for end := time.Now().Add(testTimeout); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if listener, err = net.Listen("tcp", addr); err == nil {
			break
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- rpc.NewServer(rpc.Config{Handler: sessions}).Serve(ctx, listener) }()
	s := &server{addr: listener.Addr().String(), tree: tree}
	s.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	t.Cleanup(s.stop)
	return s
}

func dial(t *testing.T, addr string, options client.Options) *client.Client {
	t.Helper()
	if options.ClientOwner == "" {
		options.ClientOwner = t.Name()
	}
	c, err := client.Dial(context.Background(), addr, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		_ = c.Close(ctx)
	})
	return c
}

var root = client.Credentials{}

func TestOperations(t *testing.T) {
	ctx := context.Background()
	s := serve(t, newTree(), "127.0.0.1:0")
	c := dial(t, s.addr, client.Options{})
	owner, group := uint32(1000), uint32(2000)
	if err := c.Mkdir(ctx, root, "/a", client.MkdirOptions{Mode: 0o2770, Owner: &owner, Group: &group}); err != nil {
		t.Fatal(err)
	}
	if err := c.Mkdir(ctx, client.Credentials{UID: 5, GID: 6, GIDs: make([]uint32, 40)}, "/a/b", client.MkdirOptions{Mode: 0o755}); err != nil {
		t.Fatal(err)
	}
	s.tree.file("/a/file")
	got, err := c.Stat(ctx, root, "/a")
	if err != nil {
		t.Fatal(err)
	}
	want := client.Attributes{
		Type: nfsv4.NF4DIR, Mode: 0o2770, Owner: 1000, Group: 2000, FileID: 2, Size: 2, Links: 2, Change: 2,
		Access: time.Unix(1234, 5678), Metadata: time.Unix(1234, 5678), Modify: time.Unix(1234, 5678), FSIDMajor: 7, FSIDMinor: 8,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Stat (-want +got):\n%s", diff)
	}
	entries, err := c.ReadDir(ctx, root, "/a")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]client.DirEntry{
		{Name: "b", IsDir: true, Mode: 0o755, Owner: 5, Group: 6, FileID: 3}, {Name: "file", Mode: 0o644, FileID: 4},
	}, entries); diff != "" {
		t.Errorf("ReadDir (-want +got):\n%s", diff)
	}
	if err := c.Rename(ctx, root, "/a/b", "/c"); err != nil {
		t.Fatal(err)
	}
	if err := c.Rmdir(ctx, root, "/c"); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"/", "/a", "/a/file"}, s.tree.names()); diff != "" {
		t.Errorf("tree (-want +got):\n%s", diff)
	}
}

func TestErrorsNameTheOperationAndTheStatus(t *testing.T) {
	ctx := context.Background()
	s := serve(t, newTree(), "127.0.0.1:0")
	s.tree.file("/file")
	c := dial(t, s.addr, client.Options{})
	if err := c.Mkdir(ctx, root, "/d", client.MkdirOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := c.Mkdir(ctx, root, "/d/e", client.MkdirOptions{}); err != nil {
		t.Fatal(err)
	}
	_, statErr := c.Stat(ctx, root, "/nothing")
	_, listErr := c.ReadDir(ctx, root, "/file/x")
	for name, test := range map[string]struct {
		err    error
		status nfsv4.Nfsstat4
		text   string
	}{
		"a directory that exists":       {c.Mkdir(ctx, root, "/d", client.MkdirOptions{}), nfsv4.NFS4ERR_EXIST, "make directory /d: CREATE: NFS4ERR_EXIST"},
		"no permission":                 {c.Mkdir(ctx, client.Credentials{UID: 4711}, "/x", client.MkdirOptions{}), nfsv4.NFS4ERR_ACCESS, "make directory /x: CREATE: NFS4ERR_ACCESS"},
		"a directory that is not empty": {c.Rmdir(ctx, root, "/d"), nfsv4.NFS4ERR_NOTEMPTY, "remove directory /d: REMOVE: NFS4ERR_NOTEMPTY"},
		"rmdir of a file":               {c.Rmdir(ctx, root, "/file"), nfsv4.NFS4ERR_NOTDIR, "remove directory /file: VERIFY: NFS4ERR_NOTDIR"},
		"rename of nothing":             {c.Rename(ctx, root, "/x", "/y"), nfsv4.NFS4ERR_NOENT, "rename /x: RENAME: NFS4ERR_NOENT"},
		"stat of nothing":               {statErr, nfsv4.NFS4ERR_NOENT, "stat /nothing: LOOKUP: NFS4ERR_NOENT"},
		"a file within the path":        {listErr, nfsv4.NFS4ERR_NOTDIR, "list /file/x: LOOKUP: NFS4ERR_NOTDIR"},
	} {
		t.Run(name, func(t *testing.T) {
			if !client.IsStatus(test.err, nfsv4.NFS4ERR_IO, test.status) || client.IsStatus(test.err, nfsv4.NFS4ERR_IO) {
				t.Errorf("%v is not %s", test.err, client.StatusName(test.status))
			}
			if test.err == nil || test.err.Error() != test.text {
				t.Errorf("error %q, want %q", test.err, test.text)
			}
		})
	}
	if diff := cmp.Diff([]string{"/", "/d", "/d/e", "/file"}, s.tree.names()); diff != "" {
		t.Errorf("tree (-want +got):\n%s", diff)
	}
}
