package namespace

import (
	"log/slog"
	"net/netip"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

const (
	// tellRefusalEvery is how often a client that goes on asking is written of.
	tellRefusalEvery = 10 * time.Minute
	// maxRefusalsTold bounds what strangers can make the log grow by in that time.
	maxRefusalsTold = 100
)

// refusals tells of clients that ask for a share whose access rules leave them out. To the client the share does not exist, so nothing
// else says why its mount failed.
type refusals struct {
	log   *slog.Logger
	clock clock.PassiveClock
	count func()

	mu   sync.Mutex
	told map[refusal]time.Time
}

type refusal struct {
	share  string
	client netip.Addr
}

// note counts every refusal, and writes of each client and share now and then.
func (r *refusals) note(share string, client netip.AddrPort) {
	r.count()
	if !r.isNews(refusal{share, client.Addr()}) {
		return
	}
	r.log.Warn("A client was refused: the share's access rules leave it out", "share", share, "client", client.Addr().String(), "port", client.Port(),
		"fix", "if it may use the share, name its address or network in spec.access of the FileShare, for ports Any if its port is not below 1024; "+
			"if it is one of the cluster's nodes, in spec.additionalNodeNetworks of the FileServer")
}

func (r *refusals) isNews(of refusal) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.clock.Now()
	if last, known := r.told[of]; known && now.Sub(last) < tellRefusalEvery {
		return false
	}
	for known, last := range r.told {
		if now.Sub(last) >= tellRefusalEvery {
			delete(r.told, known)
		}
	}
	if len(r.told) >= maxRefusalsTold {
		return false
	}
	r.told[of] = now
	return true
}
