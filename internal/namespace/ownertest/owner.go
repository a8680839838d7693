package ownertest

import (
	"context"
	"net"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"

	"github.com/howdah/howdah/internal/nfs4/rpc"
	"github.com/howdah/howdah/internal/nfs4/session"
)

// Directory is a directory of an Owner.
type Directory struct {
	Owner, Group, Mode uint32
	// Modified is zero until a client sets it.
	Modified time.Time
}

// Owner is a data server.
type Owner struct {
	// Address is where it listens, with the port.
	Address string

	mu   sync.Mutex
	dirs map[string]Directory
	// refuse is asked before a change is made; NFS4_OK lets it happen.
	refuse func(op, path string) nfsv4.Nfsstat4
	calls  map[string]int
	hidden map[string]bool
	frozen map[string]bool
	// left are names that are refused, because their directories have moved away.
	left map[string]bool
	// files are how many each directory has beside its directories.
	files map[string]int
}

// Start starts a data server without exports, whose server owner is name, and which has a certificate of the data
// server's. At its one port it takes compounds in mutual TLS, and nothing but NULL without. It ends with the test.
func Start(t testing.TB, name, dataServer string) *Owner {
	t.Helper()
	o := &Owner{dirs: map[string]Directory{"/": {Mode: 0o755}}, calls: map[string]int{}, hidden: map[string]bool{}, frozen: map[string]bool{}, left: map[string]bool{}, files: map[string]int{}}
	sessions, err := session.New(session.Config{Handler: o, Owner: name, Scope: "test"})
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	o.Address = listener.Addr().String()
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	both := &bothListener{listener, serverConfig(t, dataServer)}
	go func() { done <- rpc.NewServer(rpc.Config{Handler: sessions}).Serve(ctx, both) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Errorf("the data server %s ended with %v", name, err)
		}
	})
	return o
}

// Put makes a directory, and what is missing above it, behind the protocol's back.
func (o *Owner) Put(name string, d Directory) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for p := path.Dir(name); p != "/"; p = path.Dir(p) {
		if _, ok := o.dirs[p]; !ok {
			o.dirs[p] = Directory{Mode: 0o755}
		}
	}
	o.dirs[name] = d
}

// Fill puts files into a directory: their names, which are made up when they are listed, come after all directories.
func (o *Owner) Fill(dir string, files int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.files[dir] = files
}

// Drop removes a directory behind the protocol's back.
func (o *Owner) Drop(name string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.dirs, name)
}

// Hide takes a directory out of sight with all that is in it, as a server does with an export that it
// does not serve, or not to this client; or shows it again.
func (o *Owner) Hide(name string, hidden bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.hidden[name] = hidden
}

// Get is a directory.
func (o *Owner) Get(name string) (Directory, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	d, ok := o.dirs[name]
	return d, ok
}

// Names are the paths of the directories right below one, sorted.
func (o *Owner) Names(dir string) []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.names(dir)
}

func (o *Owner) names(dir string) []string {
	var out []string
	for p := range o.dirs {
		if p != "/" && path.Dir(p) == dir {
			out = append(out, path.Base(p))
		}
	}
	slices.Sort(out)
	return out
}

// Freeze has a LOOKUP of a name wait, as ganesha does for a directory that moves.
func (o *Owner) Freeze(name string, frozen bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.frozen[name] = frozen
}

// Leave moves a directory away, as ganesha shows it: a LOOKUP of its name is refused until there is another.
func (o *Owner) Leave(name string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.dirs, name)
	o.left[name] = true
}

// Refuse has changes asked about first: op is CREATE, REMOVE, RENAME or SETATTR.
func (o *Owner) Refuse(f func(op, path string) nfsv4.Nfsstat4) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.refuse = f
}

// Calls is how often an operation was asked for.
func (o *Owner) Calls(op string) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.calls[op]
}

// Begin implements session.Handler.
func (o *Owner) Begin(_ context.Context, caller rpc.Caller, _ uint32) session.Compound {
	return &compound{o: o, caller: caller}
}

type compound struct {
	o              *Owner
	caller         rpc.Caller
	current, saved string
}

