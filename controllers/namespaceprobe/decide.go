package namespaceprobe

import (
	"cmp"
	"slices"
	"time"
)

const (
	// silentFor is how long a namespace server does not answer before it is evicted. A process that hangs on a node that works
	// is the kubelet's to see, by its probes.
	silentFor = 6 * time.Second
	// firstPause is how long no other namespace server of the FileServer is evicted after an eviction. Each further one doubles it, up to
	// longestPause: a network that is broken for longer must not have the pods replaced again and again.
	firstPause   = 2 * time.Minute
	longestPause = 32 * time.Minute
	// forgetAfter is how long no eviction has to happen before the pause is firstPause again.
	forgetAfter = 2 * time.Hour
)

// server is what is known of a namespace server that is an endpoint.
type server struct {
	name string
	// silentSince is when it first did not answer; zero if it answered the last time.
	silentSince time.Time
}

// history has the evictions of a FileServer's namespace servers. The zero value has none.
type history struct {
	last time.Time
	// count is the number of evictions with less than forgetAfter between them.
	count int
}

// choose returns the namespace server of a FileServer that is to be evicted, if there is one. If none of the others answers, it may be the
// operator's own network that is broken, and an eviction would help no client.
func choose(now time.Time, servers []server, before history) (name string, found bool) {
	if !slices.ContainsFunc(servers, func(s server) bool { return s.silentSince.IsZero() }) || now.Before(before.pausedUntil()) {
		return "", false
	}
	silent := slices.DeleteFunc(slices.Clone(servers), func(s server) bool {
		return s.silentSince.IsZero() || now.Sub(s.silentSince) < silentFor
	})
	if len(silent) == 0 {
		return "", false
	}
	first := slices.MinFunc(silent, func(a, b server) int {
		return cmp.Or(a.silentSince.Compare(b.silentSince), cmp.Compare(a.name, b.name))
	})
	return first.name, true
}

// pausedUntil is when the next namespace server may be evicted.
func (h history) pausedUntil() time.Time {
	if h.count == 0 {
		return time.Time{}
	}
	pause := firstPause
	for i := 1; i < h.count && pause < longestPause; i++ {
		pause *= 2
	}
	return h.last.Add(pause)
}

// with is the history after an eviction.
func (h history) with(now time.Time) history {
	if now.Sub(h.last) >= forgetAfter {
		h.count = 0
	}
	return history{last: now, count: h.count + 1}
}
