package desired

import (
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	networkingv1ac "k8s.io/client-go/applyconfigurations/networking/v1"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/fleet"
	"github.com/howdah/howdah/internal/naming"
)

// NetworkPolicies is what the policies of all FileServers have in common.
type NetworkPolicies struct {
	// OperatorNamespace is the Kubernetes namespace of the operator, which asks servers how they are.
	OperatorNamespace string
	// MetricsFrom are Kubernetes namespaces whose pods may read metrics.
	MetricsFrom []string
}

// maxClientNetworks is the maximum number of networks in a policy. If there are more, the policy allows all, and only
// the servers' own rules apply. A list of thousands would load every node's packet filter.
const maxClientNetworks = 256

// ClientNetworks are the networks in the access rules of shares, each once, none inside another. nodes are the networks
// of the cluster's nodes. Which share a client may use is decided by the servers.
func ClientNetworks(shares []fleet.Share, nodes []netip.Prefix) []netip.Prefix {
	var all []netip.Prefix
	for i := range shares {
		for _, rule := range accessRules(shares[i].Access) {
			for _, client := range rule.Clients {
				if client == v1alpha1.ClientNodes {
					all = append(all, nodes...)
				} else if network, ok := parseNetwork(client); ok {
					all = append(all, network)
				}
			}
		}
	}
	return fewNetworks(all)
}

// fewNetworks returns the networks, each once, none inside another, or all addresses if they are too many for a policy.
func fewNetworks(all []netip.Prefix) []netip.Prefix {
	kept := compactNetworks(all)
	if len(kept) > maxClientNetworks {
		return []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0")}
	}
	return kept
}

// networkPolicies allow ingress to the servers' pods. NFS clients are nodes, so they are selected by address. Egress is
// not restricted. Probes need no rule: traffic from a pod's own node is always allowed. Policies don't hold for pods on their
// nodes' networks. Their ports here are always those of pods with networks of their own: while data servers change, there are both.
func networkPolicies(in FileServerInput) []runtime.ApplyConfiguration {
	doors, servers := naming.SelectNamespaceServers(in.name()), naming.SelectDataServers(in.name())
	// The API server asks servers for figures, from a node in most clusters (kubectl howdah clients, rebalance).
	nodes := clientPeers(fewNetworks(in.NodeNetworks))
	scrapers := namespacePeers(in.NetworkPolicies.MetricsFrom, nil)
	operator := namespacePeers([]string{in.NetworkPolicies.OperatorNamespace}, map[string]string{nameLabel: nameValue, v1alpha1.ComponentLabel: naming.ComponentOperator})
	entries := []int32{v1alpha1.NFSPort, v1alpha1.WaitingRoomPort}
	if HasOutside(in.FileServer) {
		entries = append(entries, v1alpha1.NFSOutsidePort)
	}
	policies := []runtime.ApplyConfiguration{
		networkPolicy(in, naming.NamespaceServers(in.name()), doors,
			ingress(clientPeers(in.Clients), entries...),
			ingress(slices.Concat(operator, scrapers, nodes), v1alpha1.ManagerPort)),
		networkPolicy(in, naming.DataServerAccount(in.name()), servers,
			ingress(clientPeers(in.Clients), v1alpha1.NFSPort),
			ingress([]*networkingv1ac.NetworkPolicyPeerApplyConfiguration{
				networkingv1ac.NetworkPolicyPeer().WithPodSelector(metav1ac.LabelSelector().WithMatchLabels(doors)),
			}, v1alpha1.NFSPort, v1alpha1.NFSTLSPort),
			ingress(peersOfMoves(in, nodes), v1alpha1.NFSTLSPort),
			ingress(scrapers, v1alpha1.ManagerPort, v1alpha1.MetricsPort),
			ingress(nodes, v1alpha1.ManagerPort),
			// Benchmarks count what the servers sent, wherever their job is.
			ingress([]*networkingv1ac.NetworkPolicyPeerApplyConfiguration{
				networkingv1ac.NetworkPolicyPeer().WithNamespaceSelector(metav1ac.LabelSelector()).
					WithPodSelector(metav1ac.LabelSelector().WithMatchLabels(map[string]string{nameLabel: nameValue, v1alpha1.ComponentLabel: naming.ComponentBenchmark})),
			}, v1alpha1.MetricsPort)),
	}
	if in.Storage.Steward != nil {
		// It has no ports.
		policies = append(policies, networkPolicy(in, naming.Steward(in.name()), naming.SelectSteward(in.name())))
	}
	return policies
}

