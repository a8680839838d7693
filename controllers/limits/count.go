package limits

import (
	"k8s.io/utils/ptr"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/naming"
)

// Count is what shares have, by their status. One that is not let in yet counts as a share, so that what makes shares makes no more than may be.
func Count(shares []v1alpha1.FileShare) *Taken {
	taken := &Taken{}
	for i := range shares {
		used := shares[i].Status.LimitsUsed
		taken.Add(naming.TenantOf(&shares[i]), Usage{Shares: 1, Directories: int(ptr.Deref(used.Directories, 0)), AccessNetworks: int(ptr.Deref(used.AccessNetworks, 0))})
	}
	return taken
}
