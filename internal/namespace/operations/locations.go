package operations

import (
	"net/netip"

	"github.com/howdah/howdah/internal/namespace/tree"
)

// DoorOutside is the listener for clients outside the cluster (rpc.Caller.Door). The operator's Service for them leads to
// it, so the way by which a client came says which addresses it can reach. Its own address says nothing: inside and
// outside may be one network (docs/design/2026-11-26-addresses.md).
const DoorOutside = "outside"

// locations are the addresses and host names of a junction's data server for the caller, and then those of others that serve it. None:
// it has none there yet. Linux mounts the first that it can (try_location of fs/nfs/nfs4namespace.c).
func (c *compound) locations(e *tree.Entry) []string {
	if !e.Junction() {
		return nil
	}
	all := c.addresses(e.Target)
	for _, next := range e.Next {
		all = append(all, c.addresses(next)...)
	}
	return all
}

// addresses are those of a data server for the caller.
func (c *compound) addresses(target *tree.Target) []string {
	switch {
	case c.caller.Door == DoorOutside:
		return ofFamily(target.Outside, c.caller.Addr)
	case target.Address == "":
		return nil
	}
	return []string{target.Address}
}

// awaitsOwner tells whether to put a client off because the data server of a junction does not serve it yet, or has no
// address that the client can reach. An address for other clients is never given in place of one that is missing.
func (c *compound) awaitsOwner(e *tree.Entry, good bool) bool {
	return c.h.delays.delay("owner "+c.caller.Door+" "+e.Target.Server+" "+e.Share.Name, good)
}

// ofFamily are those of some addresses and host names that are of a client's family: a client tries one after the other,
// and one that it has no route to can cost it minutes. A host name may have addresses of both. Without one of the
// client's family, the others are better than nothing.
func ofFamily(all []string, client netip.Addr) []string {
	var same []string
	for _, text := range all {
		if address, err := netip.ParseAddr(text); err != nil || address.Is4() == client.Unmap().Is4() {
			same = append(same, text)
		}
	}
	if len(same) == 0 {
		same = append(same, all...)
	}
	return same
}
