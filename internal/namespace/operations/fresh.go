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

// A directory that a client has just made is a junction. The answer to the compound that makes it decides what the
// client's kernel does next. Three things must work: any use directly after mkdir (cp opens the directory with O_PATH
// and keeps what it got, so that must be the mount of the data server); reading and setting attributes before the
// directory is entered (rsync does that); and the mount must stay when the kernel looks up the name again.
//
// So the maker gets a handle (tree.HandleCreated), all attributes, and the junction's fsid. To Linux this is the root
// of another file system, to be mounted when it is entered. Each LOOKUP returns the same until then. To enter it, Linux
// looks it up and asks that file system for its supported attributes. The answer is NFS4ERR_STALE, and from then on a
// LOOKUP returns the referral, as for all other clients. Linux then walks the path again (it repeats every walk that
// ends with ESTALE once, with new lookups), drops its old directory, finds the referral, and mounts the data server
// there. A referral has no handle in Linux, so it stays the same in later lookups. If Linux mounted the data server on
// the first directory, the next lookup would remove that mount while processes use it.
//
// While one process repeats its walk, others may be walking through the dropped directory. If their LOOKUP returned the
// referral, Linux would try to mount it on the dropped directory and fail with ENOENT. So every LOOKUP after the first
// try to enter waits until no other LOOKUP came for settleEntry, and then returns NFS4ERR_STALE, too. Then all
// processes repeat their walk.

// maxFresh is the minimum number of remembered directories. A forgotten one is a referral at the first LOOKUP, which
// works except for the removed mount described above.
const maxFresh = 8192

// settleEntry is long enough for processes that start together, and short for a single one. No process waits longer
// than settleMost.
const (
	settleEntry = 20 * time.Millisecond
	settleMost  = 10 * settleEntry
)

// fresh has directories that their makers have not entered. The zero value is ready.
type fresh struct {
	mu sync.Mutex
	// newer gets new entries. When it is full it becomes older, and the previous older is forgotten.
	newer, older map[made]struct{}
	// entering has directories that their makers enter now.
	entering map[made]*entry
}

// entry is the first entry of a directory by its maker.
type entry struct {
	began time.Time
	quiet *time.Timer
	// referred is closed when a LOOKUP may return the referral.
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

// enter makes a directory a referral for its maker, after the last process that is entering it.
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

// delay records that another process enters the directory. f.mu is held.
func (f *fresh) delay(e *entry) {
	if e != nil {
		e.quiet.Reset(min(settleEntry, settleMost-time.Since(e.began)))
	}
}

// awaitMaker waits while a directory's maker enters it. It gives up its place at the session server's gate meanwhile.
// false: the maker does not enter it.
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

// unentered is the handle of a junction for its maker: without the target.
func unentered(e tree.Entry) *handle {
	e.Target = nil
	return &handle{id: e.ID, unentered: &e}
}

// enters reports whether an operation means that the client enters the directory, and does not only read or set its
// attributes. Only a client that mounts it as a file system asks for the supported attributes.
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
