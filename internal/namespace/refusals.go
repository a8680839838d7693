package namespace

import (
	"log/slog"
	"net/netip"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

const (
	// logRefusalEvery is how often a client that goes on asking is logged.
	logRefusalEvery = 10 * time.Minute
	// maxRefusalsLogged bounds how many lines unknown clients add to the log in that time.
	maxRefusalsLogged = 100
)

// refusals logs clients that ask for a share whose access rules do not allow them. To the client the share does not exist, so nothing
// else says why its mount failed.
type refusals struct {
	log   *slog.Logger
	clock clock.PassiveClock
	count func()

	mu     sync.Mutex
	logged map[refusal]time.Time
}

type refusal struct {
	share  string
	client netip.Addr
}

// note counts every refusal, and logs each client and share now and then.
func (r *refusals) note(share string, client netip.AddrPort) {
	r.count()
	if !r.isNews(refusal{share, client.Addr()}) {
		return
	}
	r.log.Warn("client refused: the access rules of the share do not allow it", "share", share, "client", client.Addr().String(), "port", client.Port(),
		"fix", "if it may use the share, name its address or network in spec.access of the FileShare, for ports Any if its port is not below 1024; "+
			"if it is one of the cluster's nodes, in spec.additionalNodeNetworks of the FileServer")
}

func (r *refusals) isNews(of refusal) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.clock.Now()
	if last, known := r.logged[of]; known && now.Sub(last) < logRefusalEvery {
		return false
	}
	for known, last := range r.logged {
		if now.Sub(last) >= logRefusalEvery {
			delete(r.logged, known)
		}
	}
	if len(r.logged) >= maxRefusalsLogged {
		return false
	}
	r.logged[of] = now
	return true
}
