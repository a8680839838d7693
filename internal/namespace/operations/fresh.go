package operations

import (
	"context"
	"net/netip"
	"sync"
	"time"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"

	"github.com/howdah/howdah/internal/namespace/tree"
	"github.com/howdah/howdah/internal/nfs4/session"
)

// A directory that a client has just made is a junction, and what the client gets in the compound that makes it decides
// what its kernel does next. Three things are wanted: mkdir must be followed by anything (cp into it opens it with O_PATH
// and keeps what it got, so that must be where the data server is mounted), its attributes can be read and set before
// it is entered (rsync does), and what is mounted there must stay when the kernel looks the name up again.
//
// So its maker gets a handle (tree.HandleCreated), all attributes, and the fsid that the junction has: to Linux, the root
// of another file system that is to be mounted on it when it is entered. It sees the same in every LOOKUP until then.
// To enter it, Linux looks it up and asks that file system for what it supports. That is stale here, and from then on a
// LOOKUP is a referral, as it is for everybody else: Linux walks the path again (every walk that ends with ESTALE is
// repeated once, with all names looked up again), drops the directory that it had, finds the referral, and mounts the data
// server on that. A referral has no handle in Linux, so it stays the same one in all further lookups. If Linux mounted the
// data server on the first one, it would take that mount away at the next lookup, from under who works in it.
//
// While one process walks again, others may be on their way through the directory that is dropped. A LOOKUP of theirs that was
// answered with the referral would mount it there: ENOENT, since Linux mounts nothing on what was dropped. So every LOOKUP
// after the first try to enter is kept waiting until no other came for settleEntry, and then is stale, too: those who repeat
// their walk anyway drop the directory for that, and those who were on their way repeat theirs.

// maxFresh is how many directories are remembered, at least. A forgotten one is a referral already
// at the first LOOKUP, which works but for the last sentence above.
const maxFresh = 8192

// settleEntry is long for processes that were started together, and short for one that is alone. However many
// come, none waits for longer than settleMost.
const (
	settleEntry = 20 * time.Millisecond
	settleMost  = 10 * settleEntry
)

// fresh remembers directories that their makers have not entered. The zero value is ready.
type fresh struct {
	mu sync.Mutex
	// newer takes what is added; when it is full it becomes the older one, and that is forgotten.
	newer, older map[made]struct{}
	// entering are those that their makers enter now.
	entering map[made]*entry
}

// entry is the first entry of a directory by its maker.
type entry struct {
	began time.Time
	quiet *time.Timer
	// referred is closed when who looks the directory up may find the referral.
	referred chan struct{}
}

// made is a directory and the client that made it.
type made struct {
	by netip.Addr
	id tree.ID
}

func (f *fresh) add(by netip.Addr, id tree.ID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.newer == nil || len(f.newer) >= maxFresh {
		f.newer, f.older = map[made]struct{}{}, f.newer
	}
	f.newer[made{by, id}] = struct{}{}
}

func (f *fresh) has(by netip.Addr, id tree.ID) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, newer := f.newer[made{by, id}]
	_, older := f.older[made{by, id}]
	return newer || older
}

// enter has a directory become a referral to its maker, once no process of it is on its way any more.
func (f *fresh) enter(by netip.Addr, id tree.ID) {
	m := made{by, id}
	f.mu.Lock()
	defer f.mu.Unlock()
	_, newer := f.newer[m]
	_, older := f.older[m]
	if !newer && !older {
		f.delay(f.entering[m])
		return
	}
	delete(f.newer, m)
	delete(f.older, m)
	if f.entering == nil {
		f.entering = map[made]*entry{}
	}
	e := &entry{began: time.Now(), referred: make(chan struct{})}
	f.entering[m] = e
	e.quiet = time.AfterFunc(settleEntry, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.entering[m] == e {
			delete(f.entering, m)
			close(e.referred)
		}
	})
}

// delay notes that another process is on its way. f.mu is held.
func (f *fresh) delay(e *entry) {
	if e != nil {
		e.quiet.Reset(min(settleEntry, settleMost-time.Since(e.began)))
	}
}

// awaitMaker waits while a directory's maker enters it, without a place at the session server's gate; false: its maker does not enter it.
func (f *fresh) awaitMaker(ctx context.Context, by netip.Addr, id tree.ID) bool {
	f.mu.Lock()
	e := f.entering[made{by, id}]
	f.delay(e)
	f.mu.Unlock()
	if e == nil {
		return false
	}
	session.Await(ctx, func() {
		select {
		case <-e.referred:
		case <-ctx.Done():
		}
	})
	return true
}

// unentered is the handle of a junction as its maker sees it: without the target.
func unentered(e tree.Entry) *handle {
	e.Target = nil
	return &handle{id: e.ID, unentered: &e}
}

// enters tells whether an operation wants more of an unentered directory than to be looked at or to have its attributes
// set. Only a client that mounts it as a file system asks what that supports.
func (c *compound) enters(op nfsv4.NfsArgop4) bool {
	if c.current == nil || c.current.unentered == nil {
		return false
	}
	switch o := op.(type) {
	case *nfsv4.NfsArgop4_OP_GETATTR:
		return hasBit(o.Opgetattr.AttrRequest, nfsv4.FATTR4_SUPPORTED_ATTRS) || hasBit(o.Opgetattr.AttrRequest, nfsv4.FATTR4_FS_LOCATIONS)
	case *nfsv4.NfsArgop4_OP_GETFH, *nfsv4.NfsArgop4_OP_ACCESS, *nfsv4.NfsArgop4_OP_SETATTR,
		*nfsv4.NfsArgop4_OP_PUTFH, *nfsv4.NfsArgop4_OP_PUTROOTFH, *nfsv4.NfsArgop4_OP_PUTPUBFH, *nfsv4.NfsArgop4_OP_RESTOREFH:
		return false
	}
	return true
}
