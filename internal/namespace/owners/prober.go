package owners

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"sync"
	"syscall"
	"time"

	"k8s.io/utils/clock"
)

const (
	// probeEvery and probeTimeout: a dead data server is noticed within 3 s, in time
	// to put off the clients that would mount it.
	probeEvery   = time.Second
	probeTimeout = time.Second
	// probesMissed: a server that is slow once is not down. One whose port is closed is, at once.
	probesMissed = 2
)

// Prober knows which data servers answer. A server that was never probed counts as reachable.
type Prober struct {
	// owners gives the addresses of the data servers to probe, by name.
	owners func() map[string]string
	// null asks a server for nothing (the NULL procedure, RFC 5531 section 12.1).
	null  func(ctx context.Context, address string) error
	clock clock.WithTicker
	log   *slog.Logger

	mu sync.Mutex
	// down has since when a server does not answer: the first probe that it missed.
	down map[string]time.Time
	busy map[string]bool
	// missed are the probes without an answer since the last with one.
	missed map[string]misses
	// answered has the servers whose last probe was answered.
	answered map[string]bool
}

// Answer is what is known of whether a data server answers.
type Answer int

const (
	// NotKnown means that it was not asked yet, or missed a probe and may only be slow.
	NotKnown Answer = iota
	// Answers means that it answered the last probe.
	Answers
	// Silent means that it missed as many probes as a server that is down.
	Silent
)

type misses struct {
	count int
	since time.Time
}

// NewProber makes a Prober that knows nothing yet.
func NewProber(owners func() map[string]string, null func(context.Context, string) error, c clock.WithTicker, log *slog.Logger) *Prober {
	return &Prober{
		owners: owners, null: null, clock: c, log: log,
		down: map[string]time.Time{}, busy: map[string]bool{}, missed: map[string]misses{}, answered: map[string]bool{},
	}
}

// Reachable is false for a data server that is down. One that missed a single probe still counts as reachable.
func (p *Prober) Reachable(server string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, down := p.down[server]
	return !down
}

// Answers tells whether a data server answered its last probe. It is false for one that was never probed.
func (p *Prober) Answers(server string) bool {
	answer, _ := p.Answer(server)
	return answer == Answers
}

// Answer tells whether a data server answers, and since when it is silent: the time of the first probe that it missed.
func (p *Prober) Answer(server string) (Answer, time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if since, down := p.down[server]; down {
		return Silent, since
	}
	if p.answered[server] {
		return Answers, time.Time{}
	}
	return NotKnown, time.Time{}
}

// Run probes until the context ends.
func (p *Prober) Run(ctx context.Context) {
	ticker := p.clock.NewTicker(probeEvery)
	defer ticker.Stop()
	var probes sync.WaitGroup
	defer probes.Wait()
	for {
		owners := p.owners()
		p.forget(owners)
		for name, address := range owners {
			if p.begin(name) {
				probes.Go(func() { p.probe(ctx, name, address) })
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
		}
	}
}

// begin is false if the last probe of a server still runs.
func (p *Prober) begin(name string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.busy[name] {
		return false
	}
	p.busy[name] = true
	return true
}

func (p *Prober) probe(ctx context.Context, name, address string) {
	began := p.clock.Now()
	probing, cancel := context.WithTimeout(ctx, probeTimeout)
	err := p.null(probing, address)
	cancel()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.busy, name)
	if ctx.Err() != nil {
		return
	}
	if err == nil {
		delete(p.missed, name)
		p.answered[name] = true
	} else {
		delete(p.answered, name)
		missed := p.missed[name]
		if missed.count == 0 {
			missed.since = began
		}
		missed.count++
		p.missed[name] = missed
	}
	_, down := p.down[name]
	switch {
	case err != nil && !down && (p.missed[name].count >= probesMissed || errors.Is(err, syscall.ECONNREFUSED)):
		p.down[name] = p.missed[name].since
		p.log.Warn("a data server does not answer: clients that enter its directories are put off", "server", name, "address", address, "error", err)
	case err == nil && down:
		delete(p.down, name)
		p.log.Info("a data server answers again", "server", name)
	}
}

// forget drops what is known of servers that are not to be probed any more.
func (p *Prober) forget(owners map[string]string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	gone := func(name string) bool { _, ok := owners[name]; return !ok }
	maps.DeleteFunc(p.down, func(name string, _ time.Time) bool { return gone(name) })
	maps.DeleteFunc(p.missed, func(name string, _ misses) bool { return gone(name) })
	maps.DeleteFunc(p.answered, func(name string, _ bool) bool { return gone(name) })
}

// Down is how many data servers do not answer.
func (p *Prober) Down() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.down)
}
