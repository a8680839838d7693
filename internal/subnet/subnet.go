package subnet

import "net/netip"

// bits is how much of an IPv6 address counts as one client: whoever has one address has all of its /64.
const bits = 64

// NodeBits is how long the prefix of a network of nodes must be at least for its IPv6 addresses to count as clients of their own. In a network of more
// than 65,536 addresses, such as a user may add, a machine has any number of them.
const NodeBits = 112

// Of is the part of an address that limits are kept for.
func Of(address netip.Addr) netip.Addr {
	if !address.Is6() {
		return address
	}
	prefix, err := address.Prefix(bits)
	if err != nil {
		return address
	}
	return prefix.Addr()
}
