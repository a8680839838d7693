package operations

import (
	"context"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"

	"github.com/howdah/howdah/internal/namespace/tree"
	"github.com/howdah/howdah/internal/nfs4/session"
)

// changes tells a client how a directory changed. It is never atomic: others change the
// directory at the same time, here and through other replicas.
func (c *compound) changes(before *tree.Entry) nfsv4.ChangeInfo4 {
	info := nfsv4.ChangeInfo4{Before: c.h.change(before), After: c.h.change(before)}
	if after, ok := c.h.Tree.Get(before.ID); ok {
		info.After = c.h.change(&after)
	}
	return info
}

// writable is the status of a change in a directory by the caller: NFS4ERR_ROFS above the
// shares and for clients that may only read, NFS4ERR_ACCESS without permission.
func (c *compound) writable(dir *tree.Entry) (tree.Credentials, nfsv4.Nfsstat4) {
	creds, readOnly := c.credentials(dir)
	if readOnly {
		return creds, nfsv4.NFS4ERR_ROFS
	}
	return creds, c.may(dir, tree.Write|tree.Execute)
}

// mayChange reports whether the caller may change a directory of a share.
func (c *compound) mayChange(dir *tree.Entry) bool {
	_, status := c.writable(dir)
	return status == nfsv4.NFS4_OK && dir.Share != nil
}

// createStatus is the status of an object type for CREATE (RFC 8881 section 18.4.3). What a file system could
// have and the namespace has not is NFS4ERR_PERM: NFS4ERR_BADTYPE would be "Unknown error 527" to a user of Linux.
func createStatus(kind nfsv4.Createtype4) nfsv4.Nfsstat4 {
	if kind == nil {
		return nfsv4.NFS4ERR_BADTYPE
	}
	switch kind.GetType() {
	case nfsv4.NF4DIR:
		return nfsv4.NFS4_OK
	case nfsv4.NF4LNK, nfsv4.NF4BLK, nfsv4.NF4CHR, nfsv4.NF4SOCK, nfsv4.NF4FIFO:
		return nfsv4.NFS4ERR_PERM
	}
	return nfsv4.NFS4ERR_BADTYPE
}

// create is CREATE (RFC 8881 section 18.4): mkdir. Anything else can't be in the namespace.
func (c *compound) create(ctx context.Context, op *nfsv4.NfsArgop4_OP_CREATE) nfsv4.NfsResop4 {
	args := &op.Opcreate
	dir, status := c.directory()
	if status == nfsv4.NFS4_OK {
		status = checkName(args.Objname)
	}
	kind := createStatus(args.Objtype)
	if status == nfsv4.NFS4_OK && kind == nfsv4.NFS4ERR_BADTYPE {
		status = kind
	}
	if status != nfsv4.NFS4_OK {
		return session.Fail(op, status)
	}
	creds, status := c.writable(&dir)
	if status == nfsv4.NFS4ERR_ROFS {
		return session.Fail(op, status)
	}
	// NFS4ERR_EXIST goes to callers without write permission, too: "mkdir -p" relies on it.
	if exists := c.exists(ctx, &dir, args.Objname, status == nfsv4.NFS4_OK); exists != nfsv4.NFS4ERR_NOENT {
		return session.Fail(op, exists)
	}
	switch {
	case kind != nfsv4.NFS4_OK:
		return session.Fail(op, kind)
	case status != nfsv4.NFS4_OK:
		return session.Fail(op, status)
	case isReserved(args.Objname):
		return session.Fail(op, nfsv4.NFS4ERR_PERM)
	}
	req, status := mkdirRequest(args, creds)
	if status != nfsv4.NFS4_OK {
		return session.Fail(op, status)
	}
	req.Parent = dir
	made, status := c.h.Mutator.Mkdir(ctx, req)
	if status != nfsv4.NFS4_OK {
		return session.Fail(op, status)
	}
	c.current = &handle{id: made.ID}
	if made.Junction() {
		c.h.fresh.add(c.caller.Addr, made.ID)
		c.current = unentered(made)
	}
	return &nfsv4.NfsResop4_OP_CREATE{Opcreate: &nfsv4.Create4res_NFS4_OK{Resok4: nfsv4.Create4resok{
		Cinfo: c.changes(&dir), Attrset: trim(args.Createattrs.Attrmask),
	}}}
}

// exists is NFS4ERR_EXIST for a name that a directory has, and NFS4ERR_NOENT for one that it does not have. What another server has
// removed a moment ago does not exist for who may make it again, nor does what a mkdir without an answer may have made itself.
func (c *compound) exists(ctx context.Context, dir *tree.Entry, name string, mayMake bool) nfsv4.Nfsstat4 {
	e, ok := c.h.Tree.Lookup(dir.ID, name)
	exists := ok && c.sees(&e)
	if exists && mayMake && e.Directory != nil && dir.Share != nil {
		if c.h.Mutator.Begun(*dir, name) {
			return nfsv4.NFS4ERR_NOENT
		}
		var status nfsv4.Nfsstat4
		if exists, status = c.h.Mutator.Refresh(ctx, *dir, name); status != nfsv4.NFS4_OK {
			return status
		}
	}
	if exists {
		return nfsv4.NFS4ERR_EXIST
	}
	return nfsv4.NFS4ERR_NOENT
}