// Do implements session.Compound.
func (c *compound) Do(_ context.Context, op nfsv4.NfsArgop4) nfsv4.NfsResop4 {
	c.o.mu.Lock()
	defer c.o.mu.Unlock()
	switch a := op.(type) {
	case *nfsv4.NfsArgop4_OP_PUTROOTFH:
		c.current = "/"
	case *nfsv4.NfsArgop4_OP_SAVEFH:
		c.saved = c.current
	case *nfsv4.NfsArgop4_OP_RESTOREFH:
		c.current = c.saved
	case *nfsv4.NfsArgop4_OP_VERIFY: // clients ask whether it is a directory; all are
	case *nfsv4.NfsArgop4_OP_LOOKUP:
		p := path.Join(c.current, a.Oplookup.Objname)
		if c.o.frozen[p] {
			return session.Fail(op, nfsv4.NFS4ERR_DELAY)
		}
		switch _, ok := c.o.dirs[p]; {
		case !ok && c.o.left[p]:
			return session.Fail(op, nfsv4.NFS4ERR_STALE)
		case !ok || c.o.hidden[p]:
			return session.Fail(op, nfsv4.NFS4ERR_NOENT)
		}
		c.current = p
	case *nfsv4.NfsArgop4_OP_GETATTR:
		return &nfsv4.NfsResop4_OP_GETATTR{Opgetattr: &nfsv4.Getattr4res_NFS4_OK{
			Resok4: nfsv4.Getattr4resok{ObjAttributes: c.o.attributes(c.current, a.Opgetattr.AttrRequest)},
		}}
	case *nfsv4.NfsArgop4_OP_READDIR:
		return c.readdir(a)
	case *nfsv4.NfsArgop4_OP_CREATE:
		return c.create(a)
	case *nfsv4.NfsArgop4_OP_REMOVE:
		return c.remove(a)
	case *nfsv4.NfsArgop4_OP_RENAME:
		return c.rename(a)
	case *nfsv4.NfsArgop4_OP_SETATTR:
		return c.setattr(a)
	default:
		return session.Fail(op, nfsv4.NFS4ERR_NOTSUPP)
	}
	return session.Fail(op, nfsv4.NFS4_OK)
}

// writable checks the caller's permission on a directory, and counts the call.
func (c *compound) writable(op, dir, target string) nfsv4.Nfsstat4 {
	c.o.calls[op]++
	if c.o.refuse != nil {
		if status := c.o.refuse(op, target); status != nfsv4.NFS4_OK {
			return status
		}
	}
	d := c.o.dirs[dir]
	class := d.Mode
	switch {
	case c.caller.UID == 0:
		return nfsv4.NFS4_OK
	case c.caller.UID == d.Owner:
		class >>= 6
	case c.caller.GID == d.Group || slices.Contains(c.caller.GIDs, d.Group):
		class >>= 3
	}
	if class&3 != 3 {
		return nfsv4.NFS4ERR_ACCESS
	}
	return nfsv4.NFS4_OK
}

func (c *compound) create(op *nfsv4.NfsArgop4_OP_CREATE) nfsv4.NfsResop4 {
	args := &op.Opcreate
	p := path.Join(c.current, args.Objname)
	if status := c.writable("CREATE", c.current, p); status != nfsv4.NFS4_OK {
		return session.Fail(op, status)
	}
	if _, ok := c.o.dirs[p]; ok {
		return session.Fail(op, nfsv4.NFS4ERR_EXIST)
	}
	c.o.dirs[p] = decode(args.Createattrs, Directory{Owner: c.caller.UID, Group: c.caller.GID, Mode: 0o755})
	c.current = p
	return &nfsv4.NfsResop4_OP_CREATE{Opcreate: &nfsv4.Create4res_NFS4_OK{Resok4: nfsv4.Create4resok{Attrset: args.Createattrs.Attrmask}}}
}

