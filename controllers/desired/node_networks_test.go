package desired

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/test/builders"
)

func TestAddressesFromWhichNodesComeToPods(t *testing.T) {
	up := func(reason string) *builders.NodeBuilder {
		return builders.Node("n").Address(corev1.NodeInternalIP, "192.168.7.2").PodCIDRs("10.244.3.0/24").NetworkUp(reason)
	}
	for name, tc := range map[string]struct {
		nodes []*builders.NodeBuilder
		want  string
	}{
		"no node": {nil, ""},
		"its own addresses, and no names": {
			[]*builders.NodeBuilder{builders.Node("n").Address(corev1.NodeInternalIP, "192.168.7.2").
				Address(corev1.NodeExternalIP, "203.0.113.9").Address(corev1.NodeHostName, "192.168.7.99").Address(corev1.NodeInternalDNS, "n.example")},
			"192.168.7.2 203.0.113.9",
		},
		"both families":                      {[]*builders.NodeBuilder{builders.Node("n").Address(corev1.NodeInternalIP, "192.168.7.2").Address(corev1.NodeInternalIP, "fd00::7")}, "192.168.7.2 fd00::7"},
		"one that is mapped":                 {[]*builders.NodeBuilder{builders.Node("n").Address(corev1.NodeInternalIP, "::ffff:192.168.7.2")}, "192.168.7.2"},
		"each once, of several nodes":        {[]*builders.NodeBuilder{up(""), up(""), builders.Node("m").Address(corev1.NodeInternalIP, "192.168.7.1")}, "10.244.3.0 10.244.3.1 192.168.7.1 192.168.7.2"},
		"the bridge and the tunnel to pods":  {[]*builders.NodeBuilder{builders.Node("n").PodCIDRs("10.244.3.0/24", "fd00:1:3::/64")}, "10.244.3.0 10.244.3.1 fd00:1:3:: fd00:1:3::1"},
		"a range with host bits":             {[]*builders.NodeBuilder{builders.Node("n").PodCIDRs("10.244.3.77/24")}, "10.244.3.0 10.244.3.1"},
		"no pod's address of a tiny range":   {[]*builders.NodeBuilder{builders.Node("n").PodCIDRs("10.244.3.4/32", "10.244.3.6/31", "fd00::2/127")}, ""},
		"flannel":                            {[]*builders.NodeBuilder{up("FlannelIsUp").Annotate("flannel.alpha.coreos.com/backend-type", "vxlan")}, "10.244.3.0 10.244.3.1 192.168.7.2"},
		"a cloud's routes":                   {[]*builders.NodeBuilder{up("RouteCreated")}, "10.244.3.0 10.244.3.1 192.168.7.2"},
		"Calico may give .0 and .1 to a pod": {[]*builders.NodeBuilder{up("CalicoIsUp")}, "192.168.7.2"},
		"Cilium may, too":                    {[]*builders.NodeBuilder{up("CiliumIsUp")}, "192.168.7.2"},
		"Calico by its annotations, with a tunnel": {
			[]*builders.NodeBuilder{up("").Annotate("projectcalico.org/IPv4Address", "192.168.7.2/24").
				Annotate("projectcalico.org/IPv4VXLANTunnelAddr", "10.244.120.64").Annotate("projectcalico.org/IPv4IPIPTunnelAddr", "10.244.120.65")},
			"10.244.120.64 10.244.120.65 192.168.7.2",
		},
		"Cilium by its annotations": {[]*builders.NodeBuilder{up("").Annotate("network.cilium.io/ipv4-cilium-host", "10.0.1.45").
			Annotate("network.cilium.io/ipv6-cilium-host", "fd00::45")}, "10.0.1.45 192.168.7.2 fd00::45"},
		"Canal: flannel's addresses, Calico's policies": {[]*builders.NodeBuilder{up("CalicoIsUp").Annotate("flannel.alpha.coreos.com/backend-data", "{}").
			Annotate("projectcalico.org/whatever", "1")}, "10.244.3.0 10.244.3.1 192.168.7.2"},
		"nothing that others have as well": {[]*builders.NodeBuilder{builders.Node("n").Address(corev1.NodeInternalIP, "127.0.0.1").Address(corev1.NodeInternalIP, "0.0.0.0").
			Address(corev1.NodeInternalIP, "::").Address(corev1.NodeInternalIP, "169.254.1.1").Address(corev1.NodeInternalIP, "fe80::1").Address(corev1.NodeInternalIP, "224.0.0.1")}, ""},
		"no network by a node's word": {[]*builders.NodeBuilder{builders.Node("n").Address(corev1.NodeInternalIP, "10.0.0.0/8").
			Annotate("network.cilium.io/ipv4-cilium-host", "0.0.0.0/0").Annotate("projectcalico.org/IPv4IPIPTunnelAddr", "10.9.0.1/8").Annotate("projectcalico.org/IPv6Address", "nonsense")}, "10.9.0.1"},
	} {
		t.Run(name, func(t *testing.T) {
			var nodes []corev1.Node
			for _, node := range tc.nodes {
				nodes = append(nodes, *node.Build())
			}
			if got := strings.Trim(fmt.Sprint(NodeAddresses(nodes)), "[]"); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

func TestNodeNetworksAreFewAndNoWider(t *testing.T) {
	for name, tc := range map[string]struct{ addresses, additional, want string }{
		"none":                         {"", "", ""},
		"addresses apart":              {"192.168.7.2 10.244.3.5", "", "10.244.3.5/32 192.168.7.2/32"},
		"tunnel and bridge":            {"10.244.3.0 10.244.3.1", "", "10.244.3.0/31"},
		"side by side, but not a half": {"10.0.0.1 10.0.0.2", "", "10.0.0.1/32 10.0.0.2/32"},
		"eight nodes in a row":         {"10.0.0.8 10.0.0.9 10.0.0.10 10.0.0.11 10.0.0.12 10.0.0.13 10.0.0.14 10.0.0.15", "", "10.0.0.8/29"},
		"what the user adds":           {"192.168.7.2", "10.9.0.0/16 fd00::/64 10.8.0.1", "10.8.0.1/32 10.9.0.0/16 192.168.7.2/32 fd00::/64"},
		"addresses inside of it":       {"10.9.1.2 10.9.1.3 10.10.0.1", "10.9.0.0/16", "10.9.0.0/16 10.10.0.1/32"},
		"host bits of it":              {"", "10.9.1.2/16", "10.9.0.0/16"},
		"everybody, if he says so":     {"10.9.1.2 fd00::1", "0.0.0.0/0 ::/0", "0.0.0.0/0 ::/0"},
		"both halves of a family":      {"", "0.0.0.0/1 128.0.0.0/1", "0.0.0.0/0"},
		"the families stay apart":      {"255.255.255.255 ::", "", "255.255.255.255/32 ::/128"},
		"IPv6 addresses side by side":  {"fd00:: fd00::1", "", "fd00::/127"},
	} {
		t.Run(name, func(t *testing.T) {
			var addresses []netip.Addr
			for _, text := range strings.Fields(tc.addresses) {
				addresses = append(addresses, netip.MustParseAddr(text))
			}
			if got := strings.Trim(fmt.Sprint(NodeNetworks(addresses, strings.Fields(tc.additional))), "[]"); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

// Of any addresses of a small range exactly these are in the networks, in any order of nodes.
func TestNodeNetworksHaveTheAddressesAndNoOther(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		var addresses []netip.Addr
		known := map[netip.Addr]bool{}
		for range random.IntN(120) {
			address := netip.AddrFrom4([4]byte{10, 0, 0, byte(random.IntN(128))})
			addresses, known[address] = append(addresses, address), true
		}
		networks := NodeNetworks(addresses, nil)
		for last := range 256 {
			address := netip.AddrFrom4([4]byte{10, 0, 0, byte(last)})
			in := slices.ContainsFunc(networks, func(n netip.Prefix) bool { return n.Contains(address) })
			if in != known[address] {
				t.Fatalf("%s is in %v: %v, of %v", address, networks, in, addresses)
			}
		}
		slices.Reverse(addresses)
		if again := NodeNetworks(addresses, nil); !slices.Equal(again, networks) {
			t.Fatalf("%v and %v of the same addresses", networks, again)
		}
	}
}

func TestClientsNearADataServerAreThoseOfItsNodeAndItsZone(t *testing.T) {
	node := func(name, zone, address string) *builders.NodeBuilder {
		b := builders.Node(name).Address(corev1.NodeInternalIP, address)
		if zone != "" {
			b.Label(corev1.LabelTopologyZone, zone)
		}
		return b
	}
	nodes := []*builders.NodeBuilder{
		node("a0", "a", "10.0.0.0").PodCIDRs("10.244.3.0/24"), node("a1", "a", "10.0.0.1"), node("a2", "a", "10.0.0.2"),
		node("b0", "b", "10.1.0.8"), node("b1", "b", "10.1.0.10"), node("c0", "c", "10.2.0.1"), node("none", "", "10.3.0.1"), node("none2", "", "10.3.0.2"),
	}
	for name, tc := range map[string]struct {
		nodeOf map[string]string
		want   string
	}{
		"no data server": {nil, "map[]"},
		"two zones; nodes of a third are near none": {
			map[string]string{"fs-0": "a0", "fs-1": "b1"},
			"map[fs-0:{[10.0.0.0 10.244.3.0 10.244.3.1] [10.0.0.0/31 10.0.0.2/32 10.244.3.0/31]} fs-1:{[10.1.0.10] [10.1.0.8/32 10.1.0.10/32]}]",
		},
		"one zone: only nodes": {map[string]string{"fs-0": "a1", "fs-1": "a2"}, "map[fs-0:{[10.0.0.1] []} fs-1:{[10.0.0.2] []}]"},
		"a node without the label has no zone, and is not another one": {
			map[string]string{"fs-0": "a1", "fs-1": "none"}, "map[fs-0:{[10.0.0.1] []} fs-1:{[10.3.0.1] []}]",
		},
		"no node yet, or one that is deleted": {map[string]string{"fs-0": "", "fs-1": "gone"}, "map[]"},
	} {
		var list []corev1.Node
		for _, b := range nodes {
			list = append(list, *b.Build())
		}
		if got := fmt.Sprint(NearClients(list, tc.nodeOf)); got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
}

func TestClientsNearADataServerFitInIt(t *testing.T) {
	var nodes []corev1.Node
	for i := range 10_000 { // No two are adjacent.
		node := builders.Node(fmt.Sprint("n", i)).Label(corev1.LabelTopologyZone, map[bool]string{true: "b", false: "a"}[i == 0]).
			Address(corev1.NodeInternalIP, netip.AddrFrom4([4]byte{10, 0, byte(i >> 7), byte(i << 1)}).String())
		for j := range 80 * max(0, 2-i) / 2 {
			node.Address(corev1.NodeExternalIP, fmt.Sprint("192.0.2.", j))
		}
		nodes = append(nodes, *node.Build())
	}
	near := NearClients(nodes, map[string]string{"fs-0": "n0", "fs-1": "n1"})
	if got := near["fs-0"].Node; len(got) != internalv1.MaxNodeAddresses {
		t.Errorf("%d addresses of a node", len(got))
	}
	if got := near["fs-1"].Zone; len(got) != internalv1.MaxZoneNetworks || got[0].String() != "10.0.0.2/32" {
		t.Errorf("%d networks of a zone, the first %v", len(got), got[0])
	}
}
