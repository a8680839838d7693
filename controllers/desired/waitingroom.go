package desired

import (
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	discoveryv1ac "k8s.io/client-go/applyconfigurations/discovery/v1"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/naming"
)

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
	family := discoveryv1.AddressTypeIPv4
	if !service.Is4() {
		family = discoveryv1.AddressTypeIPv6
	}
	return waitingRoom(in, server, server, family)
}

// waitingRoom is the slice of a data server's Service with the waiting rooms of a family; nil if there is none. While a pod
// starts that holds its clients' connections, it has the pod instead.
//
// Its endpoints have no node. A Service with externalTrafficPolicy Local therefore leads no client there that comes from outside,
// and a load balancer that looks for nodes with endpoints does not take a namespace server's node for the data server's.
// While the data server has no pod, kube-proxy then drops who comes from outside, as it does where a Service has endpoints
// on other nodes only, and does not refuse them: the client's kernel sends its SYN again after 1, 3 and 7 s.
func waitingRoom(in FileServerInput, server, service string, family discoveryv1.AddressType) *discoveryv1ac.EndpointSliceApplyConfiguration {
	rooms, port := in.WaitingRooms, int32(v1alpha1.WaitingRoomPort)
	if starting, is := in.Starting[server]; is && starting.Addr().Is4() == (family == discoveryv1.AddressTypeIPv4) {
		rooms, port = []netip.Addr{starting.Addr()}, int32(starting.Port())
	}
	var endpoints []*discoveryv1ac.EndpointApplyConfiguration
	for _, room := range rooms {
		if room.Is4() == (family == discoveryv1.AddressTypeIPv4) {
			endpoints = append(endpoints, discoveryv1ac.Endpoint().
				WithAddresses(room.String()).
				WithConditions(discoveryv1ac.EndpointConditions().WithReady(false).WithServing(true).WithTerminating(true)))
		}
	}
	if len(endpoints) == 0 {
		return nil
	}
	meta := labels(naming.SelectDataServers(in.name()))
	meta[v1alpha1.DataServerLabel] = server
	meta[discoveryv1.LabelServiceName] = service
	meta[discoveryv1.LabelManagedBy] = v1alpha1.EndpointSlicesManagedBy
	return discoveryv1ac.EndpointSlice(naming.WaitingRoom(service, family == discoveryv1.AddressTypeIPv6), in.namespace()).
		WithLabels(meta).
		WithAddressType(family).
		WithEndpoints(endpoints...).
		// Ports are matched by name. The Service's other ports lead nowhere.
		WithPorts(discoveryv1ac.EndpointPort().WithName(portNFS).WithPort(port).WithProtocol(corev1.ProtocolTCP))
}
