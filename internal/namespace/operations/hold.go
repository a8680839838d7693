package operations

import (
	"context"
	"net/netip"
	"sync"
	"time"

	"github.com/howdah/howdah/internal/nfs4/rpc"
	"github.com/howdah/howdah/internal/nfs4/session"
)

// A client that gets NFS4ERR_DELAY asks again after 0.1 s, then after twice that, up to 15 s (Linux: nfs4_update_delay). So who asks some
// seconds too early waits nearly twice as long as it has to. An answer that is held until the data server serves costs it nothing.

// holdPause is the time between two looks at what a held request waits for.
const holdPause = 50 * time.Millisecond

// heldEach is the part of what may be held that one client address has.
const heldEach = 16

// holds are the requests that are held. What one client address, and all of them, can have here is bounded: each is one of the requests that
// the server works at. The others are put off at once.
type holds struct {
	// limit is how long a request is held; 0: none is.
	limit time.Duration
	// ends ends all waits.
	ends <-chan struct{}
	most int

	mu  sync.Mutex
	all int
	of  map[netip.Addr]int
}

// until waits for a condition, for the limit at most, and tells whether it came.
func (h *holds) until(ctx context.Context, caller rpc.Caller, condition func() bool) bool {
	if h.limit == 0 || !h.take(caller) {
		return false
	}
	defer h.give(caller)
	came := false
	session.Await(ctx, func() {
		ctx, cancel := context.WithTimeout(ctx, h.limit)
		defer cancel()
		ticker := time.NewTicker(holdPause)
		defer ticker.Stop()
		for !came {
			select {
			case <-ctx.Done():
				return
			case <-h.ends:
				return
			case <-ticker.C:
				came = condition()
			}
		}
	})
	return came
}

func (h *holds) take(caller rpc.Caller) bool {
	client := caller.CountsAs()
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.all >= h.most || h.of[client] >= max(1, h.most/heldEach) {
		return false
	}
	h.all++
	h.of[client]++
	return true
}

func (h *holds) give(caller rpc.Caller) {
	client := caller.CountsAs()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all--
	if h.of[client]--; h.of[client] == 0 {
		delete(h.of, client)
	}
}
