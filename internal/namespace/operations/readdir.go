package operations

import (
	"context"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"

	"github.com/howdah/howdah/internal/namespace/tree"
	"github.com/howdah/howdah/internal/nfs4/session"
)

// cookieVerifier goes with every cookie. It never changes, because cookies are hashes
// of identities and stay valid.
var cookieVerifier = [8]byte{'h', 'o', 'w', 'd', 'a', 'h', 0, 1}

const (
	// readdirOverhead is the size of a READDIR4resok without entries: cookieverf, the end of the list, eof.
	readdirOverhead = 8 + 4 + 4
	// maxReaddir is the most that one READDIR gives, in bytes, whatever the client asks for.
	maxReaddir = 1 << 20
	// maxBatch is how many entries are copied under the tree's lock at a time, at the most.
	maxBatch = 256
	// entryBytes is less than an entry with the usual attributes takes.
	entryBytes = 64
)

// readdir is READDIR (RFC 8881 section 18.23).
func (c *compound) readdir(ctx context.Context, op *nfsv4.NfsArgop4_OP_READDIR) nfsv4.NfsResop4 {
	args := &op.Opreaddir
	dir, status := c.directory()
	if status == nfsv4.NFS4_OK {
		status = c.may(&dir, tree.Read)
	}
	switch {
	case status != nfsv4.NFS4_OK:
		return session.Fail(op, status)
	case args.Cookie == 1 || args.Cookie == 2 || args.Cookie >= 1<<63:
		return session.Fail(op, nfsv4.NFS4ERR_BAD_COOKIE)
	case args.Cookie != 0 && args.Cookieverf != cookieVerifier:
		return session.Fail(op, nfsv4.NFS4ERR_NOT_SAME)
	case writeOnly(args.AttrRequest):
		return session.Fail(op, nfsv4.NFS4ERR_INVAL)
	case args.Maxcount < readdirOverhead:
		return session.Fail(op, nfsv4.NFS4ERR_TOOSMALL)
	}
	// Who lists a directory goes on without what is left out, and does not know it.
	if args.Cookie == 0 && c.awaits(ctx, &dir, "") {
		return session.Fail(op, nfsv4.NFS4ERR_DELAY)
	}
	list, status := c.list(&dir, args)
	if status != nfsv4.NFS4_OK {
		return session.Fail(op, status)
	}
	return &nfsv4.NfsResop4_OP_READDIR{Opreaddir: &nfsv4.Readdir4res_NFS4_OK{
		Resok4: nfsv4.Readdir4resok{Cookieverf: cookieVerifier, Reply: list},
	}}
}

// list gives the entries that fit.
func (c *compound) list(dir *tree.Entry, args *nfsv4.Readdir4args) (nfsv4.Dirlist4, nfsv4.Nfsstat4) {
	if c.current.waiting != nil {
		return nfsv4.Dirlist4{Eof: true}, nfsv4.NFS4_OK
	}
	left := int(min(args.Maxcount, maxReaddir)) - readdirOverhead
	// dircount is a hint for names and cookies alone; 0 means no limit.
	names := int(args.Dircount)
	var head, tail *nfsv4.Entry4
	after := args.Cookie
	batch := min(max(left/entryBytes, 4), maxBatch)
	for {
		entries, there := c.entries(dir, after, batch)
		if !there {
			// It has gone since it was looked up, or is getting another name: this is not its end.
			if _, status := c.directory(); status != nfsv4.NFS4_OK {
				return nfsv4.Dirlist4{}, status
			}
			continue
		}
		for i := range entries {
			e := &entries[i]
			if e.Junction() && !expectsAbsent(args.AttrRequest) {
				// RFC 8881 section 11.4.2: without rdattr_error the whole READDIR fails.
				return nfsv4.Dirlist4{}, nfsv4.NFS4ERR_MOVED
			}
			next := &nfsv4.Entry4{Cookie: e.ID.Cookie(), Name: e.Name(), Attrs: c.encode(e, args.AttrRequest)}
			// The size counts the flag that says whether another entry follows.
			left -= next.GetEncodedSizeBytes()
			names -= 8 + len(next.Name)
			switch {
			case left < 0 && head == nil:
				return nfsv4.Dirlist4{}, nfsv4.NFS4ERR_TOOSMALL
			case left < 0 || (head != nil && args.Dircount != 0 && names < 0):
				return nfsv4.Dirlist4{Entries: head}, nfsv4.NFS4_OK
			case head == nil:
				head = next
			default:
				tail.Nextentry = next
			}
			tail = next
			after = next.Cookie
		}
		if len(entries) < batch {
			return nfsv4.Dirlist4{Entries: head, Eof: true}, nfsv4.NFS4_OK
		}
	}
}

// entries are the next entries after a cookie that the caller sees, fewer than a batch only at the end. there: the directory is.
func (c *compound) entries(dir *tree.Entry, after uint64, batch int) (out []tree.Entry, there bool) {
	out = make([]tree.Entry, 0, min(batch, dir.Entries))
	there = c.h.Tree.List(dir.ID, after, func(e *tree.Entry) bool {
		if dir.Share != nil || c.sees(e) {
			out = append(out, *e)
		}
		return len(out) < batch
	})
	return out, there
}

// expectsAbsent tells whether a READDIR with these attributes may list junctions: it asks for
// rdattr_error, or for nothing that a junction does not have.
func expectsAbsent(request []uint32) bool {
	return hasBit(request, nfsv4.FATTR4_RDATTR_ERROR) || within(request, absent)
}
