package desired

import (
	"cmp"

	internalv1ac "github.com/howdah/howdah/api/internalapi/applyconfiguration/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/naming"
)

// DataServer is the object of a data server. What it exports are ShareExports.
func DataServer(in FileServerInput, ordinal int32) *internalv1ac.DataServerApplyConfiguration {
	name := naming.DataServer(in.name(), ordinal)
	meta := labels(naming.SelectDataServers(in.name()))
	meta[v1alpha1.DataServerLabel] = name
	spec := internalv1ac.DataServerSpec().
		WithFileServerRef(internalv1ac.FileServerReference().WithName(in.name())).
		WithServerScope(string(in.FileServer.UID)).
		WithLeaseSeconds(in.FileServer.Spec.NFS.LeaseSeconds).
		WithGraceSeconds(in.FileServer.Spec.NFS.GraceSeconds).
		WithMaxConnections(MaxConnections(in.FileServer)).
		WithVolumes(in.perServer()).
		WithSharedFileSystemPolicy(sharedFileSystemPolicy(in.FileServer))
	if address := in.Addresses[name]; address != "" {
		spec.WithAddress(address)
	}
	return internalv1ac.DataServer(name, in.namespace()).WithLabels(meta).WithSpec(spec)
}

// sharedFileSystemPolicy is never left to a default of another kind: what isn't known must forbid.
func sharedFileSystemPolicy(fs *v1alpha1.FileServer) v1alpha1.SharedFileSystemPolicy {
	return cmp.Or(fs.Spec.Storage.Volumes.SharedFileSystemPolicy, v1alpha1.SharedFileSystemForbid)
}
