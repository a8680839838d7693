package desired

import (
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/ganesha"
)

// MaxConnections is how many TCP connections each data server of a FileServer takes: what the specification says, or as
// many as the memory of its container is good for.
func MaxConnections(fs *v1alpha1.FileServer) int32 {
	if nfs := fs.Spec.NFS; nfs != nil && nfs.MaxConnections != 0 {
		return nfs.MaxConnections
	}
	return int32(ganesha.LimitsFor(memoryOf(fs)).Connections)
}