func (c *compound) remove(op *nfsv4.NfsArgop4_OP_REMOVE) nfsv4.NfsResop4 {
	p := path.Join(c.current, op.Opremove.Target)
	_, ok := c.o.dirs[p]
	status := c.writable("REMOVE", c.current, p)
	switch {
	case !ok:
		status = nfsv4.NFS4ERR_NOENT
	case status == nfsv4.NFS4_OK && len(c.o.names(p)) > 0:
		status = nfsv4.NFS4ERR_NOTEMPTY
	}
	if status != nfsv4.NFS4_OK {
		return session.Fail(op, status)
	}
	delete(c.o.dirs, p)
	return &nfsv4.NfsResop4_OP_REMOVE{Opremove: &nfsv4.Remove4res_NFS4_OK{}}
}

func (c *compound) rename(op *nfsv4.NfsArgop4_OP_RENAME) nfsv4.NfsResop4 {
	from, to := path.Join(c.saved, op.Oprename.Oldname), path.Join(c.current, op.Oprename.Newname)
	if status := c.writable("RENAME", c.saved, from); status != nfsv4.NFS4_OK {
		return session.Fail(op, status)
	}
	if _, ok := c.o.dirs[from]; !ok {
		return session.Fail(op, nfsv4.NFS4ERR_NOENT)
	}
	if _, ok := c.o.dirs[to]; ok && len(c.o.names(to))+c.o.files[to] > 0 {
		return session.Fail(op, nfsv4.NFS4ERR_EXIST)
	}
	moved := map[string]Directory{}
	for p, d := range c.o.dirs {
		if p == from || strings.HasPrefix(p, from+"/") {
			moved[to+strings.TrimPrefix(p, from)] = d
			delete(c.o.dirs, p)
		}
	}
	for p, d := range moved {
		c.o.dirs[p] = d
	}
	return &nfsv4.NfsResop4_OP_RENAME{Oprename: &nfsv4.Rename4res_NFS4_OK{}}
}

// setattr has the part of POSIX that tells who may: the owner and root.
func (c *compound) setattr(op *nfsv4.NfsArgop4_OP_SETATTR) nfsv4.NfsResop4 {
	c.o.calls["SETATTR"]++
	status := nfsv4.NFS4_OK
	if c.o.refuse != nil {
		status = c.o.refuse("SETATTR", c.current)
	}
	d := c.o.dirs[c.current]
	if status == nfsv4.NFS4_OK && c.caller.UID != 0 && c.caller.UID != d.Owner {
		status = nfsv4.NFS4ERR_PERM
	}
	if status == nfsv4.NFS4_OK {
		c.o.dirs[c.current] = decode(op.Opsetattr.ObjAttributes, d)
	}
	return session.Fail(op, status)
}

func (c *compound) readdir(op *nfsv4.NfsArgop4_OP_READDIR) nfsv4.NfsResop4 {
	const page = 100
	c.o.calls["readdir"]++
	names := c.o.names(c.current)
	files := c.o.files[c.current]
	if number := op.Opreaddir.Cookie; number >= firstFile {
		return c.o.listFiles(&op.Opreaddir, int(number-firstFile), files)
	}
	var head, tail *nfsv4.Entry4
	first := 0
	if op.Opreaddir.Cookie > 0 {
		first = int(op.Opreaddir.Cookie) - 2
	}
	last := min(first+page, len(names))
	for i := first; i < last; i++ {
		e := &nfsv4.Entry4{
			Cookie: uint64(i + 3), Name: names[i],
			Attrs: c.o.attributes(path.Join(c.current, names[i]), op.Opreaddir.AttrRequest),
		}
		if head == nil {
			head = e
		} else {
			tail.Nextentry = e
		}
		tail = e
	}
	if files > 0 && last == len(names) {
		if head == nil {
			return c.o.listFiles(&op.Opreaddir, 0, files)
		}
		tail.Cookie = firstFile
	}
	return &nfsv4.NfsResop4_OP_READDIR{Opreaddir: &nfsv4.Readdir4res_NFS4_OK{
		Resok4: nfsv4.Readdir4resok{Reply: nfsv4.Dirlist4{Entries: head, Eof: last == len(names) && files == 0}},
	}}
}
