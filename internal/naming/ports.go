package naming

import "github.com/howdah/howdah/api/v1alpha1"

// Names of container ports.
const (
	PortNFS     = "nfs"
	PortNFSTLS  = "nfs-tls"
	PortMetrics = "metrics"
	PortManager = "manager"
	// PortNFSOnNode and PortNFSTLSOnNode are the names of PortNFS and PortNFSTLS in pods whose Service leads to an address of the
	// node that is not the pod's. Services look for the first names, so Kubernetes leads none to the pod's address.
	PortNFSOnNode    = "nfs-on-node"
	PortNFSTLSOnNode = "nfs-tls-on-node"
	// PortGanesha is on the loopback interface: ganesha's own metrics, which the supervisor passes on.
	PortGanesha = "ganesha"
)

// ganeshaPort is ganesha.DefaultMonitoringPort, which this package can't import. It is beside v1alpha1.MetricsPort, where the supervisor
// gives out what ganesha says there.
const ganeshaPort = 9586

// Ports are the TCP ports on which a data server's pod listens. Its Services have the same ports wherever they lead.
type Ports struct {
	NFS, NFSTLS, Metrics, Manager int32
	// Ganesha is that of ganesha's own metrics, on the loopback interface.
	Ganesha int32
}

// DataServerPorts are the ports of a pod with a network of its own if first is 0, and else those on its node's network. All
// data servers of a FileServer have the same.
func DataServerPorts(first int32) Ports {
	if first == 0 {
		return Ports{v1alpha1.NFSPort, v1alpha1.NFSTLSPort, v1alpha1.MetricsPort, v1alpha1.ManagerPort, ganeshaPort}
	}
	return Ports{first, first + 1, first + 2, first + 3, first + v1alpha1.HostNetworkPorts - 1}
}

// HostPorts are the first and the last of the ports on the nodes' networks.
func HostPorts(network *v1alpha1.HostNetwork) (first, last int32) {
	return network.FirstPort, network.FirstPort + v1alpha1.HostNetworkPorts - 1
}
