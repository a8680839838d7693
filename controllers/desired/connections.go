package desired

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/howdah/howdah/api/v1alpha1"
)

const (
	// defaultMaxConnections is for 256 clients with nconnect=16, where nothing is known of the memory.
	defaultMaxConnections = 4096
	// leastConnections is ganesha's own default, mostConnections what one address of a client can still make of its ports.
	leastConnections, mostConnections = 1024, 16384
	// connectionShare is the part of a data server's memory that connections may take, and connectionBytes what is reckoned
	// for each. An idle one with its share of a session takes 4 KiB (TestGanesha: 200 clients with 16 each); the rest is
	// for what some of them have in transit.
	connectionShare, connectionBytes = 4, 64 << 10
)

// MaxConnections is how many TCP connections each data server of a FileServer takes: what the specification says, or as
// many as the memory of its container is good for, by its limit, or else its request.
func MaxConnections(fs *v1alpha1.FileServer) int32 {
	if nfs := fs.Spec.NFS; nfs != nil && nfs.MaxConnections != 0 {
		return nfs.MaxConnections
	}
	if fs.Spec.Resources == nil {
		return defaultMaxConnections
	}
	memory, found := fs.Spec.Resources.Limits[corev1.ResourceMemory]
	if !found {
		memory, found = fs.Spec.Resources.Requests[corev1.ResourceMemory]
	}
	if !found {
		return defaultMaxConnections
	}
	return int32(min(max(memory.Value()/connectionShare/connectionBytes, leastConnections), mostConnections))
}
