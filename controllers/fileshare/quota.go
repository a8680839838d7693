package fileshare

import (
	"fmt"
	"math"
	"math/bits"
	"strconv"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/controllers/backend"
	"github.com/howdah/howdah/controllers/conditions"
)

// quotaNearlyUsed is the used part of a quota, in percent, from which on the share reports it. The alerts of
// config/prometheus use the same value.
const quotaNearlyUsed = 85

// quotaState is the input of the decision about a share's quota. Sizes are in bytes.
type quotaState struct {
	// wanted is spec.quota.size, nil if there is none.
	wanted *resource.Quantity
	// unsupported is why the storage can't enforce quotas, and what to do; "" if it can.
	unsupported string
	// requested is the size that was last requested from the storage; 0: nothing.
	requested int64
	// enforced is the quota that the storage has, 0 if none; nil: not known yet.
	enforced *int64
	// used is what the share's files take; nil: not known yet.
	used *int64
	// capacity is what the storage has altogether; nil: not known.
	capacity *int64
	// fault is why the storage did not set the quota; "" if it did.
	fault string
}

// quotaPlan has the change of a share's quota, and what the status reports.
type quotaPlan struct {
	// request is the size to request from the storage; 0 is no quota. A refused size is not requested, so nothing changes until the user
	// corrects it.
	request int64
	// condition is QuotaEnforced; nil if there is no quota and none to remove.
	condition *metav1.Condition
	status    v1alpha1.ShareQuotaStatus
}

// quotaOf returns the state of a share's quota. Its FileServer must exist.
func quotaOf(o *observed) quotaState {
	q := quotaState{wanted: o.share.Spec.Quota.Size, capacity: o.fileServer.Status.Capacity.TotalBytes}
	_, q.unsupported = backend.Of(o.fileServer).EnforcesSizes(o.fileServer)
	if o.storage == nil || o.storage.DeletionTimestamp != nil {
		return q
	}
	spec, status := &o.storage.Spec, &o.storage.Status
	q.requested, q.enforced, q.used = spec.QuotaBytes, status.QuotaBytes, status.UsedBytes
	// The ShareStorage can be Ready without the quota. After the steward has tried, its message has the reason.
	if tried := status.ObservedGeneration; tried != nil && *tried == o.storage.Generation && ptr.Deref(status.QuotaBytes, 0) != spec.QuotaBytes {
		q.fault = conditions.Message(status.Conditions, v1alpha1.ConditionReady)
	}
	return q
}

// unknownQuota is for a share that nothing may be made for: nothing changes.
func unknownQuota(o *observed) quotaPlan {
	plan := quotaPlan{status: o.share.Status.Quota}
	if o.share.Spec.Quota.Size != nil {
		plan.condition = ptr.To(conditions.Unknown(v1alpha1.FileShareQuotaEnforced, v1alpha1.ReasonPending, "waiting for the share to be placed"))
	}
	return plan
}

// planQuota decides it.
func planQuota(q quotaState) quotaPlan {
	const kind = v1alpha1.FileShareQuotaEnforced
	if q.unsupported != "" {
		if q.wanted == nil {
			return quotaPlan{}
		}
		return quotaPlan{condition: ptr.To(conditions.False(kind, v1alpha1.ReasonQuotaUnsupported, "spec.quota: "+q.unsupported))}
	}
	plan := quotaPlan{status: quotaStatus(q)}
	if q.wanted != nil {
		plan.request = q.wanted.Value()
	}
	enforced := ptr.Deref(q.enforced, 0)
	switch refusal := refuseQuota(q, plan.request, enforced); {
	case plan.request == enforced && (q.enforced != nil || q.wanted == nil):
		if plan.request > 0 {
			plan.condition = ptr.To(describeEnforced(q, enforced))
		}
	case refusal != nil:
		plan.condition = refusal
		// The previous request stays, unless it is the refused size: then less was used when it was made.
		if q.requested != plan.request {
			enforced = q.requested
		}
		plan.request = enforced
	default:
		message := fmt.Sprintf("the storage is asked for a quota of %s and has %s", sizeOr(plan.request, "none"), sizeOr(enforced, "none"))
		if q.fault != "" {
			message += ": " + q.fault
		}
		plan.condition = ptr.To(conditions.False(kind, v1alpha1.ReasonProgressing, message))
	}
	return plan
}

