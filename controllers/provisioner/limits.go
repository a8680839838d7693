package provisioner

import (
	"github.com/howdah/howdah/controllers/backend"
	"github.com/howdah/howdah/controllers/desired"
	"github.com/howdah/howdah/controllers/limits"
)

func capsOf(o *observed) limits.Caps {
	exports := backend.Of(o.fileServer).ExportsPerShare(o.fileServer)
	return limits.Of(o.fileServer, desired.MaxShares(exports), exports)
}

// findLimit returns the FileServer's limit that refuses a share for the claim; "" if there is none. No share is made
// that would only wait.
func findLimit(o *observed) string {
	if o.siblings == nil {
		return ""
	}
	if refused := capsOf(o).Shares(o.siblings, o.claim.Namespace, 1); refused != nil {
		return refused.Message(o.fileServer.Name)
	}
	return ""
}

// findDirectoryLimit is findLimit for a number of new directories of a share.
func findDirectoryLimit(o *observed, more int) string {
	var taken limits.Taken
	taken.Add(o.share.Namespace, limits.Usage{Directories: len(o.allDirectories)})
	if refused := capsOf(o).Directories(&taken, o.share.Namespace, more); refused != nil {
		return refused.Message(o.fileServer.Name)
	}
	return ""
}
