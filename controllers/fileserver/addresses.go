package fileserver

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/controllers/apply"
	"github.com/howdah/howdah/controllers/conditions"
	"github.com/howdah/howdah/controllers/desired"
	"github.com/howdah/howdah/controllers/requeue"
	"github.com/howdah/howdah/internal/fleet"
	"github.com/howdah/howdah/internal/naming"
)

// outsideLimit is how long a load balancer may take to give a Service its address. Those of clouds make a machine or a
// listener first, in about a minute.
const outsideLimit = 2 * time.Minute

// outsideSettles is how long a new address of a load balancer is kept from clients. It gets into the status of a Service before all of the
// load balancer knows it, and a client that is led to an address that nothing answers for gives its program an error
// (EHOSTUNREACH, when ARP gives up after three seconds) instead of waiting.
const outsideSettles = 5 * time.Second

// addresses are those of the Services in the cluster, by name.
func (o *observed) addresses() map[string]string {
	addresses := map[string]string{}
	for name, service := range o.services {
		if ip := service.Spec.ClusterIP; ip != "" && ip != corev1.ClusterIPNone {
			addresses[name] = ip
		}
	}
	return addresses
}

// keepAddresses makes Services that are gone with the addresses that they had: mounted clients know them, and that of a PersistentVolume can't be changed. If
// Kubernetes does not give one, the Service gets another, and the shares say so. One that goes in this pass has its address in what is applied.
func (r *Reconciler) keepAddresses(ctx context.Context, o *observed, in desired.FileServerInput) error {
	gone := map[string]*corev1ac.ServiceApplyConfiguration{}
	if name := naming.NamespaceService(o.fileServer.Name); o.services[name].Name == "" {
		var volumes corev1.PersistentVolumeList
		if err := r.List(ctx, &volumes, client.MatchingLabels{v1alpha1.FileServerLabel: o.fileServer.Name}, client.UnsafeDisableDeepCopy); err != nil {
			return fmt.Errorf("reading the volumes of the shares: %w", err)
		}
		if address := cmp.Or(desired.AddressOfVolumes(o.fileServer, volumes.Items), o.fileServer.Status.Address); address != "" {
			gone[address] = desired.NamespaceService(in)
		}
	}
	for ordinal := range in.Replicas {
		name := naming.DataServer(o.fileServer.Name, ordinal)
		if address := o.dataServers[name].Spec.Address; address != "" && o.services[name].Name == "" {
			gone[address] = desired.DataServerService(in, ordinal)
		}
	}
	for address, service := range gone {
		service.Spec.WithClusterIP(address)
		err := r.Applier.Apply(ctx, o.fileServer, apply.Owned(service))
		if apierrors.IsInvalid(err) { // Another Service has it, or this cluster gives no such address.
			ctrl.LoggerFrom(ctx).Info("a Service that was gone does not get the address that clients know", "service", *service.Name, "address", address, "err", err.Error())
		} else if err != nil {
			return err
		}
	}
	return nil
}

// nearClients are, by data server, the clients that are near it: namespace servers may not read nodes. Only hot directories need them. A data
// server whose pod is replaced counts where it was, until the next pod has a node.
func (o *observed) nearClients() map[string]desired.Near {
	if !o.isShared() || !slices.ContainsFunc(o.shares, func(s fleet.Share) bool { return s.HasHot() }) {
		return nil
	}
	nodeOf := map[string]string{}
	for name := range o.dataServers {
		nodeOf[name] = cmp.Or(o.pods[name].Spec.NodeName, o.dataServers[name].Status.NodeName)
	}
	return desired.NearClients(o.nodes, nodeOf)
}

