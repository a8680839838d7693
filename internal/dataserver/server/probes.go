package server

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/howdah/howdah/internal/dataserver/supervisor"
	"github.com/howdah/howdah/internal/serverpod"
)

// probeTimeout limits one probe of ganesha; it usually takes some milliseconds.
const probeTimeout = 3 * time.Second

// readyPoll is how often a starting server is checked for readiness.
const readyPoll = 100 * time.Millisecond

const (
	// answerAge is how old metrics and figures may be. Everybody who reaches the port may ask all the time, so answers are
	// shared.
	answerAge = time.Second
	// probeAge is how old the answer to a probe may be.
	probeAge = 100 * time.Millisecond
	// maxSizesAsked is how many addresses may wait for sizes at a time, each with one request.
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

// NewProbes makes the probes of the ganesha that has this state and that the prober reaches.
func NewProbes(state func() supervisor.State, through Prober, expected *Expectation) *Probes {
	return &Probes{state: state, prober: through, expected: expected, now: time.Now}
}

// healthy is the liveness probe. It fails only if ganesha runs and does not answer. A restart of the container loses
// nothing, but ganesha's clients wait for it. The supervisor restarts a ganesha that has ended.
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

// ready is the readiness probe: it fails if the server is stopping, or if Fit has failed for some time
// (serverpod.ReadyAllowance).
func (p *Probes) ready(ctx context.Context) error {
	if p.expected.IsStopping() {
		return errStopping
	}
	err, now := p.soonFit(ctx), p.now()
	if err == nil {
		p.expected.setReady(now)
		return nil
	}
	if last, ok := p.expected.lastReady(); ok && now.Sub(last) < serverpod.ReadyAllowance {
		return nil
	}
	return err
}

// soonFit returns Fit. Before the first start is complete it waits until Fit is nil: the next probe would come a second
// later, and clients wait.
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

// Fit returns why the server is not ready; nil if ganesha has served a whole generation and this server answers. A
// server without a certificate is ready: clients don't need the certificate, and its Service leads them only to a ready
// server. The DataServer's condition reports a missing certificate.
func (p *Probes) Fit(ctx context.Context) error {
	if p.expected.ServedGeneration() == 0 {
		return errors.New("no generation of the DataServer has been served yet")
	}
	state := p.state()
	if !state.Initialized {
		return errors.New("ganesha is not up")
	}
	if !p.expected.isCleared(state.Starts) {
		return errors.New("ganesha has not refused a forged file handle since its start yet")
	}
	owner, scope, err := p.prober.Identity(ctx)
	if err != nil {
		return fmt.Errorf("ganesha does not answer EXCHANGE_ID: %w", p.state().AtWork.Explain(p.now(), err))
	}
	if err := p.state().AtWork.TooMany(p.now()); err != nil {
		return err
	}
	if wantOwner, wantScope := p.expected.Identity(); owner != wantOwner || scope != wantScope {
		return fmt.Errorf("a server with owner %q and scope %q answers instead of the one with owner %q and scope %q", owner, scope, wantOwner, wantScope)
	}
	return nil
}
