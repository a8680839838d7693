package nodeaddress

import (
	"cmp"
	"net/netip"
	"slices"
)

// Address is an address of a network interface.
type Address struct {
	// Prefix is the address with the length of its network.
	Prefix    netip.Prefix
	Interface string
	// Up: the interface is switched on. Running: it has a carrier, too.
	Up, Running bool
	// Unproven: the kernel does not know yet that no other machine has the address, or knows that one has.
	Unproven bool
	// Secondary: the interface has another address in the same network, which came first. With IPv6 it is a temporary address.
	Secondary bool
	// Deprecated: new connections are not to use it.
	Deprecated bool
}

// serviceInterfaces have addresses of Services: kube-proxy's (mode ipvs), and those of the DNS cache on each node. All nodes have the same.
var serviceInterfaces = []string{"kube-ipvs0", "nodelocaldns"}

// Choose returns one address for each family that the networks have. missing are the networks of a family without one.
//
// Addresses of Services, of loopback and link-local networks, of interfaces that are off, and those that another machine may have, don't count.
// Of the others it takes that of the first network; then one that is not deprecated; of an interface with a carrier; not secondary; with a
// network and not alone (/32, /128), as floating addresses often are; and then the lowest. The address of before stays if the others are
// better only by being lower.
func Choose(all []Address, networks []netip.Prefix, before []netip.Addr) (chosen []netip.Addr, missing []netip.Prefix) {
	for _, is4 := range []bool{true, false} {
		ofFamily := slices.DeleteFunc(slices.Clone(networks), func(n netip.Prefix) bool { return n.Addr().Is4() != is4 })
		if len(ofFamily) == 0 {
			continue
		}
		var found []candidate
		for _, address := range all {
			if in := networkOf(address, ofFamily); in >= 0 {
				found = append(found, candidate{address, in, slices.Contains(before, address.Prefix.Addr())})
			}
		}
		if len(found) == 0 {
			missing = append(missing, ofFamily...)
			continue
		}
		chosen = append(chosen, slices.MinFunc(found, candidate.compare).Prefix.Addr())
	}
	return chosen, missing
}

// networkOf is the index of the first network that has an address, -1 if none has or if the address doesn't count.
func networkOf(a Address, networks []netip.Prefix) int {
	if !a.Up || a.Unproven || slices.Contains(serviceInterfaces, a.Interface) || !a.Prefix.Addr().IsGlobalUnicast() {
		return -1
	}
	return slices.IndexFunc(networks, func(n netip.Prefix) bool { return n.Contains(a.Prefix.Addr()) })
}

type candidate struct {
	Address
	network   int
	wasChosen bool
}

func (c candidate) compare(other candidate) int {
	return cmp.Or(
		cmp.Compare(c.network, other.network),
		order(c.Deprecated, other.Deprecated),
		order(!c.Running, !other.Running),
		order(c.Secondary, other.Secondary),
		order(c.Prefix.IsSingleIP(), other.Prefix.IsSingleIP()),
		order(!c.wasChosen, !other.wasChosen),
		c.Prefix.Addr().Compare(other.Prefix.Addr()),
	)
}

// order puts false before true.
func order(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}
