package tree

import (
	"maps"
	"net/netip"
	"slices"
	"sync/atomic"

	"github.com/howdah/howdah/internal/subnet"
)

// clientNodes are the Nodes of access rules, as all data servers have them together: while the operator writes one after the other,
// a node that comes is let in with the first, and refused with the last when it goes. The zero value has none.
type clientNodes struct {
	// byServer has the networks of each data server; the tree's lock is held for it.
	byServer map[string][]string
	current  atomic.Pointer[networkSet]
	// known: a data server has some. The pod's own node counts before.
	known atomic.Bool
}

// set takes what a data server has; nil: it is gone.
func (n *clientNodes) set(server string, networks []string) {
	if slices.Equal(n.byServer[server], networks) {
		return
	}
	if n.byServer == nil {
		n.byServer = map[string][]string{}
	}
	n.byServer[server] = networks
	if networks == nil {
		delete(n.byServer, server)
	}
	var all []netip.Prefix
	for _, texts := range n.byServer {
		for _, text := range texts {
			// What can't be read allows no address; the operator writes nothing of the kind.
			if network, err := netip.ParsePrefix(text); err == nil {
				all = append(all, network)
			}
		}
	}
	n.current.Store(newNetworkSet(all))
	n.known.Store(slices.ContainsFunc(slices.Collect(maps.Keys(n.byServer)), func(server string) bool { return server != ownNode && len(n.byServer[server]) > 0 }))
}

// ownNode stands for the pod's own node among data servers. None is called so.
const ownNode = ""

// SetOwnNode adds the addresses from which the pod's own node comes to it to the Nodes of access rules.
func (t *Tree) SetOwnNode(gateways []netip.Addr) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var own []string
	for _, gateway := range gateways {
		own = append(own, netip.PrefixFrom(gateway, gateway.BitLen()).String())
	}
	t.clients.set(ownNode, own)
}

// IsNode tells whether an address is one that Nodes of access rules mean.
func (t *Tree) IsNode(address netip.Addr) bool { return t.clients.has(address) }

// ClientOf is what an address counts as to limits. Nodes are mostly in one /64, so each counts by itself; of others a /64 is one client.
func (t *Tree) ClientOf(address netip.Addr) netip.Addr {
	if set := t.clients.current.Load(); address.Is6() && set != nil && set.hasIn(address, subnet.NodeBits) {
		return address
	}
	return subnet.Of(address)
}

// has tells whether an address is a node's.
func (n *clientNodes) has(address netip.Addr) bool {
	if n == nil {
		return false
	}
	set := n.current.Load()
	return set != nil && set.has(address)
}

// areUnknown: no node is known yet, so every address may be one's.
func (n *clientNodes) areUnknown() bool { return n == nil || !n.known.Load() }

// networkSet finds the network of an address in as many steps as there are lengths of networks, not networks: it is asked for every
// entry of a listing.
type networkSet struct {
	networks map[netip.Prefix]struct{}
	// bits are the lengths of IPv4 networks and of IPv6 ones.
	bits4, bits6 []int
}

func newNetworkSet(networks []netip.Prefix) *networkSet {
	s := &networkSet{networks: make(map[netip.Prefix]struct{}, len(networks))}
	for _, network := range networks {
		network = network.Masked()
		s.networks[network] = struct{}{}
		bits := &s.bits4
		if network.Addr().Is6() {
			bits = &s.bits6
		}
		if !slices.Contains(*bits, network.Bits()) {
			*bits = append(*bits, network.Bits())
		}
	}
	return s
}

func (s *networkSet) has(address netip.Addr) bool { return s.hasIn(address, 0) }

// hasIn is has for the networks whose prefixes have a number of bits, or more.
func (s *networkSet) hasIn(address netip.Addr, least int) bool {
	bits := s.bits4
	if address.Is6() {
		bits = s.bits6
	}
	for _, length := range bits {
		if length < least {
			continue
		}
		if network, err := address.Prefix(length); err == nil {
			if _, in := s.networks[network]; in {
				return true
			}
		}
	}
	return false
}
