package operations

import (
	"context"
	"net/netip"
	"time"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"

	"github.com/howdah/howdah/internal/namespace/tree"
	nfs "github.com/howdah/howdah/internal/nfs4/client"
	"github.com/howdah/howdah/internal/nfs4/rpc"
	"github.com/howdah/howdah/internal/nfs4/session"
)

// Mutator makes, removes and renames directories. Permission of the caller in the
// namespace has been checked; that on the owner is checked by the owner.
type Mutator interface {
	// Mkdir makes a directory and gives its entry.
	Mkdir(ctx context.Context, req MkdirRequest) (tree.Entry, nfsv4.Nfsstat4)
	// Rmdir removes an empty directory.
	Rmdir(ctx context.Context, entry tree.Entry, caller tree.Credentials) nfsv4.Nfsstat4
	// Rename gives a directory another name, in the same or another directory of its share.
	Rename(ctx context.Context, entry, parent tree.Entry, name string, caller tree.Credentials) nfsv4.Nfsstat4
	// Begun reports whether a mkdir of a name is to be gone on with here: it got no answer, and what has the name may be its own.
	Begun(parent tree.Entry, name string) bool
	// Removed reports whether an rmdir of a name that is gone got no answer, and is done. It tells so once.
	Removed(parent tree.Entry, name string) bool
	// Renamed is the status of a rename of a name that is gone: NFS4_OK if it got no answer, and is done; it tells so once.
	Renamed(ctx context.Context, parent tree.Entry, name string, to tree.Entry, toName string) nfsv4.Nfsstat4
	// Refresh has the tree show a name of a directory as the API has it now, not as it was a moment ago. there: the API has it. The tree may
	// show another one at once, that was made and removed before: a watch that was cut off brings all that it missed. Another status
	// than NFS4_OK: it can't, and the client must try again.
	Refresh(ctx context.Context, parent tree.Entry, name string) (there bool, status nfsv4.Nfsstat4)
	// Awaited reports whether a client has to wait for a name that the tree does not have, or for "" for any in a directory: the directory may exist,
	// and have lost its ShareDirectory. MayBeAwaited reports, without a look at a data server, whether it may be so.
	Awaited(ctx context.Context, parent tree.Entry, name string) bool
	MayBeAwaited(parent tree.Entry, name string) bool
	// SetAttributes sets what is set in the settings. Those of a distributed directory are its owner's to set and to refuse.
	SetAttributes(ctx context.Context, entry tree.Entry, settings tree.Settings, caller tree.Credentials) nfsv4.Nfsstat4
}

// MkdirRequest asks for a directory.
type MkdirRequest struct {
	Parent tree.Entry
	Name   string
	// Caller has the credentials after squashing.
	Caller tree.Credentials
	Mode   uint32
	// Owner and Group are set if the caller asked for others than its own.
	Owner, Group *uint32
}

// Config is what a Handler works with.
type Config struct {
	Tree    *tree.Tree
	Mutator Mutator
	// Reachable tells whether a data server answers, by the last probe.
	Reachable func(server string) bool
	// Look asks a junction's data server for the attributes of the directory there. nil: referrals have no owner and times.
	Look func(ctx context.Context, target *tree.Target) (nfs.Attributes, error)
	// Own are the addresses at which clients that came by a door reach the namespace servers; nil: they are not known.
	Own func(door string) []string
	// Now is the clock.
	Now func() time.Time
	// MaxWait is how long a lookup is put off (NFS4ERR_DELAY) while an owner does not serve or a
	// directory is being made. 0: for as long as the client waits, as a hard mount does.
	MaxWait time.Duration
	// Hold is how long a lookup is held before it is put off; 0: not at all. Ends ends that early, because the server stops; may be nil.
	// Held is how many are held at a time.
	Hold time.Duration
	Ends <-chan struct{}
	Held int
	// LeaseSeconds is the lease_time attribute.
	LeaseSeconds uint32
	// Refused gets clients that ask for a share whose access rules do not allow them; may be nil.
	Refused func(share string, client netip.AddrPort)
	// FoundHot gets directories that have enough clients to be hot, again and again while that is not recorded. It does not wait; may be nil.
	FoundHot func(e tree.Entry)
	// Observe gets every operation; may be nil.
	Observe func(op nfsv4.NfsOpnum4, status nfsv4.Nfsstat4, took time.Duration)
}

// Handler implements session.Handler.
type Handler struct {
	Config
	delays delays
	holds  holds
	fresh  fresh
	routes routes
}

