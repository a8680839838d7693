package desired

import (
	"maps"
	"net/netip"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/naming"
)

// namespaceAffinitySeconds is how long a client's connections go to the same namespace server after the last one was
// made. It is longer than the time in which a disconnected client returns.
const namespaceAffinitySeconds = 10800

// Names of ports.
const (
	portNFS        = naming.PortNFS
	portNFSOutside = "nfs-outside"
	portNFSTLS     = naming.PortNFSTLS
	portMetrics    = naming.PortMetrics
	portManager    = naming.PortManager
	portWaiting    = "waiting-room"
)

// NamespaceService is the address that clients mount. All connections of a
// client (nconnect) must reach the same namespace server, because a session's
// connections belong to one server (RFC 8881 section 2.10.3); so it has affinity.
func NamespaceService(in FileServerInput) *corev1ac.ServiceApplyConfiguration {
	selector := naming.SelectNamespaceServers(in.name())
	return in.withAddress(corev1ac.Service(naming.NamespaceService(in.name()), in.namespace()).
		WithLabels(labels(selector)).
		WithSpec(corev1ac.ServiceSpec().
			WithType(corev1.ServiceTypeClusterIP).
			WithSelector(selector).
			WithSessionAffinity(corev1.ServiceAffinityClientIP).
			WithSessionAffinityConfig(corev1ac.SessionAffinityConfig().
				WithClientIP(corev1ac.ClientIPConfig().WithTimeoutSeconds(namespaceAffinitySeconds))).
			WithPorts(servicePort(portNFS, v1alpha1.NFSPort))))
}

// withAddress has a Service made again with its address if it is deleted: mounted clients know it.
func (in FileServerInput) withAddress(service *corev1ac.ServiceApplyConfiguration) *corev1ac.ServiceApplyConfiguration {
	if address := in.Addresses[*service.Name]; address != "" {
		service.Spec.WithClusterIP(address)
	}
	return service
}

// AddressOfVolumes is the address of the namespace servers that most volumes of a FileServer's shares have; "" if none has one. They may be of an earlier
// FileServer of the name: an address of a PersistentVolume can't be changed.
func AddressOfVolumes(fs *v1alpha1.FileServer, volumes []corev1.PersistentVolume) string {
	count := map[string]int{}
	for i := range volumes {
		volume := &volumes[i]
		made, of := volume.Annotations[v1alpha1.OwnerAnnotation], naming.Owner("FileShare", fs.Namespace, "")
		ofShare := strings.HasPrefix(made, of) || strings.HasPrefix(volume.Annotations[v1alpha1.ProvisionedShareAnnotation], fs.Namespace+"/")
		if volume.Labels[v1alpha1.FileServerLabel] != fs.Name || !ofShare || volume.Spec.NFS == nil || volume.DeletionTimestamp != nil {
			continue
		}
		if _, err := netip.ParseAddr(volume.Spec.NFS.Server); err == nil {
			count[volume.Spec.NFS.Server]++
		}
	}
	most := ""
	for _, address := range slices.Sorted(maps.Keys(count)) {
		if count[address] > count[most] {
			most = address
		}
	}
	return most
}

// DataServerService is the stable address of one data server. It leads to the pod while the pod is ready, also while
// ganesha restarts in place (serverpod.ReadyAllowance), and to the namespace servers' waiting rooms (waitingRoomSlice)
// as soon as the pod terminates. Connections to a terminating pod would wait for a timeout of seconds.
//
// It finds the pod's ports by their names, so it leads to pods with a network of their own and to those on their nodes' networks. It finds
// none of NFS in pods that are reached at another address of their nodes: to those NodeAddressSlice leads.
func DataServerService(in FileServerInput, ordinal int32) *corev1ac.ServiceApplyConfiguration {
	server, meta, selector := dataServerSelection(in, ordinal)
	return in.withAddress(corev1ac.Service(server, in.namespace()).
		WithLabels(meta).
		WithSpec(corev1ac.ServiceSpec().
			WithType(corev1.ServiceTypeClusterIP).
			WithSelector(selector).
			WithPublishNotReadyAddresses(false). // Set explicitly, so that changes by others are undone.
			WithPorts(servicePort(portNFS, v1alpha1.NFSPort), servicePort(portNFSTLS, v1alpha1.NFSTLSPort), servicePort(portMetrics, v1alpha1.MetricsPort))))
}

// dataServerSelection is the name of a data server, with the labels of its Services and what selects its pod.
func dataServerSelection(in FileServerInput, ordinal int32) (server string, meta, selector map[string]string) {
	server = naming.DataServer(in.name(), ordinal)
	selector = naming.SelectDataServers(in.name())
	meta = labels(selector)
	meta[v1alpha1.DataServerLabel] = server
	selector = maps.Clone(selector)
	selector[appsv1.StatefulSetPodNameLabel] = server
	return server, meta, selector
}

func servicePort(name string, port int32) *corev1ac.ServicePortApplyConfiguration {
	return corev1ac.ServicePort().WithName(name).WithPort(port).WithProtocol(corev1.ProtocolTCP).
		WithTargetPort(intstr.FromString(name))
}
