package limits

import (
	"k8s.io/utils/ptr"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/naming"
)

// Count adds up what shares have, by their status. A share that is not admitted counts as a share, so that the
// provisioner makes no more than allowed.
func Count(shares []v1alpha1.FileShare) *Taken {
	taken := &Taken{}
	for i := range shares {
		used := shares[i].Status.LimitsUsed
		taken.Add(naming.TenantOf(&shares[i]), Usage{Shares: 1, Directories: int(ptr.Deref(used.Directories, 0)), AccessNetworks: int(ptr.Deref(used.AccessNetworks, 0))})
	}
	return taken
}

// IsWaiting reports whether a share waits for room in the limits.
func IsWaiting(share *v1alpha1.FileShare) bool {
	for i := range share.Status.Conditions {
		condition := &share.Status.Conditions[i]
		if condition.Type != v1alpha1.FileSharePlaced && condition.Type != v1alpha1.FileShareExported {
			continue
		}
		switch condition.Reason {
		case v1alpha1.ReasonTooManyShares, v1alpha1.ReasonLimitReached, v1alpha1.ReasonGrowthRefused:
			return true
		}
	}
	return false
}