// New makes a Handler.
func New(config Config) *Handler {
	return &Handler{
		Config: config, delays: delays{now: config.Now, limit: config.MaxWait, waits: map[string]wait{}},
		holds:  holds{limit: config.Hold, ends: config.Ends, most: config.Held, of: map[netip.Addr]int{}},
		routes: routes{now: config.Now},
	}
}

// Begin implements session.Handler.
func (h *Handler) Begin(_ context.Context, caller rpc.Caller, minorVersion uint32) session.Compound {
	if caller.Anonymous {
		caller.UID, caller.GID, caller.GIDs = tree.SquashedID, tree.SquashedID, nil
	}
	return &compound{h: h, caller: caller, minor: minorVersion}
}

// handle is a current or saved file handle.
type handle struct {
	id tree.ID
	// unentered is set for a junction as its maker sees it before entering it: a directory with all attributes (fresh.go).
	unentered *tree.Entry
	// waiting is set for a place where clients wait for a junction (waiting.go); id is that of the place then.
	waiting *tree.Waiting
	// entered is the path in such a place of a junction that has another owner now.
	entered string
}

// compound is the state of one compound.
type compound struct {
	h       *Handler
	caller  rpc.Caller
	minor   uint32
	current *handle
	saved   *handle
}

// Do implements session.Compound.
func (c *compound) Do(ctx context.Context, op nfsv4.NfsArgop4) nfsv4.NfsResop4 {
	if c.h.Observe == nil {
		return c.do(ctx, op)
	}
	began := c.h.Now()
	res := c.do(ctx, op)
	c.h.Observe(op.GetArgop(), session.StatusOf(res), c.h.Now().Sub(began))
	return res
}

func (c *compound) do(ctx context.Context, op nfsv4.NfsArgop4) nfsv4.NfsResop4 {
	if c.enters(op) {
		c.h.fresh.enter(c.caller.Addr, c.current.id)
		return session.Fail(op, nfsv4.NFS4ERR_STALE)
	}
	switch o := op.(type) {
	case *nfsv4.NfsArgop4_OP_GETFH:
		return c.getfh(o)
	case *nfsv4.NfsArgop4_OP_GETATTR:
		return c.getattr(ctx, o)
	case *nfsv4.NfsArgop4_OP_ACCESS:
		return c.access(o)
	case *nfsv4.NfsArgop4_OP_READDIR:
		return c.readdir(ctx, o)
	case *nfsv4.NfsArgop4_OP_SECINFO:
		return c.secinfo(ctx, o)
	case *nfsv4.NfsArgop4_OP_SECINFO_NO_NAME:
		return c.secinfoNoName(o)
	case *nfsv4.NfsArgop4_OP_CREATE:
		return c.create(ctx, o)
	case *nfsv4.NfsArgop4_OP_REMOVE:
		return c.remove(ctx, o)
	case *nfsv4.NfsArgop4_OP_RENAME:
		return c.rename(ctx, o)
	case *nfsv4.NfsArgop4_OP_SETATTR:
		return c.setattr(ctx, o)
	}
	return session.Fail(op, c.status(ctx, op))
}

// status does the operations that return nothing but a status.
func (c *compound) status(ctx context.Context, op nfsv4.NfsArgop4) nfsv4.Nfsstat4 {
	switch o := op.(type) {
	case *nfsv4.NfsArgop4_OP_PUTROOTFH, *nfsv4.NfsArgop4_OP_PUTPUBFH:
		c.current = &handle{id: c.h.Tree.Root().ID}
		return nfsv4.NFS4_OK
	case *nfsv4.NfsArgop4_OP_PUTFH:
		return c.putfh(o.Opputfh.Object)
	case *nfsv4.NfsArgop4_OP_SAVEFH:
		_, status := c.directory()
		if status == nfsv4.NFS4_OK {
			c.saved = c.current
		}
		return status
	case *nfsv4.NfsArgop4_OP_RESTOREFH:
		if c.saved == nil {
			return nfsv4.NFS4ERR_NOFILEHANDLE
		}
		c.current = c.saved
		return nfsv4.NFS4_OK
	case *nfsv4.NfsArgop4_OP_LOOKUP:
		return c.lookup(ctx, o.Oplookup.Objname)
	case *nfsv4.NfsArgop4_OP_LOOKUPP:
		return c.lookupp()
	case *nfsv4.NfsArgop4_OP_VERIFY:
		return c.verify(o.Opverify.ObjAttributes, nfsv4.NFS4_OK, nfsv4.NFS4ERR_NOT_SAME)
	case *nfsv4.NfsArgop4_OP_NVERIFY:
		return c.verify(o.Opnverify.ObjAttributes, nfsv4.NFS4ERR_SAME, nfsv4.NFS4_OK)
	}
	return c.refuse(ctx, op)
}