// refuseQuota returns why a quota can't be set; nil if it can. It uses the last report of the used space. The storage
// itself checks again when it sets the quota.
func refuseQuota(q quotaState, wanted, enforced int64) *metav1.Condition {
	const kind = v1alpha1.FileShareQuotaEnforced
	if wanted == 0 {
		return nil
	}
	stays := "the quota stays " + sizeOr(enforced, "")
	if enforced == 0 {
		stays = "there is no quota until then"
	}
	switch {
	case q.used != nil && wanted < *q.used:
		needed := readable(*q.used, math.Ceil)
		return ptr.To(conditions.False(kind, v1alpha1.ReasonQuotaBelowUse, fmt.Sprintf(
			"spec.quota.size is %s and the share's files take %s: %s; remove files, or set spec.quota.size to %s or more", q.wanted, needed, stays, needed)))
	case q.capacity != nil && wanted > *q.capacity && (enforced == 0 || wanted > enforced):
		return ptr.To(conditions.False(kind, v1alpha1.ReasonQuotaAboveCapacity, fmt.Sprintf(
			"spec.quota.size is %s and the storage has %s: %s; lower it, or add storage", q.wanted, readable(*q.capacity, math.Floor), stays)))
	}
	return nil
}

// describeEnforced is the message for an enforced quota, which may be nearly used.
func describeEnforced(q quotaState, enforced int64) metav1.Condition {
	const kind = v1alpha1.FileShareQuotaEnforced
	if q.used == nil || *q.used < enforced/100*quotaNearlyUsed {
		return conditions.True(kind, v1alpha1.ReasonReady, fmt.Sprintf("the storage keeps the share to %s", q.wanted))
	}
	return conditions.True(kind, v1alpha1.ReasonQuotaNearlyUsed, fmt.Sprintf(
		`%d %% of %s (spec.quota.size) are used, or more; at the end of it writes fail with "Disk quota exceeded": raise it, or remove files`, quotaNearlyUsed, q.wanted))
}

// quotaStatus is the quota of the storage, in the user's notation if the value is the same.
func quotaStatus(q quotaState) v1alpha1.ShareQuotaStatus {
	var status v1alpha1.ShareQuotaStatus
	size := ptr.Deref(q.enforced, 0)
	switch {
	case size > 0 && q.wanted != nil && q.wanted.Value() == size:
		status.Size = ptr.To(q.wanted.DeepCopy())
	case size > 0:
		status.Size = resource.NewQuantity(size, resource.BinarySI)
	}
	if q.used != nil {
		status.Used = resource.NewQuantity(inSteps(*q.used, size), resource.BinarySI)
	}
	return status
}

// inSteps rounds down to steps of at most 1/64 of the quota or, if more is used, of the used space. Steps are powers of
// two, which are short in binary units.
func inSteps(used, size int64) int64 {
	step := int64(1)
	if whole := uint64(max(used, size, 0)) / 64; whole > 0 {
		step <<= bits.Len64(whole) - 1
	}
	return used / step * step
}

// setQuota writes the status of the quota. The condition exists only while there is a quota.
func setQuota(status *v1alpha1.FileShareStatus, plan quotaPlan) {
	status.Quota = plan.status
	if plan.condition == nil {
		meta.RemoveStatusCondition(&status.Conditions, v1alpha1.FileShareQuotaEnforced)
	}
}

// withQuota adds the condition of the quota to others.
func withQuota(found []metav1.Condition, plan quotaPlan) []metav1.Condition {
	if plan.condition != nil {
		found = append(found, *plan.condition)
	}
	return found
}

func sizeOr(bytes int64, none string) string {
	if bytes == 0 {
		return none
	}
	return resource.NewQuantity(bytes, resource.BinarySI).String()
}

// readable is a size with one decimal at most, in a unit that Kubernetes reads: 36.5Gi.
func readable(bytes int64, round func(float64) float64) string {
	const units = "KMGTPE"
	if bytes < 1024 {
		return strconv.FormatInt(bytes, 10)
	}
	exponent := (bits.Len64(uint64(bytes)) - 1) / 10
	tenths := round(float64(bytes) / float64(uint64(1)<<(10*exponent)) * 10)
	return strconv.FormatFloat(tenths/10, 'f', -1, 64) + units[exponent-1:exponent] + "i"
}
