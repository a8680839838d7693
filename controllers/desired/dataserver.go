package desired

import (
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
		WithMaxConnections(MaxConnections(in.FileServer))
	for _, network := range in.NodeNetworks {
		spec.WithNodeNetworks(network.String())
	}
	if in.Storage.Describe != nil {
		in.Storage.Describe(spec)
	}
	if address := in.Addresses[name]; address != "" {
		spec.WithAddress(address)
	}
	return internalv1ac.DataServer(name, in.namespace()).WithLabels(meta).WithSpec(spec)
}
