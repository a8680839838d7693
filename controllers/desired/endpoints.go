package desired

import (
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	discoveryv1ac "k8s.io/client-go/applyconfigurations/discovery/v1"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/fleet"
	"github.com/howdah/howdah/internal/naming"
	"github.com/howdah/howdah/internal/serverpod"
)

// Family is that of an address in an EndpointSlice.
func Family(address netip.Addr) discoveryv1.AddressType {
	if address.Is4() {
		return discoveryv1.AddressTypeIPv4
	}
	return discoveryv1.AddressTypeIPv6
}

// waitingRoomSlice leads connections to a data server's Service to the namespace servers' waiting rooms while the data
// server has no ready pod; they would be refused otherwise. Its endpoints are marked as terminating and serving:
// kube-proxy uses such endpoints only if a Service has no ready endpoint (k8s.io/kubernetes, pkg/proxy/topology.go,
// CategorizeEndpoints). The result is nil if there is no waiting room or the Service has no address yet.
func waitingRoomSlice(in FileServerInput, ordinal int32) *discoveryv1ac.EndpointSliceApplyConfiguration {
	server := naming.DataServer(in.name(), ordinal)
	service, err := netip.ParseAddr(in.Addresses[server])
	if err != nil {
		return nil
	}
	return waitingRoom(in, server, server, Family(service))
}

// waitingRoom is the slice of a data server's Service with the waiting rooms of a family; nil if there is none. While a pod at an
// address of its node starts that holds its clients' connections, it has that instead.
//
// Its endpoints have no node. A Service with externalTrafficPolicy Local therefore leads no client there that comes from outside,
// and a load balancer that looks for nodes with endpoints does not take a namespace server's node for the data server's.
// While the data server has no pod, kube-proxy then drops who comes from outside, as it does where a Service has endpoints
// on other nodes only, and does not refuse them: the client's kernel sends its SYN again after 1, 3 and 7 s.
func waitingRoom(in FileServerInput, server, service string, family discoveryv1.AddressType) *discoveryv1ac.EndpointSliceApplyConfiguration {
	rooms, port := in.WaitingRooms, int32(v1alpha1.WaitingRoomPort)
	if starting, is := in.Starting[server]; is && Family(starting.Addr()) == family {
		rooms, port = []netip.Addr{starting.Addr()}, int32(starting.Port())
	}
	var endpoints []*discoveryv1ac.EndpointApplyConfiguration
	for _, room := range rooms {
		if Family(room) == family {
			endpoints = append(endpoints, discoveryv1ac.Endpoint().
				WithAddresses(room.String()).
				WithConditions(discoveryv1ac.EndpointConditions().WithReady(false).WithServing(true).WithTerminating(true)))
		}
	}
	if len(endpoints) == 0 {
		return nil
	}
	return discoveryv1ac.EndpointSlice(naming.WaitingRoom(service, family == discoveryv1.AddressTypeIPv6), in.namespace()).
		WithLabels(sliceLabels(in.FileServer, server, service)).
		WithAddressType(family).
		WithEndpoints(endpoints...).
		// Ports are matched by name. The Service's other ports lead nowhere.
		WithPorts(discoveryv1ac.EndpointPort().WithName(portNFS).WithPort(port).WithProtocol(corev1.ProtocolTCP))
}

// sliceLabels are those of an EndpointSlice for a Service of a data server.
func sliceLabels(fs *v1alpha1.FileServer, server, service string) map[string]string {
	meta := DataServerLabels(fs)
	meta[v1alpha1.DataServerLabel] = server
	meta[discoveryv1.LabelServiceName] = service
	meta[discoveryv1.LabelManagedBy] = v1alpha1.EndpointSlicesManagedBy
	return meta
}

// NodeEndpoint is where the Service of a data server leads that is reached at an address of its node.
type NodeEndpoint struct {
	// Address is invalid if it leads nowhere now.
	Address netip.Addr
	// Pod is the pod there, nil if there is none.
	Pod *corev1.Pod
	// IsServing: the pod is ready.
	IsServing bool
}

// IsOnNodeAddress tells whether the Service of a data server leads to an address of the node that is not its pod's. The ports of such a
// pod have names of their own: Kubernetes' controller of EndpointSlices, which looks for a Service's ports by their names, finds none of
// them, and leads no client to the address of the pod, at no moment.
func IsOnNodeAddress(pod *corev1.Pod) bool { return fleet.PortOf(pod, naming.PortNFSOnNode, 0) != 0 }

