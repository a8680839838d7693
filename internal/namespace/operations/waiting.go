package operations

import (
	"encoding/hex"
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
//	/.howdah-wait-IDENTITY/enter
//
// The first part is a directory that no list shows. There is one for each junction, so that no other process waits for its lock. LOOKUP of the second part
// is put off until the data server serves. Then it fails with NFS4ERR_ACCESS, which Linux does not remember, and goes on to the data server.

const (
	waitingPrefix = ".howdah-wait-"
	waitingName   = "enter"
)

// waitingDirectory is the path of the directory in which clients wait for a junction.
func waitingDirectory(id tree.ID) string { return "/" + waitingPrefix + hex.EncodeToString(id[:]) }

// waitingPath is what clients look up to wait for a junction.
func waitingPath(id tree.ID) string { return waitingDirectory(id) + "/" + waitingName }

// awaitedBy is the junction that clients wait for in a directory of the root; false: no such directory has that name.
func awaitedBy(name string) (id tree.ID, ok bool) {
	text, ok := strings.CutPrefix(name, waitingPrefix)
	if !ok || hex.DecodedLen(len(text)) != len(id) {
		return id, false
	}
	_, err := hex.Decode(id[:], []byte(text))
	return id, err == nil && "/"+name == waitingDirectory(id)
}

// waitsAt are the addresses of the namespace servers at which the caller waits for the data server of a junction. None: it does not wait, or they
// have no address for it, or the data server has none to go on to.
func (c *compound) waitsAt(e *tree.Entry) []string {
	if c.h.Own == nil || !e.Junction() || c.isServed(e) || len(c.locations(e)) == 0 {
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

// awaited is the junction that clients wait for in a directory for that.
func (c *compound) awaited(id tree.ID) (tree.Entry, nfsv4.Nfsstat4) {
	e, status := c.resolve(&handle{id: id})
	if status == nfsv4.NFS4_OK && !e.Junction() {
		status = nfsv4.NFS4ERR_STALE
	}
	return e, status
}

// waitingEntry is the directory in which clients wait for a junction: empty, and open to everybody as the root is.
func (c *compound) waitingEntry(id tree.ID) (tree.Entry, nfsv4.Nfsstat4) {
	_, status := c.awaited(id)
	e := c.h.Tree.Root()
	e.ID, e.Path, e.Entries = id.Waiting(), waitingDirectory(id), 0
	return e, status
}

// enterWaiting is LOOKUP of a directory to wait in, and in such a directory; false: it is neither.
func (c *compound) enterWaiting(name string) (status nfsv4.Nfsstat4, isWaiting bool) {
	if c.current == nil {
		return 0, false
	}
	if c.current.waiting {
		return c.awaitServed(name), true
	}
	id, ok := awaitedBy(name)
	if !ok || c.current.id != c.h.Tree.Root().ID {
		return 0, false
	}
	if _, status := c.awaited(id); status != nfsv4.NFS4_OK {
		return status, true
	}
	c.current = &handle{id: id, waiting: true}
	return nfsv4.NFS4_OK, true
}

// awaitServed is the status of a LOOKUP in a directory to wait in: NFS4ERR_DELAY while the junction's owner does not serve it. Others that serve a hot
// directory do not count: the client's referral names the owner alone, because none of them served.
func (c *compound) awaitServed(name string) nfsv4.Nfsstat4 {
	e, status := c.awaited(c.current.id)
	switch {
	case status != nfsv4.NFS4_OK:
		return status
	case name != waitingName:
		return nfsv4.NFS4ERR_NOENT
	}
	if c.awaitsOwner(&e, c.isServed(&e)) {
		return nfsv4.NFS4ERR_DELAY
	}
	return nfsv4.NFS4ERR_ACCESS
}