// defaultMode is that of a directory whose maker gave none.
const defaultMode = 0o755

// settable is the status of setting attributes of which some can be set: NFS4ERR_ATTRNOTSUPP for what the server does not
// know, NFS4ERR_INVAL for what it knows and only gives (RFC 8881 section 5.5).
func settable(mask, can []uint32) nfsv4.Nfsstat4 {
	switch {
	case !within(mask, union(can, supported(maxMinor))):
		return nfsv4.NFS4ERR_ATTRNOTSUPP
	case !within(mask, can):
		return nfsv4.NFS4ERR_INVAL
	}
	return nfsv4.NFS4_OK
}

// mkdirRequest reads the attributes of a CREATE. Mode, owner and group can be given; an
// owner or group that is not the caller's own only by uid 0 (chown_restricted).
func mkdirRequest(args *nfsv4.Create4args, creds tree.Credentials) (MkdirRequest, nfsv4.Nfsstat4) {
	req := MkdirRequest{Name: args.Objname, Caller: creds, Mode: defaultMode}
	r := reader{b: args.Createattrs.AttrVals}
	mask := args.Createattrs.Attrmask
	if status := settable(mask, bitmapOf(nfsv4.FATTR4_MODE, nfsv4.FATTR4_OWNER, nfsv4.FATTR4_OWNER_GROUP)); status != nfsv4.NFS4_OK {
		return req, status
	}
	if hasBit(mask, nfsv4.FATTR4_MODE) {
		req.Mode = r.u32()
		if req.Mode&^0o7777 != 0 {
			return req, nfsv4.NFS4ERR_INVAL
		}
	}
	if hasBit(mask, nfsv4.FATTR4_OWNER) {
		req.Owner = r.id()
	}
	if hasBit(mask, nfsv4.FATTR4_OWNER_GROUP) {
		req.Group = r.id()
	}
	switch {
	case r.malformed || len(r.b) != 0:
		return req, nfsv4.NFS4ERR_BADXDR
	case r.badOwner:
		return req, nfsv4.NFS4ERR_BADOWNER
	case req.Owner != nil && *req.Owner != creds.UID && creds.UID != 0:
		return req, nfsv4.NFS4ERR_PERM
	case req.Group != nil && *req.Group != creds.GID && creds.UID != 0:
		return req, nfsv4.NFS4ERR_PERM
	}
	return req, nfsv4.NFS4_OK
}

// remove is REMOVE (RFC 8881 section 18.25): rmdir.
func (c *compound) remove(ctx context.Context, op *nfsv4.NfsArgop4_OP_REMOVE) nfsv4.NfsResop4 {
	dir, e, creds, status := c.removable(ctx, c.current, op.Opremove.Target)
	switch {
	case status == nfsv4.NFS4_OK:
		status = c.h.Mutator.Rmdir(ctx, e, creds)
	case status == nfsv4.NFS4ERR_NOENT && c.mayChange(&dir) && c.h.Mutator.Removed(dir, op.Opremove.Target):
		status = nfsv4.NFS4_OK
	}
	if status != nfsv4.NFS4_OK {
		return session.Fail(op, status)
	}
	return &nfsv4.NfsResop4_OP_REMOVE{Opremove: &nfsv4.Remove4res_NFS4_OK{
		Resok4: nfsv4.Remove4resok{Cinfo: c.changes(&dir)},
	}}
}

// removable gives an entry that the caller may remove from a directory.
func (c *compound) removable(ctx context.Context, h *handle, name string) (dir, e tree.Entry, creds tree.Credentials, status nfsv4.Nfsstat4) {
	dir, status = c.resolve(h)
	switch {
	case status != nfsv4.NFS4_OK:
		return dir, e, creds, status
	case dir.Junction():
		return dir, e, creds, nfsv4.NFS4ERR_MOVED
	case h.unentered != nil:
		return dir, e, creds, nfsv4.NFS4ERR_STALE
	}
	if status = checkName(name); status != nfsv4.NFS4_OK {
		return dir, e, creds, status
	}
	creds, status = c.writable(&dir)
	if status == nfsv4.NFS4ERR_ROFS {
		return dir, e, creds, status
	}
	e, pending, ok := c.find(dir.ID, name)
	if !ok && pending == nil && dir.Share != nil {
		// Another server may have made it a moment ago.
		if _, status := c.h.Mutator.Refresh(ctx, dir, name); status != nfsv4.NFS4_OK {
			return dir, e, creds, status
		}
		e, pending, ok = c.find(dir.ID, name)
	}
	switch {
	case !ok && (pending != nil || c.awaits(ctx, &dir, name)):
		return dir, e, creds, nfsv4.NFS4ERR_DELAY
	case !ok:
		return dir, e, creds, nfsv4.NFS4ERR_NOENT
	case status != nfsv4.NFS4_OK || !mayUnlink(&dir, &e, creds):
		return dir, e, creds, nfsv4.NFS4ERR_ACCESS
	}
	return dir, e, creds, nfsv4.NFS4_OK
}