// NodeEndpointOf follows from the pod, and from what the data server reports: its address, in a family. The report must be of this pod,
// and the address in one of the networks that the pod was given. nil is no pod.
func NodeEndpointOf(pod *corev1.Pod, status *internalv1.DataServerStatus, family discoveryv1.AddressType) NodeEndpoint {
	if pod == nil || status.PodUID != string(pod.UID) || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return NodeEndpoint{}
	}
	networks := networksOf(pod)
	for _, text := range status.NetworkAddresses {
		address, err := netip.ParseAddr(text)
		// The API takes no loopback and link-local addresses in an EndpointSlice.
		if err != nil || Family(address) != family || !address.IsGlobalUnicast() ||
			!slices.ContainsFunc(networks, func(n netip.Prefix) bool { return n.Contains(address) }) {
			continue
		}
		return NodeEndpoint{Address: address, Pod: pod, IsServing: isReady(pod)}
	}
	return NodeEndpoint{}
}

// isReady tells whether the kubelet calls a pod ready, one that ends, too.
func isReady(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// networksOf are the networks of serverpod.FlagAddressesIn in a pod.
func networksOf(pod *corev1.Pod) (networks []netip.Prefix) {
	for i := range pod.Spec.Containers {
		for _, arg := range pod.Spec.Containers[i].Args {
			list, is := strings.CutPrefix(arg, "--"+serverpod.FlagAddressesIn+"=")
			for text := range strings.SplitSeq(list, ",") {
				if network, err := netip.ParsePrefix(text); is && err == nil {
					networks = append(networks, network)
				}
			}
		}
	}
	return networks
}

// NodeAddressSlices are those of the Services that lead to addresses of nodes (NodeEndpoints). A Service without an address has none yet.
func NodeAddressSlices(in FileServerInput) (slices []*discoveryv1ac.EndpointSliceApplyConfiguration) {
	for ordinal := range in.Replicas {
		server := naming.DataServer(in.name(), ordinal)
		at, is := in.NodeEndpoints[server]
		service, err := netip.ParseAddr(in.Addresses[server])
		if is && err == nil {
			slices = append(slices, NodeAddressSlice(in.FileServer, server, Family(service), at))
		}
	}
	return slices
}

// NodeAddressSlice leads clients of a data server's Service to the address of its node, as Kubernetes' own slice does to a pod's: while the
// pod is ready, and while it ends, if nothing else is ready. One that is not ready is left out: kube-proxy would take that for the word on its address, and not
// lead to it either while it is in the other slice because it starts. Metrics stay at the pod's address, which every scraper reaches.
func NodeAddressSlice(fs *v1alpha1.FileServer, server string, family discoveryv1.AddressType, at NodeEndpoint) *discoveryv1ac.EndpointSliceApplyConfiguration {
	slice := discoveryv1ac.EndpointSlice(naming.NodeAddress(server, family == discoveryv1.AddressTypeIPv6), fs.Namespace).
		WithLabels(sliceLabels(fs, server, server)).
		WithAddressType(family)
	if !at.Address.IsValid() || !at.IsServing && at.Pod.DeletionTimestamp == nil {
		return slice
	}
	isEnding := at.Pod.DeletionTimestamp != nil
	return slice.
		WithEndpoints(discoveryv1ac.Endpoint().
			WithAddresses(at.Address.String()).
			WithNodeName(at.Pod.Spec.NodeName).
			WithTargetRef(corev1ac.ObjectReference().WithKind("Pod").WithNamespace(at.Pod.Namespace).WithName(at.Pod.Name).WithUID(at.Pod.UID)).
			WithConditions(discoveryv1ac.EndpointConditions().WithReady(at.IsServing && !isEnding).WithServing(at.IsServing).WithTerminating(isEnding))).
		WithPorts(
			discoveryv1ac.EndpointPort().WithName(portNFS).WithPort(fleet.PortOf(at.Pod, naming.PortNFSOnNode, 0)).WithProtocol(corev1.ProtocolTCP),
			discoveryv1ac.EndpointPort().WithName(portNFSTLS).WithPort(fleet.PortOf(at.Pod, naming.PortNFSTLSOnNode, 0)).WithProtocol(corev1.ProtocolTCP))
}
