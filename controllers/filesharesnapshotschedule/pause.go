package filesharesnapshotschedule

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
)

// removals has the last deletion of each schedule, by the machine's monotonic clock. It is safe for concurrent use, and
// empty after a restart of the operator.
type removals struct {
	mu   sync.Mutex
	last map[types.UID]time.Time
}

// note records that a schedule deletes snapshots now.
func (r *removals) note(schedule types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := clock.RealClock{}.Now()
	if r.last == nil {
		r.last = map[types.UID]time.Time{}
	}
	for other, at := range r.last {
		if now.Sub(at) >= removalPause {
			delete(r.last, other)
		}
	}
	r.last[schedule] = now
}

// pause is how long a schedule must wait before it deletes more; 0 if it need not wait.
func (r *removals) pause(schedule types.UID) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	at, deletes := r.last[schedule]
	if !deletes {
		return 0
	}
	return max(0, removalPause-clock.RealClock{}.Since(at))
}