// waitingRooms are the addresses of the namespace servers' pods that are ready, sorted, or if none is, of those that run: a waiting room
// is open as soon as the program runs. Pods on lost nodes are ready as far as the API knows, and nothing answers there: a connection that is led to one
// stays with it until its client gives it up. They count only if there are no others.
func (o *observed) waitingRooms(lostNodes []string) []netip.Addr {
	var ready, readyOnLost, running []netip.Addr
	for i := range o.namespacePods {
		pod := &o.namespacePods[i]
		if pod.DeletionTimestamp != nil || pod.Status.Phase != corev1.PodRunning {
			continue
		}
		for _, ip := range pod.Status.PodIPs {
			address, err := netip.ParseAddr(ip.IP)
			if err != nil || !address.IsGlobalUnicast() {
				continue // The API takes no others in an EndpointSlice (loopback, link-local), and the whole pass would fail.
			}
			running = append(running, address)
			switch {
			case !podReady(pod):
			case slices.Contains(lostNodes, pod.Spec.NodeName):
				readyOnLost = append(readyOnLost, address)
			default:
				ready = append(ready, address)
			}
		}
	}
	for _, others := range [][]netip.Addr{readyOnLost, running} {
		if len(ready) == 0 {
			ready = others
		}
	}
	slices.SortFunc(ready, netip.Addr.Compare)
	return slices.Compact(ready)
}

// starting are, by data server, the addresses of pods that start and hold ganesha's port already: who connects there waits in the kernel, and is
// served as soon as ganesha is up. The kubelet says that such a pod is ready a second or two later: it looks once a second which containers have
// started, and asks then.
//
// They are only those at an address of a node. The pod's own address is in Kubernetes' slice as soon as the kubelet has reported it, as an endpoint that
// does not serve; of two endpoints with one address kube-proxy takes that one, and with no other it refuses all connections
// (docs/design/2026-11-29-refused-while-starting.md).
func (o *observed) starting(replicas int32) map[string]netip.AddrPort {
	found := map[string]netip.AddrPort{}
	for ordinal := range replicas {
		name := naming.DataServer(o.fileServer.Name, ordinal)
		pod, dataServer := o.podOf(name), o.dataServers[name]
		if pod == nil || !desired.IsOnNodeAddress(pod) || pod.DeletionTimestamp != nil || podReady(pod) || hasRestarted(pod) || !o.isNodeReady(pod.Spec.NodeName) ||
			dataServer.Status.PodUID != string(pod.UID) || !dataServer.HoldsPort() {
			continue
		}
		if address := o.nodeEndpointOf(name).Address; address.IsValid() {
			found[name] = netip.AddrPortFrom(address, uint16(naming.DataServerPorts(dataServer.Status.FirstPort).NFS))
		}
	}
	return found
}

// addressesIn are the networks of spec.network.hostNetwork.addressesIn. If none of them has the family of the Services, which lead to no other,
// they don't count.
func (o *observed) addressesIn() (networks []netip.Prefix, refused *metav1.Condition) {
	if o.fileServer.Spec.Network.HostNetwork == nil {
		return nil, nil
	}
	for _, text := range o.fileServer.Spec.Network.HostNetwork.AddressesIn {
		if network, err := netip.ParsePrefix(text); err == nil { // The schema takes nothing else.
			networks = append(networks, network)
		}
	}
	service, err := netip.ParseAddr(o.addresses()[naming.NamespaceService(o.fileServer.Name)])
	if err != nil || len(networks) == 0 || slices.ContainsFunc(networks, func(n netip.Prefix) bool { return n.Addr().Is4() == service.Is4() }) {
		return networks, nil
	}
	family := desired.Family(service)
	condition := conditions.False(v1alpha1.ConditionReady, v1alpha1.ReasonInvalidSpec, fmt.Sprintf(
		"spec.network.hostNetwork.addressesIn has no %[1]s network, and Services have %[1]s addresses here: add the %[1]s network that joins the nodes, or remove "+
			"addressesIn; until then Services lead to the addresses that Kubernetes has of the nodes", family))
	return nil, &condition
}

// nodeEndpoints are the data servers whose Services lead to addresses of their nodes, and to which. What Kubernetes makes of a pod goes by the
// pod; while there is none, it is by what is specified. faults are why some lead nowhere although their pods are ready.
func (o *observed) nodeEndpoints(replicas int32, networks []netip.Prefix) (endpoints map[string]desired.NodeEndpoint, faults map[string]string) {
	endpoints, faults = map[string]desired.NodeEndpoint{}, map[string]string{}
	at := map[netip.Addr]string{}
	for ordinal := range replicas {
		name := naming.DataServer(o.fileServer.Name, ordinal)
		pod := o.podOf(name)
		if pod == nil && len(networks) == 0 || pod != nil && !desired.IsOnNodeAddress(pod) {
			continue
		}
		endpoint := o.nodeEndpointOf(name)
		endpoints[name] = endpoint
		if !endpoint.IsServing {
			continue
		}
		other, isTaken := at[endpoint.Address]
		if !isTaken {
			at[endpoint.Address] = name
			continue
		}
		// One of them would get the other's clients.
		faults[name], faults[other] = sharedAddress(endpoint, endpoints[other], other), sharedAddress(endpoints[other], endpoint, name)
	}
	for name := range faults {
		endpoints[name] = desired.NodeEndpoint{}
	}
	return endpoints, faults
}

