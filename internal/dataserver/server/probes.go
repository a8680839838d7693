package server

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/howdah/howdah/internal/dataserver/supervisor"
	"github.com/howdah/howdah/internal/serverpod"
)

// probeTimeout bounds one probe of ganesha; a good answer takes some milliseconds.
const probeTimeout = 3 * time.Second

// readyPoll is how often it is looked whether a server that starts is ready.
const readyPoll = 100 * time.Millisecond

const (
	// answerAge is how old metrics and figures may be: whoever reaches the port may ask all the time, and they are made once for all.
	answerAge = time.Second
	// probeAge is how old the answer to a probe may be.
	probeAge = 100 * time.Millisecond
	// maxSizesAsked is how many addresses may wait for sizes at a time, each once.
	maxSizesAsked = 8
)

var errStopping = errors.New("stopping")

// Probes answer whether the data server is alive, and whether it is ready.
type Probes struct {
	state    func() supervisor.State
	prober   Prober
	expected *Expectation
	now      func() time.Time
}

// NewProbes makes the probes of a ganesha whose state is given, and which the prober reaches.
func NewProbes(state func() supervisor.State, through Prober, expected *Expectation) *Probes {
	return &Probes{state: state, prober: through, expected: expected, now: time.Now}
}

// healthy is the liveness probe. A container that is restarted loses nothing
// that matters, but its ganesha's clients wait, so only a ganesha that is up and mute is a reason:
// one that ended is being started again already.
func (p *Probes) healthy(ctx context.Context) error {
	state := p.state()
	if state.PID == 0 || p.now().Sub(state.Since) < serverpod.StartAllowance {
		return nil
	}
	if err := state.AtWork.Explain(p.now(), p.prober.Null(ctx)); err != nil {
		return fmt.Errorf("ganesha has run for %s and does not answer: %w", p.now().Sub(state.Since).Round(time.Second), err)
	}
	return nil
}

// ready is the readiness probe: the server is fit, or was a moment ago and is not stopping (serverpod.ReadyPatience).
func (p *Probes) ready(ctx context.Context) error {
	if p.expected.IsStopping() {
		return errStopping
	}
	err, now := p.soonFit(ctx), p.now()
	if err == nil {
		p.expected.setReady(now)
		return nil
	}
	if last, ok := p.expected.lastReady(); ok && now.Sub(last) < serverpod.ReadyPatience {
		return nil
	}
	return err
}

// soonFit is fit, which it waits for until ganesha is up for the first time: the next probe is a second away, and clients wait.
func (p *Probes) soonFit(ctx context.Context) error {
	for {
		err := p.Fit(ctx)
		if _, wasReady := p.expected.lastReady(); err == nil || wasReady || p.expected.IsStopping() || ctx.Err() != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(readyPoll):
		}
	}
}

// Fit tells what keeps the server from being ready: ganesha has served a whole generation, and what answers now is this very server.
// Without a certificate it is: its Service leads clients to it only while it is ready, and they need none. The DataServer's condition tells.
func (p *Probes) Fit(ctx context.Context) error {
	if p.expected.ServedGeneration() == 0 {
		return errors.New("no generation of the DataServer has been served yet")
	}
	state := p.state()
	if !state.Initialized {
		return errors.New("ganesha is not up")
	}
	if !p.expected.isCleared(state.Starts) {
		return errors.New("ganesha was not yet seen to refuse a forged file handle since it started")
	}
	owner, scope, err := p.prober.Identity(ctx)
	if err != nil {
		return fmt.Errorf("ganesha does not answer EXCHANGE_ID: %w", p.state().AtWork.Explain(p.now(), err))
	}
	if err := p.state().AtWork.TooMany(p.now()); err != nil {
		return err
	}
	if wantOwner, wantScope := p.expected.Identity(); owner != wantOwner || scope != wantScope {
		return fmt.Errorf("server %q of %q answers instead of %q of %q", owner, scope, wantOwner, wantScope)
	}
	return nil
}
