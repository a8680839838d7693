package ceph

import (
	"context"
	"errors"
	"strings"
	"syscall"
	"time"

	"github.com/howdah/howdah/internal/ceph"
	"github.com/howdah/howdah/internal/ceph/client"
	"github.com/howdah/howdah/internal/dataserver/backend"
)

const (
	// healthEvery is how often Ceph is asked for its health: one small command to a monitor.
	healthEvery = 5 * time.Second
	// healthTimeout is longer than the helper's timeout for monitors (10 s), so that the helper's error message is used.
	healthTimeout = 15 * time.Second
)

// healthClient is the part of a Ceph client that healthWatch uses.
type healthClient interface {
	Command(ctx context.Context, command ceph.Command) (string, error)
	Watchers(ctx context.Context, place client.Place, object string) ([]ceph.Watcher, error)
	Close()
}

// healthWatch watches the health of the cluster. It has its own connection, because the other one blocks while Ceph
// does not answer. It is used by one goroutine.
type healthWatch struct {
	connect func(ctx context.Context) (healthClient, error)
	// monitors returns the monitors' addresses for messages.
	monitors func() string
	// fileSystem and recoveryPool select the health checks that matter.
	fileSystem, recoveryPool string

	connection healthClient // nil: none.
	scope      ceph.Scope
	// place is where the grace object is. watching gets its watchers; nil if they are not needed.
	place    client.Place
	watching *watching
	// asked has requests for the watchers of this moment; unset: there are none.
	asked <-chan chan<- []string
	// reached: there was a connection once. Until then Claim reports why there is none.
	reached bool
}

// WatchHealth polls the cluster's health and reports changes. It starts after some seconds, because ganesha's start
// connects to Ceph at the same time; Claim reports what is wrong then.
func (b *Backend) WatchHealth(ctx context.Context, report func(backend.Health) error) {
	select {
	case <-ctx.Done():
		return
	case <-time.After(healthEvery):
	}
	watch := &healthWatch{
		connect: func(ctx context.Context) (healthClient, error) {
			connection, err := b.connect(ctx, b.options.RecoveryUser)
			if err != nil {
				return nil, err // A nil *client.Client would be an interface that is not nil.
			}
			return connection, nil
		},
		monitors: b.monitors.String, fileSystem: b.options.FileSystem, recoveryPool: b.options.RecoveryPool, place: b.place(), watching: &b.watching,
		asked: b.asking,
	}
	watch.run(ctx, report)
}

func (w *healthWatch) run(ctx context.Context, report func(backend.Health) error) {
	defer w.close()
	var last *backend.Health
	for tick := time.NewTicker(healthEvery); ; {
		if seen, known := w.look(ctx); known && ctx.Err() == nil && (last == nil || *last != seen) && report(seen) == nil {
			last = &seen
		}
		select {
		case <-ctx.Done():
			tick.Stop()
			return
		case answer := <-w.asked:
			w.answer(ctx, answer)
			continue
		case <-tick.C:
		}
		w.updateWatchers(ctx)
	}
}

// answer reads the watchers of the grace object now, which takes some milliseconds on an open connection. It closes the channel if it can't.
func (w *healthWatch) answer(ctx context.Context, answer chan<- []string) {
	defer close(answer)
	if w.connection == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	if found, err := w.connection.Watchers(ctx, w.place, ceph.GraceObject); err == nil {
		answer <- ceph.Dead(found) // It has room for one.
	}
}

// updateWatchers records the watchers of the grace object for the next start of ganesha. If it can't read them, it
// keeps the last ones.
func (w *healthWatch) updateWatchers(ctx context.Context) {
	if w.connection == nil || w.watching == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	if found, err := w.connection.Watchers(ctx, w.place, ceph.GraceObject); err == nil {
		w.watching.set(ceph.Dead(found))
	}
}

// look asks once. known is false if there is no answer to report, because rights are missing or the cluster was never
// reached.
func (w *healthWatch) look(ctx context.Context) (health backend.Health, known bool) {
	isOld := w.connection != nil
	answer, err := w.ask(ctx)
	if isOld && isSilence(err) {
		// Ceph does not answer a connection whose key was replaced. A new connection has the new key.
		answer, err = w.ask(ctx)
	}
	switch {
	case isSilence(err):
		return backend.Health{Failing: "no monitor answers at " + w.monitors() + ", and clients wait: is a majority of the monitors running, and does the network let the data servers' pods reach them?"}, w.reached
	case err != nil:
		w.close()
		return backend.Health{}, false
	}
	found, err := ceph.ParseHealth(w.scope, answer)
	if err != nil {
		return backend.Health{}, false
	}
	return backend.Health{Failing: strings.Join(found.Failing, "; "), Degraded: strings.Join(found.Degraded, "; ")}, true
}

// isSilence reports whether the error is a timeout.
func isSilence(err error) bool {
	return errors.Is(err, syscall.ETIMEDOUT) || errors.Is(err, context.DeadlineExceeded)
}

// ask asks once, and connects first if there is no connection. It closes a connection that does not answer.
func (w *healthWatch) ask(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	if w.connection == nil {
		connection, err := w.connect(ctx)
		if err != nil {
			return "", err
		}
		w.connection = connection
		systems, err := connection.Command(ctx, ceph.FileSystems())
		if err == nil {
			w.scope, err = ceph.ScopeOf(w.fileSystem, w.recoveryPool, systems)
		}
		if err != nil {
			w.close()
			return "", err
		}
		w.reached = true
	}
	answer, err := w.connection.Command(ctx, ceph.HealthDetail())
	if isSilence(err) || errors.Is(err, client.ErrGone) {
		w.close()
	}
	return answer, err
}

func (w *healthWatch) close() {
	if w.connection != nil {
		w.connection.Close()
		w.connection = nil
	}
}
