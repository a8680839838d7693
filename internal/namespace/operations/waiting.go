package operations

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"

	"github.com/howdah/howdah/internal/namespace/tree"
)

// A client that enters a directory waits while its data server does not serve. It matters where (docs/design/2026-11-27-waiting-in-the-mount.md).
// Linux holds the lock of the directory above during the LOOKUP and the question for fs_locations that follows it. If these are put off
// (NFS4ERR_DELAY), whoever makes something in that directory waits as well, and whoever lists it or enters others waits behind that. When Linux
// mounts what fs_locations names, it holds no lock. So the referral is given at once, and names two locations: a place to wait,
// which is on the namespace servers, and then the data server. Linux tries one after the other (nfs_follow_referral). The place is
//
//	/.howdah-wait-DIRECTORY-KEY/NAME
//
// The first part is a directory that no list shows. There is one for each junction and owner, so that no other process waits for its lock. LOOKUP of the
// name is put off until the data server serves. Then it fails with NFS4ERR_ACCESS, which Linux does not remember, and goes on to the data server. If the
// directory has another owner by then, the name becomes a referral to that one. Linux follows a referral within a referral, but no third: a client that
// mounts the directory by itself, and is in one already, gets an error.

const waitingPrefix = ".howdah-wait-"

// waitingDirectory is the path of a place.
func waitingDirectory(place tree.Waiting) string {
	return fmt.Sprintf("/%s%x-%016x", waitingPrefix, place.In[:], place.Key)
}

// placeNamed is the place that has a name in the root; false: none has.
func placeNamed(name string) (place tree.Waiting, ok bool) {
	var in []byte
	if !strings.HasPrefix(name, waitingPrefix) {
		return place, false
	}
	n, err := fmt.Sscanf(name, waitingPrefix+"%32x-%16x", &in, &place.Key)
	if err != nil || n != 2 || len(in) != len(place.In) {
		return place, false
	}
	place.In = tree.ID(in)
	return place, "/"+name == waitingDirectory(place)
}

// placeFor is the path where clients wait for a junction; "" if it has gone, or if the client has waited for it: Linux would follow no other referral
// to there.
func (c *compound) placeFor(e *tree.Entry) string {
	parent, ok := c.h.Tree.Parent(e.ID)
	if !ok || !e.Junction() {
		return ""
	}
	return waitingDirectory(tree.NewWaiting(parent.ID, e.Name(), e.Target.Server)) + "/" + e.Name()
}

// waitsAt are the addresses of the namespace servers at which the caller waits for the data server of a junction. None: it does not wait, or they
// have no address for it, or the data server has none to go on to.
func (c *compound) waitsAt(e *tree.Entry) []string {
	if c.h.Own == nil || !e.Junction() || c.isServed(e) || len(c.locations(e)) == 0 || c.placeFor(e) == "" {
		return nil
	}
	// Host names are left out: whether the client can look them up is not known, and its own mount may have been by address.
	own := slices.DeleteFunc(slices.Clone(c.h.Own(c.caller.Door)), func(text string) bool {
		address, err := netip.ParseAddr(text)
		return err != nil || address.Unmap().Is4() != c.caller.Addr.Unmap().Is4()
	})
	if len(own) == 0 || !c.awaitsOwner(e, false) {
		return nil
	}
	return own
}

// waitingEntry is a place: an empty directory, open to everybody as the root is. It is there as long as the directory of the junction is.
func (c *compound) waitingEntry(place *tree.Waiting) (tree.Entry, nfsv4.Nfsstat4) {
	above, status := c.resolve(&handle{id: place.In})
	if status == nfsv4.NFS4_OK && above.Junction() {
		status = nfsv4.NFS4ERR_STALE
	}
	e := c.h.Tree.Root()
	e.ID, e.Path, e.Entries = place.ID(), waitingDirectory(*place), 0
	return e, status
}

// enterPlace makes a place the current file handle.
func (c *compound) enterPlace(place tree.Waiting) nfsv4.Nfsstat4 {
	_, status := c.waitingEntry(&place)
	if status == nfsv4.NFS4_OK {
		c.current = &handle{id: place.ID(), waiting: &place}
	}
	return status
}

// elsewhere is a junction with another owner than the one that a client has waited for in a place. It has an identity of its own: Linux
// makes one of two directories with the same fileid.
func (c *compound) elsewhere(h *handle) (tree.Entry, nfsv4.Nfsstat4) {
	e, status := c.resolve(&handle{id: h.id})
	if status == nfsv4.NFS4_OK && !e.Junction() {
		status = nfsv4.NFS4ERR_STALE
	}
	e.Path = h.entered
	e.ID = tree.NewWaiting(h.id, h.entered, "").ID()
	return e, status
}

// enterWaiting is LOOKUP of a place, and in a place; false: it is neither.
func (c *compound) enterWaiting(ctx context.Context, name string) (status nfsv4.Nfsstat4, isWaiting bool) {
	if c.current == nil {
		return 0, false
	}
	if c.current.waiting != nil {
		status, entered := c.awaitServed(ctx, name)
		if entered != nil {
			c.current = entered
		}
		return status, true
	}
	place, ok := placeNamed(name)
	if !ok || c.current.id != c.h.Tree.Root().ID {
		return 0, false
	}
	return c.enterPlace(place), true
}

// awaitServed is the status of a LOOKUP in a place: NFS4ERR_DELAY while the junction's owner does not serve it. Others that serve a hot directory do not
// count: the client's referral names the owner alone, because none of them served. entered is the handle if the owner is another one.
func (c *compound) awaitServed(ctx context.Context, name string) (status nfsv4.Nfsstat4, entered *handle) {
	place := c.current.waiting
	above := compound{h: c.h, caller: c.caller, minor: c.minor, current: &handle{id: place.In}}
	e, status := above.child(ctx, name)
	switch {
	case status == nfsv4.NFS4ERR_NOENT || status == nfsv4.NFS4_OK && !e.Junction():
		return nfsv4.NFS4ERR_ACCESS, nil // Linux would remember NFS4ERR_NOENT, and not wait for the next directory of the name.
	case status != nfsv4.NFS4_OK:
		return status, nil
	case c.awaitsOwner(&e, c.isServed(&e)):
		return nfsv4.NFS4ERR_DELAY, nil
	case tree.NewWaiting(place.In, name, e.Target.Server) == *place:
		return nfsv4.NFS4ERR_ACCESS, nil
	}
	return nfsv4.NFS4_OK, &handle{id: e.ID, entered: waitingDirectory(*place) + "/" + name}
}
