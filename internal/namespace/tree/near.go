package tree

import (
	"net/netip"
	"slices"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/internal/hotdirectories"
)

// nearClients are the clients that are near a data server: those on its node, and those in its zone. The operator writes them.
type nearClients struct {
	nodeTexts, zoneTexts []string
	node, zone           *networkSet
}

// setNear takes what a DataServer has. The lists of a large zone are read when they change, not with every report of the data server. t.mu is held.
func (t *Tree) setNear(o *internalv1.DataServer) {
	node, zone := o.Spec.NodeAddresses, o.Spec.ZoneNetworks
	if len(node)+len(zone) == 0 {
		delete(t.near, o.Name)
		return
	}
	if known := t.near[o.Name]; known != nil && slices.Equal(known.nodeTexts, node) && slices.Equal(known.zoneTexts, zone) {
		return
	}
	near := &nearClients{nodeTexts: node, zoneTexts: zone}
	var addresses, networks []netip.Prefix
	// What can't be read has no address; the operator writes nothing of the kind.
	for _, text := range node {
		if address, err := netip.ParseAddr(text); err == nil {
			addresses = append(addresses, netip.PrefixFrom(address, address.BitLen()))
		}
	}
	for _, text := range zone {
		if network, err := netip.ParsePrefix(text); err == nil {
			networks = append(networks, network)
		}
	}
	near.node, near.zone = newNetworkSet(addresses), newNetworkSet(networks)
	t.near[o.Name] = near
}

// Nearness is how near a data server is to a client at an address.
func (t *Tree) Nearness(server string, client netip.Addr) hotdirectories.Nearness {
	client = client.Unmap().WithZone("")
	t.mu.RLock()
	near := t.near[server]
	t.mu.RUnlock()
	switch {
	case near == nil:
		return hotdirectories.Far
	case near.node.has(client):
		return hotdirectories.SameNode
	case near.zone.has(client):
		return hotdirectories.SameZone
	}
	return hotdirectories.Far
}
