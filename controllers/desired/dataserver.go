package desired

import (
	internalv1ac "github.com/howdah/howdah/api/internalapi/applyconfiguration/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/naming"
)

// defaultMode is the permission of a share's root when the share has none.
const defaultMode = "0755"

// DataServer is the object of a data server. What it exports are ShareExports.
func DataServer(in FileServerInput, ordinal int32) *internalv1ac.DataServerApplyConfiguration {
	name := naming.DataServer(in.name(), ordinal)
	meta := labels(naming.SelectDataServers(in.name()))
	meta[v1alpha1.DataServerLabel] = name
	lease, grace := nfsTimes(in.FileServer.Spec.NFS)
	spec := internalv1ac.DataServerSpec().
		WithFileServerRef(internalv1ac.FileServerReference().WithName(in.name())).
		WithServerScope(string(in.FileServer.UID)).
		WithLeaseSeconds(lease).
		WithGraceSeconds(grace).
		WithMaxConnections(MaxConnections(in.FileServer)).
		WithVolumes(in.perServer())
	if address := in.Addresses[name]; address != "" {
		spec.WithAddress(address)
	}
	return internalv1ac.DataServer(name, in.namespace()).WithLabels(meta).WithSpec(spec)
}

func nfsTimes(options *v1alpha1.NFSOptions) (lease, grace int32) {
	lease, grace = DefaultLeaseSeconds, DefaultGraceSeconds
	if options == nil {
		return lease, grace
	}
	if options.LeaseSeconds != 0 {
		lease = options.LeaseSeconds
	}
	if options.GraceSeconds != 0 {
		grace = options.GraceSeconds
	}
	return lease, grace
}
