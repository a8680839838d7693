package operations

import (
	"sync"
	"time"
)

// forgetAfter is how long after the last lookup a wait is forgotten. A client that gets
// NFS4ERR_DELAY asks again within 15 s (Linux: NFS4_POLL_RETRY_MAX), so a longer
// silence means that no client waits, and the next wait is a new one.
const forgetAfter = 90 * time.Second

// maxWaits bounds the memory for waits.
const maxWaits = 4096

// delays bounds how long clients wait for one reason.
type delays struct {
	now func() time.Time
	// limit 0: there is none.
	limit time.Duration

	mu    sync.Mutex
	waits map[string]wait
}

type wait struct{ since, last time.Time }

// delay tells whether to answer NFS4ERR_DELAY: the condition is not good, and has
// not been so for long enough to let the client meet its own error.
func (p *delays) delay(key string, good bool) bool {
	if p.limit == 0 {
		return !good
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if good {
		delete(p.waits, key)
		return false
	}
	now := p.now()
	w, ok := p.waits[key]
	if !ok || now.Sub(w.last) > forgetAfter {
		if len(p.waits) >= maxWaits {
			p.sweep(now)
		}
		w.since = now
	}
	w.last = now
	p.waits[key] = w
	return now.Sub(w.since) < p.limit
}

// sweep forgets what no client waits for; if that is nothing, it forgets everything.
func (p *delays) sweep(now time.Time) {
	for key, w := range p.waits {
		if now.Sub(w.last) > forgetAfter {
			delete(p.waits, key)
		}
	}
	if len(p.waits) >= maxWaits {
		clear(p.waits)
	}
}
