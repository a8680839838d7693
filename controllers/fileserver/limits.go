package fileserver

import (
	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/controllers/backend"
	"github.com/howdah/howdah/controllers/desired"
	"github.com/howdah/howdah/controllers/limits"
)

// directoryLimits are what namespace servers hold clients' mkdir to.
func directoryLimits(fileServer *v1alpha1.FileServer) internalv1.DirectoryLimits {
	exports := backend.Of(fileServer).ExportsPerShare(fileServer)
	caps := limits.Of(fileServer, desired.MaxShares(exports), exports)
	return internalv1.DirectoryLimits{Total: int32(caps.Total.Directories), PerNamespace: int32(caps.PerNamespace.Directories)}
}
