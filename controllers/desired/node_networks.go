package desired

import (
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
)

// nodeAnnotations are those in which network plugins write addresses that a node has besides its own: those of its end of
// a tunnel, or of its bridge to pods. Some have the length of a network, which is not meant.
var nodeAnnotations = []string{
	"projectcalico.org/IPv4Address", "projectcalico.org/IPv6Address",
	"projectcalico.org/IPv4IPIPTunnelAddr", "projectcalico.org/IPv4VXLANTunnelAddr", "projectcalico.org/IPv6VXLANTunnelAddr",
	"projectcalico.org/IPv4WireguardInterfaceAddr", "projectcalico.org/IPv6WireguardInterfaceAddr",
	"network.cilium.io/ipv4-cilium-host", "network.cilium.io/ipv6-cilium-host",
	"io.cilium.network.ipv4-cilium-host", "io.cilium.network.ipv6-cilium-host",
}

// flannelAnnotations begin the annotations of flannel, which takes pods' addresses from the node's podCIDRs whatever enforces policies beside it.
const flannelAnnotations = "flannel.alpha.coreos.com/"

// ownRanges are how nodes of plugins look that may give any address of the node's podCIDRs to a pod, or take none from there: by their
// annotations, and by the reasons of the condition NetworkUnavailable.
var (
	ownRangeAnnotations = []string{"projectcalico.org/", "network.cilium.io/", "io.cilium.network."}
	ownRangeReasons     = []string{"CalicoIsUp", "CiliumIsUp"}
)

// NodeAddresses are the addresses from which the nodes' own traffic comes to pods, the kubelet's mounts above all; sorted, each once:
//
//   - InternalIP and ExternalIP;
//   - the network address and the first address of each of its podCIDRs, which are those of flannel's tunnel and of the bridge to
//     pods. No pod has them, but with plugins that divide the range in their own way: of their nodes these are left out;
//   - what plugins write into the node's annotations.
//
// Loopback, link-local and multicast addresses are not a node's: others have them as well.
func NodeAddresses(nodes []corev1.Node) []netip.Addr {
	var all []netip.Addr
	for i := range nodes {
		node := &nodes[i]
		for _, address := range node.Status.Addresses {
			if address.Type == corev1.NodeInternalIP || address.Type == corev1.NodeExternalIP {
				all = appendAddress(all, address.Address)
			}
		}
		for _, annotation := range nodeAnnotations {
			text, _, _ := strings.Cut(node.Annotations[annotation], "/")
			all = appendAddress(all, text)
		}
		if !hasOwnRanges(node) {
			all = append(all, podGateways(node)...)
		}
	}
	all = slices.DeleteFunc(all, func(a netip.Addr) bool {
		return a.IsUnspecified() || a.IsLoopback() || a.IsMulticast() || a.IsLinkLocalUnicast()
	})
	slices.SortFunc(all, netip.Addr.Compare)
	return slices.Compact(all)
}

func appendAddress(all []netip.Addr, text string) []netip.Addr {
	if address, err := netip.ParseAddr(text); err == nil && address.Zone() == "" {
		return append(all, address.Unmap())
	}
	return all
}

func podGateways(node *corev1.Node) []netip.Addr {
	ranges := node.Spec.PodCIDRs
	if len(ranges) == 0 && node.Spec.PodCIDR != "" {
		ranges = []string{node.Spec.PodCIDR}
	}
	var gateways []netip.Addr
	for _, text := range ranges {
		// A range of one or two addresses is a pod's own.
		if network, err := netip.ParsePrefix(text); err == nil && network.Bits() < network.Addr().BitLen()-1 {
			first := network.Masked().Addr()
			gateways = append(gateways, first, first.Next())
		}
	}
	return gateways
}

func hasOwnRanges(node *corev1.Node) bool {
	own := false
	for annotation := range node.Annotations {
		if strings.HasPrefix(annotation, flannelAnnotations) {
			return false
		}
		own = own || slices.ContainsFunc(ownRangeAnnotations, func(prefix string) bool { return strings.HasPrefix(annotation, prefix) })
	}
	return own || slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeNetworkUnavailable && slices.Contains(ownRangeReasons, c.Reason)
	})
}