// peersOfMoves are the data servers, where directories are copied from one to another: on volumes of their own. Those on their
// nodes' networks have the nodes' addresses.
func peersOfMoves(in FileServerInput, nodes []*networkingv1ac.NetworkPolicyPeerApplyConfiguration) []*networkingv1ac.NetworkPolicyPeerApplyConfiguration {
	if len(in.Storage.ClaimTemplates) == 0 {
		return nil
	}
	peers := []*networkingv1ac.NetworkPolicyPeerApplyConfiguration{
		networkingv1ac.NetworkPolicyPeer().WithPodSelector(metav1ac.LabelSelector().WithMatchLabels(naming.SelectDataServers(in.name()))),
	}
	if in.FileServer.Spec.Network.HostNetwork != nil {
		peers = append(peers, nodes...)
	}
	return peers
}

func networkPolicy(in FileServerInput, name string, selector map[string]string, rules ...*networkingv1ac.NetworkPolicyIngressRuleApplyConfiguration) *networkingv1ac.NetworkPolicyApplyConfiguration {
	spec := networkingv1ac.NetworkPolicySpec().
		WithPodSelector(metav1ac.LabelSelector().WithMatchLabels(selector)).
		WithPolicyTypes(networkingv1.PolicyTypeIngress)
	for _, rule := range rules {
		if len(rule.From) > 0 { // a rule without peers would mean everybody
			spec.WithIngress(rule)
		}
	}
	return networkingv1ac.NetworkPolicy(name, in.namespace()).WithLabels(labels(selector)).WithSpec(spec)
}

func ingress(peers []*networkingv1ac.NetworkPolicyPeerApplyConfiguration, ports ...int32) *networkingv1ac.NetworkPolicyIngressRuleApplyConfiguration {
	rule := networkingv1ac.NetworkPolicyIngressRule().WithFrom(peers...)
	for _, port := range ports {
		rule.WithPorts(networkingv1ac.NetworkPolicyPort().WithProtocol(corev1.ProtocolTCP).WithPort(intstr.FromInt32(port)))
	}
	return rule
}

func clientPeers(networks []netip.Prefix) []*networkingv1ac.NetworkPolicyPeerApplyConfiguration {
	peers := make([]*networkingv1ac.NetworkPolicyPeerApplyConfiguration, 0, len(networks))
	for _, network := range networks {
		peers = append(peers, networkingv1ac.NetworkPolicyPeer().WithIPBlock(networkingv1ac.IPBlock().WithCIDR(network.String())))
	}
	return peers
}

// namespacePeers are the pods of Kubernetes namespaces, all or those with some labels.
func namespacePeers(namespaces []string, pods map[string]string) []*networkingv1ac.NetworkPolicyPeerApplyConfiguration {
	peers := make([]*networkingv1ac.NetworkPolicyPeerApplyConfiguration, 0, len(namespaces))
	for _, name := range namespaces {
		peer := networkingv1ac.NetworkPolicyPeer().
			WithNamespaceSelector(metav1ac.LabelSelector().WithMatchLabels(map[string]string{corev1.LabelMetadataName: name}))
		if pods != nil {
			peer.WithPodSelector(metav1ac.LabelSelector().WithMatchLabels(pods))
		}
		peers = append(peers, peer)
	}
	return peers
}