// nodeEndpointOf is where the Service of a data server leads whose pod is reached at an address of its node.
func (o *observed) nodeEndpointOf(name string) desired.NodeEndpoint {
	service, err := netip.ParseAddr(o.addresses()[name])
	if err != nil {
		return desired.NodeEndpoint{}
	}
	status := o.dataServers[name].Status
	return desired.NodeEndpointOf(o.podOf(name), &status, desired.Family(service))
}

func sharedAddress(one, other desired.NodeEndpoint, name string) string {
	return fmt.Sprintf("nodes %s and %s both report the address %s, the second one for %s", one.Pod.Spec.NodeName, other.Pod.Spec.NodeName, one.Address, name)
}

// leadToNodes brings the EndpointSlices with addresses of nodes to what the pods are. It is apart from the other children, and before them:
// clients follow these slices, so nothing that fails elsewhere may keep them as they are, and neither may a pause.
func (r *Reconciler) leadToNodes(ctx context.Context, o *observed, in desired.FileServerInput) error {
	wanted := desired.NodeAddressSlices(in)
	for ordinal := range in.Replicas {
		name := naming.DataServer(o.fileServer.Name, ordinal)
		if _, stays := in.NodeEndpoints[name]; stays {
			continue
		}
		// Its Service leads to its pod by now. The slice of before must lead nowhere until it is pruned.
		for _, family := range []discoveryv1.AddressType{discoveryv1.AddressTypeIPv4, discoveryv1.AddressTypeIPv6} {
			var left discoveryv1.EndpointSlice
			key := client.ObjectKey{Namespace: o.fileServer.Namespace, Name: naming.NodeAddress(name, family == discoveryv1.AddressTypeIPv6)}
			if err := r.Get(ctx, key, &left); client.IgnoreNotFound(err) != nil {
				return fmt.Errorf("EndpointSlice %s: reading it: %w", key, err)
			} else if err == nil && left.DeletionTimestamp == nil && len(left.Endpoints) > 0 {
				wanted = append(wanted, desired.NodeAddressSlice(o.fileServer, name, family, desired.NodeEndpoint{}))
			}
		}
	}
	return r.Applier.Apply(ctx, o.fileServer, apply.AllOwned(wanted...)...)
}

// hasRestarted tells whether the program of a pod has ended. The report may be that of the earlier one then, and the port may be closed.
func hasRestarted(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.ContainerStatuses, func(status corev1.ContainerStatus) bool {
		return status.RestartCount > 0 || status.State.Terminated != nil
	})
}

// outsideAddresses are those of the Services for clients outside the cluster, by the names of the Services inside; those
// that have none yet are missing.
func (o *observed) outsideAddresses() map[string][]string {
	addresses := map[string][]string{}
	if !desired.HasOutside(o.fileServer) {
		return addresses
	}
	for name, service := range o.services {
		inside, isOutside := strings.CutSuffix(name, naming.OutsideService(""))
		if !isOutside || service.Spec.Type != corev1.ServiceTypeLoadBalancer || o.goesFirst(&service) {
			continue
		}
		if settled, _ := o.settledOutside(inside, &service); len(settled) > 0 {
			addresses[inside] = settled
		}
	}
	return addresses
}

// settledOutside are the addresses of a Service that clients may have, and when they may have the others; 0: there are none. What has been in
// the status of the FileServer stays: a Service's status is written for other reasons, too.
func (o *observed) settledOutside(inside string, service *corev1.Service) (settled []string, next time.Duration) {
	given := desired.OutsideAddresses(service)
	var written time.Time
	for _, entry := range service.ManagedFields {
		if entry.Subresource == "status" && entry.Time != nil && entry.Time.After(written) {
			written = entry.Time.Time
		}
	}
	// A time that lies far ahead is of another clock: nothing is learned from it.
	age := o.now.Sub(written)
	if written.IsZero() || age < -outsideSettles || age >= outsideSettles {
		return given, 0
	}
	known := o.knownOutside(inside)
	for _, address := range given {
		if slices.Contains(known, address) {
			settled = append(settled, address)
		} else {
			next = min(outsideSettles-age, outsideSettles)
		}
	}
	return settled, next
}