// NodeNetworks are the Nodes of access rules: the nodes' addresses and what the user adds to them (addresses and networks), in as few
// networks as there can be without one that has an address more. They are sorted: the same addresses are the same list.
func NodeNetworks(addresses []netip.Addr, additional []string) []netip.Prefix {
	networks := make([]netip.Prefix, 0, len(addresses)+len(additional))
	for _, address := range addresses {
		networks = append(networks, netip.PrefixFrom(address, address.BitLen()))
	}
	for _, text := range additional {
		if network, ok := parseNetwork(text); ok {
			networks = append(networks, network)
		}
	}
	return compactNetworks(networks)
}

// parseNetwork reads an address or a network of the API, whose schema takes nothing else.
func parseNetwork(text string) (netip.Prefix, bool) {
	if address, err := netip.ParseAddr(text); err == nil {
		address = address.WithZone("").Unmap()
		return netip.PrefixFrom(address, address.BitLen()), true
	}
	network, err := netip.ParsePrefix(text)
	return network.Masked(), err == nil
}

// compactNetworks drops networks inside others and joins the halves of one.
func compactNetworks(networks []netip.Prefix) []netip.Prefix {
	slices.SortFunc(networks, func(a, b netip.Prefix) int {
		if c := a.Addr().Compare(b.Addr()); c != 0 {
			return c
		}
		return a.Bits() - b.Bits() // The wider one first.
	})
	kept := []netip.Prefix{}
	for _, network := range networks {
		if len(kept) > 0 && kept[len(kept)-1].Overlaps(network) {
			continue
		}
		kept = append(kept, network)
		for len(kept) > 1 {
			lower, upper := kept[len(kept)-2], kept[len(kept)-1]
			if lower.Bits() != upper.Bits() || lower.Bits() == 0 || lower.Addr().BitLen() != upper.Addr().BitLen() {
				break
			}
			both := netip.PrefixFrom(lower.Addr(), lower.Bits()-1).Masked()
			if both.Addr() != lower.Addr() || !both.Contains(upper.Addr()) {
				break
			}
			kept = append(kept[:len(kept)-2], both)
		}
	}
	return kept
}

// Near are the clients that are near a data server: the addresses of its node, and those of the nodes of its zone.
type Near struct {
	Node []netip.Addr
	Zone []netip.Prefix
}

// NearClients are, by data server, the clients that are near it, if it is known on which node each runs. If they are all in one
// zone, none is nearer than another by it. What does not fit in a DataServer is left out: it is not near.
func NearClients(nodes []corev1.Node, nodeOf map[string]string) map[string]Near {
	at, zones := map[string]int{}, map[string][]corev1.Node{}
	for i := range nodes {
		at[nodes[i].Name] = i
	}
	for _, node := range nodeOf {
		if i, known := at[node]; known && nodes[i].Labels[corev1.LabelTopologyZone] != "" {
			zones[nodes[i].Labels[corev1.LabelTopologyZone]] = nil
		}
	}
	networks := map[string][]netip.Prefix{}
	if len(zones) > 1 {
		for i := range nodes {
			zone := nodes[i].Labels[corev1.LabelTopologyZone]
			if _, has := zones[zone]; has {
				zones[zone] = append(zones[zone], nodes[i])
			}
		}
		for zone, members := range zones {
			all := NodeNetworks(NodeAddresses(members), nil)
			networks[zone] = all[:min(len(all), internalv1.MaxZoneNetworks)]
		}
	}
	near := map[string]Near{}
	for server, node := range nodeOf {
		if i, known := at[node]; known {
			addresses := NodeAddresses(nodes[i : i+1])
			near[server] = Near{addresses[:min(len(addresses), internalv1.MaxNodeAddresses)], networks[nodes[i].Labels[corev1.LabelTopologyZone]]}
		}
	}
	return near
}
