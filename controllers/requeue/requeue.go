package requeue

import (
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// minBackoff and maxBackoff bound the time from a failed reconcile to the next. With the default maximum of 1,000 s,
// minutes could pass after a user has corrected an error.
const minBackoff, maxBackoff = 50 * time.Millisecond, 30 * time.Second

// RateLimiter returns the exponential backoff of failed reconciles.
func RateLimiter() workqueue.TypedRateLimiter[reconcile.Request] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](minBackoff, maxBackoff)
}

// Soonest returns the smallest of the durations that are not 0, which mean never; 0 if there is none.
func Soonest(durations ...time.Duration) time.Duration {
	least := time.Duration(0)
	for _, duration := range durations {
		if duration > 0 && (least == 0 || duration < least) {
			least = duration
		}
	}
	return least
}
