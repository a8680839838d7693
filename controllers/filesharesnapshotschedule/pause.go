package filesharesnapshotschedule

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
)

// removals are when schedules deleted snapshots last, by the machine's monotonic clock. It is safe for concurrent use. An operator that starts again knows of none.
type removals struct {
	mu   sync.Mutex
	last map[types.UID]time.Time
}

// note says that a schedule deletes snapshots now.
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

// pause is how long a schedule has to wait before it deletes more; 0 if it need not.
func (r *removals) pause(schedule types.UID) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	at, deletes := r.last[schedule]
	if !deletes {
		return 0
	}
	return max(0, removalPause-clock.RealClock{}.Since(at))
}
