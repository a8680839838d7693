package operations

import (
	"context"
	"net/netip"
	"strings"
	"unicode/utf8"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"

	"github.com/howdah/howdah/internal/namespace/tree"
	"github.com/howdah/howdah/internal/naming"
	"github.com/howdah/howdah/internal/nfs4/session"
)

// maxName is the longest name in bytes (the maxname attribute).
const maxName = 255

// checkName is the status of a name that a client gave (RFC 8881 sections 14.5 and
// 15.1.7). Names go into API objects, so they must be valid UTF-8.
func checkName(name string) nfsv4.Nfsstat4 {
	switch {
	case name == "":
		return nfsv4.NFS4ERR_INVAL
	case len(name) > maxName:
		return nfsv4.NFS4ERR_NAMETOOLONG
	case name == "." || name == "..":
		return nfsv4.NFS4ERR_BADNAME
	case strings.ContainsAny(name, "/\x00") || !utf8.ValidString(name):
		return nfsv4.NFS4ERR_BADCHAR
	}
	return nfsv4.NFS4_OK
}

// isReserved tells whether a name is one that directories do not get. Data servers keep Howdah's own directories under such names, so what has one is no
// client's to those who look for clients' directories: if its ShareDirectory were lost, it would not be shown again.
func isReserved(name string) bool { return strings.HasPrefix(name, naming.OwnPrefix) }

// entry is what the current file handle stands for.
func (c *compound) entry() (tree.Entry, nfsv4.Nfsstat4) {
	return c.resolve(c.current)
}

func (c *compound) resolve(h *handle) (tree.Entry, nfsv4.Nfsstat4) {
	if h == nil {
		return tree.Entry{}, nfsv4.NFS4ERR_NOFILEHANDLE
	}
	if h.unentered != nil {
		return *h.unentered, nfsv4.NFS4_OK
	}
	switch {
	case h.waiting != nil:
		return c.waitingEntry(h.waiting)
	case h.entered != "":
		return c.elsewhere(h)
	}
	e, ok, moving := c.h.Tree.Resolve(h.id)
	switch {
	case moving:
		return tree.Entry{}, nfsv4.NFS4ERR_DELAY
	case !ok || !c.sees(&e):
		return tree.Entry{}, nfsv4.NFS4ERR_STALE
	}
	return e, nfsv4.NFS4_OK
}

// directory is the current file handle, if it is a directory of the namespace. Behind
// a junction is an absent file system (RFC 8881 section 11.4): NFS4ERR_MOVED.
func (c *compound) directory() (tree.Entry, nfsv4.Nfsstat4) {
	e, status := c.entry()
	if status == nfsv4.NFS4_OK && e.Junction() {
		status = nfsv4.NFS4ERR_MOVED
	}
	return e, status
}

// sees tells whether the share's access rules let the caller see the entry.
func (c *compound) sees(e *tree.Entry) bool {
	if e.Share == nil {
		return true
	}
	_, ok := e.Share.Access(c.caller.Addr, c.caller.Port)
	return ok
}

// credentials are the caller's in a directory: squashed as the share's rule has it.
// readOnly: the caller may change nothing there.
func (c *compound) credentials(e *tree.Entry) (creds tree.Credentials, readOnly bool) {
	creds = tree.Credentials{UID: c.caller.UID, GID: c.caller.GID, Groups: c.caller.GIDs}
	if e.Share == nil {
		return creds, true
	}
	access, ok := e.Share.Access(c.caller.Addr, c.caller.Port)
	return tree.Squash(creds, access.Squash), access.ReadOnly || !ok
}

// may is NFS4ERR_ACCESS if the caller lacks a permission on a directory.
func (c *compound) may(e *tree.Entry, want uint32) nfsv4.Nfsstat4 {
	creds, _ := c.credentials(e)
	if e.Permitted(creds)&want != want {
		return nfsv4.NFS4ERR_ACCESS
	}
	return nfsv4.NFS4_OK
}

// putfh is PUTFH (RFC 8881 section 18.19). A junction has no handle but the one that its maker got (fresh.go).
func (c *compound) putfh(object []byte) nfsv4.Nfsstat4 {
	if place, ok := tree.DecodeWaiting(object); ok {
		return c.enterPlace(place)
	}
	kind, id, err := tree.DecodeHandle(object)
	if err != nil {
		return nfsv4.NFS4ERR_BADHANDLE
	}
	h := &handle{id: id}
	e, status := c.resolve(h)
	switch {
	case status != nfsv4.NFS4_OK:
		return status
	case e.Junction() != (kind == tree.HandleCreated):
		return nfsv4.NFS4ERR_STALE
	}
	if kind == tree.HandleCreated {
		h = unentered(e)
	}
	c.current = h
	return nfsv4.NFS4_OK
}

// getfh is GETFH (RFC 8881 section 18.8).
func (c *compound) getfh(op *nfsv4.NfsArgop4_OP_GETFH) nfsv4.NfsResop4 {
	e, status := c.directory()
	if status == nfsv4.NFS4ERR_MOVED {
		c.looked(&e)
	}
	if status != nfsv4.NFS4_OK {
		return session.Fail(op, status)
	}
	object := tree.EncodeHandle(tree.HandleDirectory, e.ID)
	switch {
	case c.current.unentered != nil:
		object = tree.EncodeHandle(tree.HandleCreated, e.ID)
	case c.current.waiting != nil:
		object = c.current.waiting.Handle()
	}
	return &nfsv4.NfsResop4_OP_GETFH{Opgetfh: &nfsv4.Getfh4res_NFS4_OK{Resok4: nfsv4.Getfh4resok{Object: object}}}
}

