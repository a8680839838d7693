package dataserver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/howdah/howdah/internal/publichttp"
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

// expectation is what a healthy server says of itself. The manager sets it, the probes read it.
type expectation struct {
	generation atomic.Int64 // The newest generation that was fully served; 0: none yet.
	stopping   atomic.Bool
	// readyAt is when it was seen to be ready last, in nanoseconds since 1970; 0: never.
	readyAt atomic.Int64
	// clearedStart is the start of ganesha, counted from 1, that refuses forged file handles as far as
	// there is an export to try it on; 0: none yet.
	clearedStart atomic.Int64

	mutex        sync.Mutex
	owner, scope string
}

func (e *expectation) set(owner, scope string) {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	e.owner, e.scope = owner, scope
}

func (e *expectation) get() (owner, scope string) {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	return e.owner, e.scope
}

// healthy is the liveness probe. A container that is restarted loses nothing
// that matters, but its ganesha's clients wait, so only a ganesha that is up and mute is a reason:
// one that ended is being started again already.
func (m *manager) healthy(ctx context.Context) error {
	state := m.ganesha.state()
	if state.PID == 0 || m.now().Sub(state.Since) < serverpod.StartAllowance {
		return nil
	}
	if err := state.AtWork.because(m.now(), m.prober.null(ctx)); err != nil {
		return fmt.Errorf("ganesha has run for %s and does not answer: %w", m.now().Sub(state.Since).Round(time.Second), err)
	}
	return nil
}

// ready is the readiness probe: the server is fit, or was a moment ago and is not stopping (serverpod.ReadyPatience).
func (m *manager) ready(ctx context.Context) error {
	if m.expected.stopping.Load() {
		return errStopping
	}
	err, now := m.soonFit(ctx), m.now()
	if err == nil {
		m.expected.readyAt.Store(now.UnixNano())
		return nil
	}
	if last := m.expected.readyAt.Load(); last != 0 && now.Sub(time.Unix(0, last)) < serverpod.ReadyPatience {
		return nil
	}
	return err
}

// soonFit is fit, which it waits for until ganesha is up for the first time: the next probe is a second away, and clients wait.
func (m *manager) soonFit(ctx context.Context) error {
	for {
		err := m.fit(ctx)
		if err == nil || m.expected.readyAt.Load() != 0 || m.expected.stopping.Load() || ctx.Err() != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(readyPoll):
		}
	}
}

// fit tells what keeps the server from being ready: ganesha has served a whole generation, and what answers now is this very server.
// Without a certificate it is: its Service leads clients to it only while it is ready, and they need none. The DataServer's condition tells.
func (m *manager) fit(ctx context.Context) error {
	if m.expected.generation.Load() == 0 {
		return errors.New("no generation of the DataServer has been served yet")
	}
	state := m.ganesha.state()
	if !state.Initialized {
		return errors.New("ganesha is not up")
	}
	if m.expected.clearedStart.Load() != int64(state.Starts) {
		return errors.New("ganesha was not yet seen to refuse a forged file handle since it started")
	}
	owner, scope, err := m.prober.identity(ctx)
	if err != nil {
		return fmt.Errorf("ganesha does not answer EXCHANGE_ID: %w", m.ganesha.state().AtWork.because(m.now(), err))
	}
	if err := m.ganesha.state().AtWork.tooMany(m.now()); err != nil {
		return err
	}
	if wantOwner, wantScope := m.expected.get(); owner != wantOwner || scope != wantScope {
		return fmt.Errorf("server %q of %q answers instead of %q of %q", owner, scope, wantOwner, wantScope)
	}
	return nil
}

// handler answers the probes and has the instance manager's metrics.
func (m *manager) handler() http.Handler {
	mux := http.NewServeMux()
	for path, probe := range map[string]func(context.Context) error{serverpod.HealthPath: m.healthy, serverpod.ReadyPath: m.ready} {
		shared := publichttp.Shared(probeAge, probeTimeout, probe)
		mux.HandleFunc("GET "+path, func(writer http.ResponseWriter, request *http.Request) {
			err := shared(request.Context())
			if path == serverpod.ReadyPath && m.expected.stopping.Load() {
				err = errStopping // Since the answer was found, perhaps.
			}
			if err != nil {
				http.Error(writer, err.Error(), http.StatusServiceUnavailable)
				return
			}
			writer.WriteHeader(http.StatusOK)
		})
	}
	mux.Handle("GET "+serverpod.ClientsPath, publichttp.Page(answerAge, http.HandlerFunc(tellClients)))
	mux.Handle("GET "+serverpod.SizesPath, publichttp.AtOnce(maxSizesAsked, http.HandlerFunc(m.figures.tellSizes)))
	mux.Handle("GET "+serverpod.ServedPath, publichttp.Page(answerAge, http.HandlerFunc(m.figures.tellServed)))
	mux.Handle("GET "+serverpod.MetricsPath, publichttp.Page(answerAge, promhttp.HandlerFor(m.metrics.registry, promhttp.HandlerOpts{})))
	return mux
}

// serveHTTP answers on a port until the context ends.
func (m *manager) serveHTTP(ctx context.Context, port int, handler http.Handler) error {
	server := &publichttp.Server{Handler: handler, Reserved: m.isNode, Log: m.log}
	return server.ListenAndServe(ctx, net.JoinHostPort("", strconv.Itoa(port)))
}

// isNode tells whether an address is that of a node, as far as the DataServer names them: the kubelet's probes come from there.
func (m *manager) isNode(address netip.Addr) bool {
	if slices.Contains(m.gateways, address) {
		return true
	}
	nodes := m.nodes.Load()
	return nodes != nil && slices.ContainsFunc(*nodes, func(network netip.Prefix) bool { return network.Contains(address) })
}
