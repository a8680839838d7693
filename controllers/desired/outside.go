package desired

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/naming"
)

// maxOutsideAddresses is the most that the API takes of one Service.
const maxOutsideAddresses = 8

// HasOutside tells whether a FileServer has addresses for clients outside the cluster.
func HasOutside(fs *v1alpha1.FileServer) bool { return fs.Spec.Network.LoadBalancer != nil }

// OutsideServices are the names of the Services for clients outside the cluster: the first is that of the namespace servers.
func OutsideServices(fs *v1alpha1.FileServer, replicas int32) []string {
	if !HasOutside(fs) {
		return nil
	}
	names := []string{naming.OutsideService(naming.NamespaceService(fs.Name))}
	for ordinal := range replicas {
		names = append(names, naming.OutsideService(naming.DataServer(fs.Name, ordinal)))
	}
	return names
}

// FamiliesQuestion is a Service that shows, in a dry run of its creation, of which families Services can have addresses: Kubernetes fills in all that
// there are. It has the labels of the Services for clients outside the cluster, because admission policies may ask for them.
func FamiliesQuestion(fs *v1alpha1.FileServer) *corev1.Service {
	selector := naming.SelectNamespaceServers(fs.Name)
	all := maps.Clone(fs.Spec.Network.LoadBalancer.Labels)
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, labels(selector))
	all[v1alpha1.ManagedByLabel] = v1alpha1.ManagedBy
	policy := corev1.IPFamilyPolicyPreferDualStack
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: fs.Namespace, GenerateName: "families-", Labels: all},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeClusterIP, Selector: selector, IPFamilyPolicy: &policy,
			Ports: []corev1.ServicePort{{Name: portNFS, Port: v1alpha1.NFSPort, Protocol: corev1.ProtocolTCP}},
		},
	}
}

// OutsideAddresses are the addresses and host names that a load balancer has given to a Service, in its order. One that is
// being deleted has none: it may lead to the wrong place soon.
func OutsideAddresses(service *corev1.Service) (addresses []string) {
	if service.DeletionTimestamp != nil {
		return nil
	}
	for _, ingress := range service.Status.LoadBalancer.Ingress {
		address := ingress.Hostname
		if ip, err := netip.ParseAddr(ingress.IP); err == nil {
			address = ip.String()
		}
		if address != "" && !slices.Contains(addresses, address) && len(addresses) < maxOutsideAddresses {
			addresses = append(addresses, address)
		}
	}
	return addresses
}

// IsOfOtherClass tells whether a Service has another loadBalancerClass than it should. That field can't be changed, so the
// Service must go first.
func IsOfOtherClass(service *corev1.Service, wanted *v1alpha1.LoadBalancer) bool {
	class := ""
	if service.Spec.LoadBalancerClass != nil {
		class = *service.Spec.LoadBalancerClass
	}
	return class != wanted.Class
}

// outside are the Services for clients outside the cluster, without those that must go first, and the waiting rooms of the
// data servers' ones.
func outside(in FileServerInput) (children []runtime.ApplyConfiguration) {
	if !HasOutside(in.FileServer) {
		return nil
	}
	if service := outsideNamespaceService(in); !in.OutsideReplaced[*service.Name] {
		children = append(children, service)
	}
	for ordinal := range in.Replicas {
		service := outsideDataServerService(in, ordinal)
		if in.OutsideReplaced[*service.Name] {
			continue
		}
		children = append(children, service)
		// A slice for a family that the Service does not have is of no use, and no harm.
		for _, family := range []discoveryv1.AddressType{discoveryv1.AddressTypeIPv4, discoveryv1.AddressTypeIPv6} {
			if slice := waitingRoom(in, naming.DataServer(in.name(), ordinal), *service.Name, family); slice != nil {
				children = append(children, slice)
			}
		}
	}
	return children
}

// outsideNamespaceService is what clients outside the cluster mount. It leads to a port of its own of the namespace servers,
// which know by it that a client came from outside (operations.DoorOutside). It has affinity as NamespaceService has.
func outsideNamespaceService(in FileServerInput) *corev1ac.ServiceApplyConfiguration {
	selector := naming.SelectNamespaceServers(in.name())
	service := outsideService(in, naming.NamespaceService(in.name()), labels(selector), selector, portNFSOutside, portNFSOutside)
	service.Spec.
		WithSessionAffinity(corev1.ServiceAffinityClientIP).
		WithSessionAffinityConfig(corev1ac.SessionAffinityConfig().
			WithClientIP(corev1ac.ClientIPConfig().WithTimeoutSeconds(namespaceAffinitySeconds)))
	return service
}

// outsideDataServerService leads to one data server, with the port for clients alone.
func outsideDataServerService(in FileServerInput, ordinal int32) *corev1ac.ServiceApplyConfiguration {
	server, meta, selector := dataServerSelection(in, ordinal)
	target := portNFS
	if _, is := in.NodeEndpoints[server]; is {
		// Who comes from outside has come to the pod's node already (externalTrafficPolicy): the pod's own address is as near.
		target = naming.PortNFSOnNode
	}
	service := outsideService(in, server, meta, selector, portNFS, target)
	service.Spec.WithPublishNotReadyAddresses(false)
	return service
}

// outsideService has externalTrafficPolicy Local: another would replace the addresses of clients by those of nodes, which
// access rules and the limits of each address go by.
func outsideService(in FileServerInput, inside string, own, selector map[string]string, port, target string) *corev1ac.ServiceApplyConfiguration {
	balancer := in.FileServer.Spec.Network.LoadBalancer
	meta := maps.Clone(balancer.Labels)
	if meta == nil {
		meta = map[string]string{}
	}
	maps.Copy(meta, own)
	spec := corev1ac.ServiceSpec().
		WithType(corev1.ServiceTypeLoadBalancer).
		WithSelector(selector).
		WithExternalTrafficPolicy(corev1.ServiceExternalTrafficPolicyLocal).
		WithAllocateLoadBalancerNodePorts(balancer.NodePorts != v1alpha1.NodePortsOmit).
		WithLoadBalancerSourceRanges(balancer.SourceRanges...).
		WithPorts(corev1ac.ServicePort().WithName(port).WithPort(v1alpha1.NFSPort).WithProtocol(corev1.ProtocolTCP).
			WithTargetPort(intstr.FromString(target)))
	if balancer.Class != "" {
		spec.WithLoadBalancerClass(balancer.Class)
	}
	// The API server keeps the policy that a Service has if it is left out.
	spec.WithIPFamilyPolicy(cmp.Or(balancer.IPFamilyPolicy, corev1.IPFamilyPolicySingleStack))
	service := corev1ac.Service(naming.OutsideService(inside), in.namespace()).WithLabels(meta).WithSpec(spec)
	if len(balancer.Annotations) > 0 {
		service.WithAnnotations(balancer.Annotations)
	}
	return service
}
