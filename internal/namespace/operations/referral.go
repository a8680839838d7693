package operations

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"

	"github.com/howdah/howdah/internal/namespace/tree"
	nfs "github.com/howdah/howdah/internal/nfs4/client"
	"github.com/howdah/howdah/internal/nfs4/session"
)

// Linux shows a directory that it has not entered with what it got when it looked the name up: a GETATTR of fs_locations and
// of all that stat(2) shows. It takes type, mode and link count from itself (nfs_fixup_referral_attributes), and owner and times
// from the answer: without them the directory has the owner 4294967294 and the year 1970, and a job that removes what is old removes it.
// RFC 8881 section 11.4.1 says that a server SHOULD NOT give more of an absent file system than the client needs to find it. This
// server does, for that reason, and asks the owner, which alone knows when something was last made in the directory.
//
// Linux keeps the answer for as long as the change attribute of the directory above stays the same. So that changes with time,
// too: what a client shows is at most changeEvery older than its attribute cache allows. And it ignores a later answer that has
// mounted_on_fileid and no fileid (nfs_update_inode), although it asks for the first alone: so it gets fileid, too, with the same value.
// RFC 8881 section 18.7.4 has a server return all attributes that were requested, and does not rule out another.

const changeEvery = 10 * time.Minute

// shown are the attributes of a junction that Linux shows before it is entered.
var shown = bitmapOf(nfsv4.FATTR4_OWNER, nfsv4.FATTR4_OWNER_GROUP, nfsv4.FATTR4_TIME_ACCESS, nfsv4.FATTR4_TIME_METADATA, nfsv4.FATTR4_TIME_MODIFY)

// referred is the answer to a GETATTR of a junction that asks for fs_locations.
//
// A client that is refused by a data server (NFS4ERR_STALE), because a directory has left it, walks the path once more, with new lookups
// (Linux: do_filp_open and others, LOOKUP_REVAL). If that leads to the same data server again, the program gets ESTALE. So whoever asks after
// the data server has refused must learn the new owner, or wait. And fileid is always given: by it alone Linux sees that what has the name
// is another directory than the one that it knows, and drops what it has mounted there.
func (c *compound) referred(ctx context.Context, e *tree.Entry, request []uint32) (nfsv4.Fattr4, nfsv4.Nfsstat4) {
	if c.h.Look == nil || !overlaps(request, shown) {
		return c.encode(e, request), nfsv4.NFS4_OK
	}
	given := slices.Clone(absent)
	if hasBit(request, nfsv4.FATTR4_MOUNTED_ON_FILEID) {
		request, given = setBit(slices.Clone(request), nfsv4.FATTR4_FILEID), setBit(given, nfsv4.FATTR4_FILEID)
	}
	var seen nfs.Attributes
	var err error
	if len(c.waitsAt(e)) == 0 {
		seen, err = c.look(ctx, e)
	}
	if len(c.waitsAt(e)) > 0 {
		// It can't be asked. The owner is that of the beginning, and the times are now: no job takes the directory for old.
		now := c.h.Now()
		e.Accessed, e.Changed, e.Modified = now, now, now
		return c.encodeOf(e, request, union(given, shown)), nfsv4.NFS4_OK
	}
	left := nfs.IsStatus(err, nfsv4.NFS4ERR_STALE)
	if c.h.delays.delay("attributes "+e.Target.Server+" "+e.Share.Name, err == nil || nfs.IsAnswer(err)) ||
		c.h.delays.delay(fmt.Sprintf("move of %x", e.ID), !left) || c.isOutdated(e) {
		return nfsv4.Fattr4{}, nfsv4.NFS4ERR_DELAY
	}
	if err == nil {
		e.Owner, e.Group = seen.Owner, seen.Group
		e.Accessed, e.Changed, e.Modified = seen.Access, seen.Metadata, seen.Modify
		given = union(given, shown)
	}
	return c.encodeOf(e, request, given), nfsv4.NFS4_OK
}

// look asks the data server of a junction for its attributes, for as long as it counts as one that answers: Linux holds the lock of the directory
// above meanwhile.
func (c *compound) look(ctx context.Context, e *tree.Entry) (seen nfs.Attributes, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	server := e.Target.Server
	go func() {
		ticker := time.NewTicker(holdPause)
		defer ticker.Stop()
		for c.h.Reachable(server) {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
		}
		cancel()
	}()
	session.Await(ctx, func() { seen, err = c.h.Look(ctx, e.Target) })
	return seen, err
}

// isOutdated tells whether a directory got another owner or identity while its data server was asked: what is known of it may have been refused
// by that data server since.
func (c *compound) isOutdated(e *tree.Entry) bool {
	now, ok := c.h.Tree.Get(c.current.id)
	return !ok || now.Target == nil || now.Target.Server != e.Directory.Server
}

// change is the change attribute of a directory as clients get it.
func (h *Handler) change(e *tree.Entry) uint64 {
	if e.Entries == 0 {
		return e.Change
	}
	return e.Change + uint64(h.Now().Unix()/int64(changeEvery/time.Second))
}

func overlaps(a, b []uint32) bool {
	for i := range min(len(a), len(b)) {
		if a[i]&b[i] != 0 {
			return true
		}
	}
	return false
}