// lookup is LOOKUP (RFC 8881 section 18.13). A junction whose owner does not serve it is entered only if the client has another place to wait:
// its kernel would mount the owner now, and fail.
func (c *compound) lookup(ctx context.Context, name string) nfsv4.Nfsstat4 {
	status := c.enterChild(ctx, name)
	if status == nfsv4.NFS4ERR_DELAY && c.h.holds.until(ctx, c.caller, func() bool { return c.couldEnter(ctx, name) }) {
		return c.enterChild(ctx, name)
	}
	return status
}

// couldEnter tells whether a LOOKUP would not be put off any more.
func (c *compound) couldEnter(ctx context.Context, name string) bool {
	dir, status := c.directory()
	if status != nfsv4.NFS4_OK {
		return true
	}
	if c.current.waiting != nil {
		status, _ := c.awaitServed(ctx, name)
		return status != nfsv4.NFS4ERR_DELAY
	}
	e, pending, ok := c.find(dir.ID, name)
	if !ok {
		return pending == nil && !c.h.Mutator.MayBeAwaited(dir, name)
	}
	if e.Junction() {
		c.route(&e)
	}
	return !e.Junction() || c.isServed(&e)
}

// isServed tells whether the data server of a junction serves it, answers, and has an address for the caller.
func (c *compound) isServed(e *tree.Entry) bool {
	return e.Target.Serves && c.h.Reachable(e.Target.Server) && len(c.locations(e)) > 0
}

func (c *compound) enterChild(ctx context.Context, name string) nfsv4.Nfsstat4 {
	if status, isWaiting := c.enterWaiting(ctx, name); isWaiting {
		return status
	}
	e, status := c.child(ctx, name)
	if status != nfsv4.NFS4_OK {
		return status
	}
	if e.Junction() && c.h.fresh.has(c.caller.Addr, e.ID) {
		c.current = unentered(e)
		return nfsv4.NFS4_OK
	}
	if e.Junction() && c.h.fresh.awaitMaker(ctx, c.caller.Addr, e.ID) {
		return nfsv4.NFS4ERR_STALE
	}
	if e.Junction() {
		c.route(&e)
		if len(c.waitsAt(&e)) == 0 && c.awaitsOwner(&e, c.isServed(&e)) {
			return nfsv4.NFS4ERR_DELAY
		}
	}
	c.current = &handle{id: e.ID}
	return nfsv4.NFS4_OK
}

// child is the entry of a name in the current directory, if the caller sees it. A client waits for what may exist, though the API does not know of it.
func (c *compound) child(ctx context.Context, name string) (tree.Entry, nfsv4.Nfsstat4) {
	e, status := c.shown(name)
	if status != nfsv4.NFS4ERR_NOENT {
		return e, status
	}
	if dir, status := c.directory(); status == nfsv4.NFS4_OK && c.awaits(ctx, &dir, name) {
		return tree.Entry{}, nfsv4.NFS4ERR_DELAY
	}
	return c.shown(name) // It may have come back before that was asked.
}

// awaits tells whether the caller has to wait for a name in a directory that is not shown, or for "" for any.
func (c *compound) awaits(ctx context.Context, dir *tree.Entry, name string) (awaited bool) {
	if c.h.Mutator.MayBeAwaited(*dir, name) {
		session.Await(ctx, func() { awaited = c.h.Mutator.Awaited(ctx, *dir, name) })
	}
	return awaited
}

// shown is child for what the tree shows.
func (c *compound) shown(name string) (tree.Entry, nfsv4.Nfsstat4) {
	dir, status := c.directory()
	if status != nfsv4.NFS4_OK {
		return tree.Entry{}, status
	}
	if status := checkName(name); status != nfsv4.NFS4_OK {
		return tree.Entry{}, status
	}
	if status := c.may(&dir, tree.Execute); status != nfsv4.NFS4_OK {
		return tree.Entry{}, status
	}
	e, pending, ok := c.find(dir.ID, name)
	if ok && c.sees(&e) {
		return e, nfsv4.NFS4_OK
	}
	if ok && c.h.Refused != nil {
		c.h.Refused(e.Share.Name, netip.AddrPortFrom(c.caller.Addr, c.caller.Port))
	}
	// A name that is being made exists for a caller of mkdir (NFS4ERR_EXIST), so it must
	// not be missing for a lookup.
	if pending != nil && c.h.delays.delay("ShareDirectory "+pending.UID, false) {
		return tree.Entry{}, nfsv4.NFS4ERR_DELAY
	}
	// What is in a directory that has just gone, or is getting another name, is not missing in it.
	if _, status := c.directory(); status != nfsv4.NFS4_OK {
		return tree.Entry{}, status
	}
	return tree.Entry{}, nfsv4.NFS4ERR_NOENT
}

// find is what has a name in a directory, or the ShareDirectory of what is being made or changed there, if that is not shown. It looks again after
// it: what became ready in between is neither.
func (c *compound) find(dir tree.ID, name string) (e tree.Entry, pending *tree.Directory, ok bool) {
	if e, ok = c.h.Tree.Lookup(dir, name); ok {
		return e, nil, true
	}
	pending = c.h.Tree.Pending(dir, name)
	e, ok = c.h.Tree.Lookup(dir, name)
	return e, pending, ok
}

// lookupp is LOOKUPP (RFC 8881 section 18.14).
func (c *compound) lookupp() nfsv4.Nfsstat4 {
	dir, status := c.directory()
	if status != nfsv4.NFS4_OK {
		return status
	}
	if status := c.may(&dir, tree.Execute); status != nfsv4.NFS4_OK {
		return status
	}
	e, ok := c.h.Tree.Parent(dir.ID)
	if !ok {
		return nfsv4.NFS4ERR_NOENT
	}
	c.current = &handle{id: e.ID}
	return nfsv4.NFS4_OK
}