// knownOutside are the outside addresses that the status has for the Service inside.
func (o *observed) knownOutside(inside string) []string {
	if inside == naming.NamespaceService(o.fileServer.Name) {
		return o.fileServer.Status.OutsideAddresses
	}
	for _, server := range o.fileServer.Status.Servers {
		if server.Name == inside {
			return server.OutsideAddresses
		}
	}
	return nil
}

// outsideReplaced are the outside Services that are deleted before they are made again, because of what can't be changed.
func (o *observed) outsideReplaced(replicas int32) map[string]bool {
	replaced := map[string]bool{}
	for _, name := range desired.OutsideServices(o.fileServer, replicas) {
		if service, ok := o.services[name]; ok && o.goesFirst(&service) {
			replaced[name] = true
		}
	}
	return replaced
}

// goesFirst tells whether an outside Service has to go before it is made again. While none can be made, all of them stay.
func (o *observed) goesFirst(service *corev1.Service) bool {
	return len(o.badValues.Outside) == 0 && desired.IsOfOtherClass(service, o.fileServer.Spec.Network.LoadBalancer)
}

// outsideWaits is what waits for an address: the Services, those of them that have waited too long, and when that changes.
func (o *observed) outsideWaits(replicas int32) (waiting, late []string, next time.Duration) {
	addresses := o.outsideAddresses()
	for _, name := range desired.OutsideServices(o.fileServer, replicas) {
		inside := strings.TrimSuffix(name, naming.OutsideService(""))
		service, made := o.services[name]
		var settles time.Duration
		if made {
			_, settles = o.settledOutside(inside, &service)
			next = requeue.Soonest(next, settles)
		}
		if len(addresses[inside]) > 0 {
			continue
		}
		waiting = append(waiting, name)
		if !made || settles > 0 {
			continue
		}
		if left := outsideLimit - o.now.Sub(service.CreationTimestamp.Time); left > 0 {
			next = requeue.Soonest(next, left)
		} else {
			late = append(late, name)
		}
	}
	return waiting, late, next
}

// outsideAgain is when a Service will have waited too long for its address, or clients may have one; 0: none waits.
func (o *observed) outsideAgain(replicas int32) time.Duration {
	_, _, next := o.outsideWaits(replicas)
	return next
}

// outsideCondition tells whether clients outside the cluster have addresses; nil if there are to be none.
func (o *observed) outsideCondition(replicas int32) *metav1.Condition {
	const conditionType = v1alpha1.FileServerOutsideAddressesAvailable
	if !desired.HasOutside(o.fileServer) {
		return nil
	}
	all := desired.OutsideServices(o.fileServer, replicas)
	waiting, late, _ := o.outsideWaits(replicas)
	count := fmt.Sprintf("%d of %d Services of type LoadBalancer have an address", len(all)-len(waiting), len(all))
	var found metav1.Condition
	switch {
	case len(waiting) == 0:
		found = conditions.True(conditionType, v1alpha1.ReasonReady, count+"; clients outside the cluster mount "+
			strings.Join(o.outsideAddresses()[naming.NamespaceService(o.fileServer.Name)], " or "))
	case len(late) == 0:
		found = conditions.False(conditionType, v1alpha1.ReasonOutsideAddressesPending, count+"; waiting for "+conditions.List(waiting, maxPaths))
	default:
		found = conditions.False(conditionType, v1alpha1.ReasonOutsideAddressesMissing, fmt.Sprintf(
			"%s; no load balancer has given one to Service %s for more than %s: install one that serves %s, or give its pool more addresses "+
				"(kubectl -n %s describe service %s shows its events), or remove spec.network.loadBalancer; clients in the cluster are served",
			count, conditions.List(late, maxPaths), outsideLimit, describeClass(o.fileServer.Spec.Network.LoadBalancer), o.fileServer.Namespace, late[0]))
	}
	return &found
}

func describeClass(balancer *v1alpha1.LoadBalancer) string {
	if balancer.Class == "" {
		return "Services without a class"
	}
	return "the class " + balancer.Class
}