// mayUnlink tells whether a caller may take an entry out of a directory. In a sticky directory it matters whose the
// entry is, and of a distributed one only its data server knows: it judges by its copy of the directory.
func mayUnlink(dir, e *tree.Entry, creds tree.Credentials) bool {
	if e.Distributed() {
		return dir.Permitted(creds)&(tree.Write|tree.Execute) == tree.Write|tree.Execute
	}
	return dir.MayUnlink(creds, e.Owner)
}

// rename is RENAME (RFC 8881 section 18.26), from the saved to the current directory.
func (c *compound) rename(ctx context.Context, op *nfsv4.NfsArgop4_OP_RENAME) nfsv4.NfsResop4 {
	args := &op.Oprename
	to, status := c.directory()
	if status != nfsv4.NFS4_OK {
		return session.Fail(op, status)
	}
	if c.saved == nil {
		return session.Fail(op, nfsv4.NFS4ERR_NOFILEHANDLE)
	}
	from, e, creds, status := c.removable(ctx, c.saved, args.Oldname)
	if status == nfsv4.NFS4_OK || status == nfsv4.NFS4ERR_NOENT {
		if name := checkName(args.Newname); name != nfsv4.NFS4_OK {
			status = name
		}
	}
	if status == nfsv4.NFS4ERR_NOENT && from.Share != nil && to.Share != nil && from.Share.Name == to.Share.Name && c.mayChange(&from) {
		if status = c.h.Mutator.Renamed(ctx, from, args.Oldname, to, args.Newname); status == nfsv4.NFS4_OK {
			return c.renamed(&from, &to)
		}
	}
	if status == nfsv4.NFS4_OK {
		status = c.renameTarget(&from, &to, &e, args.Newname)
	}
	if status == nfsv4.NFS4_OK && (from.ID != to.ID || args.Oldname != args.Newname) {
		status = c.h.Mutator.Rename(ctx, e, to, args.Newname, creds)
	}
	if status != nfsv4.NFS4_OK {
		return session.Fail(op, status)
	}
	return c.renamed(&from, &to)
}

func (c *compound) renamed(from, to *tree.Entry) nfsv4.NfsResop4 {
	return &nfsv4.NfsResop4_OP_RENAME{Oprename: &nfsv4.Rename4res_NFS4_OK{
		Resok4: nfsv4.Rename4resok{SourceCinfo: c.changes(from), TargetCinfo: c.changes(to)},
	}}
}

// renameTarget is the status of the place that a directory is to get.
func (c *compound) renameTarget(from, to, e *tree.Entry, name string) nfsv4.Nfsstat4 {
	switch {
	case to.Share == nil || to.Share.Name != from.Share.Name:
		return nfsv4.NFS4ERR_XDEV
	case from.ID == to.ID && e.Name() == name:
		return nfsv4.NFS4_OK
	}
	if _, status := c.writable(to); status != nfsv4.NFS4_OK {
		return status
	}
	if isReserved(name) {
		return nfsv4.NFS4ERR_PERM
	}
	// What has the name and is not shown may be this rename itself, begun by an earlier try.
	pending := c.h.Tree.Pending(to.ID, name)
	if pending != nil && pending.RenamedFrom != e.Rel {
		return nfsv4.NFS4ERR_DELAY
	}
	target, exists := c.h.Tree.Lookup(to.ID, name)
	exists = exists && pending == nil
	creds, _ := c.credentials(to)
	switch {
	case exists && !mayUnlink(to, &target, creds):
		return nfsv4.NFS4ERR_ACCESS
	case exists && target.Directory == nil:
		return nfsv4.NFS4ERR_EXIST // It is there because of what is in it. Of others the mutator finds out whether they are empty.
	case from.ID != to.ID && !e.Junction() && e.Permitted(creds)&tree.Write == 0:
		return nfsv4.NFS4ERR_ACCESS // its ".." changes; of a distributed directory its owner judges that
	case tree.Depth(from.Rel) != tree.Depth(to.Rel):
		// Distributed directories are all at one depth, so it can't live there; nor would a copy.
		return nfsv4.NFS4ERR_PERM
	}
	return nfsv4.NFS4_OK
}
