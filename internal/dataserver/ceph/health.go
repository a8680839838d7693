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
	// healthEvery is how often Ceph is asked for its health: one small command of a monitor's.
	healthEvery = 5 * time.Second
	// healthPatience is longer than the helper waits for monitors (10 s), so that its words come first.
	healthPatience = 15 * time.Second
)

// asked is what is asked for its health: a client of Ceph.
type asked interface {
	Command(ctx context.Context, command ceph.Command) (string, error)
	Watchers(ctx context.Context, place client.Place, object string) ([]ceph.Watcher, error)
	Close()
}

// healthWatch asks for the health of the cluster, by a connection of its own: the other one waits where Ceph does. It belongs to one goroutine.
type healthWatch struct {
	// connect makes a connection, monitors names them, for messages.
	connect  func(ctx context.Context) (asked, error)
	monitors func() string
	// fileSystem and recoveryPool are what the health is to be about.
	fileSystem, recoveryPool string

	connection asked // nil: none.
	scope      ceph.Scope
	// place is where the grace object is, watching gets who watches it; nil: nobody wants to know.
	place    client.Place
	watching *watching
	// reached: there was a connection once. What keeps the first one from being made is said by Claim.
	reached bool
}

// WatchHealth asks for the cluster's health, and tells of it when it is another. It leaves the first seconds to ganesha's start, which connects,
// too: what is wrong with Ceph then, Claim says.
func (b *Backend) WatchHealth(ctx context.Context, tell func(backend.Health) error) {
	select {
	case <-ctx.Done():
		return
	case <-time.After(healthEvery):
	}
	watch := &healthWatch{
		connect: func(ctx context.Context) (asked, error) {
			connection, err := b.connect(ctx, b.options.RecoveryUser)
			if err != nil {
				return nil, err // Not the nil of another type.
			}
			return connection, nil
		},
		monitors: b.monitors.String, fileSystem: b.options.FileSystem, recoveryPool: b.options.RecoveryPool, place: b.place(), watching: &b.watching,
	}
	watch.run(ctx, tell)
}

func (w *healthWatch) run(ctx context.Context, tell func(backend.Health) error) {
	defer w.close()
	var last *backend.Health
	for tick := time.NewTicker(healthEvery); ; {
		if seen, known := w.look(ctx); known && ctx.Err() == nil && (last == nil || *last != seen) && tell(seen) == nil {
			last = &seen
		}
		select {
		case <-ctx.Done():
			tick.Stop()
			return
		case <-tick.C:
		}
		w.lookWhoWatches(ctx)
	}
}

// lookWhoWatches keeps who watches the grace object, for the next start of ganesha. What it can't know it leaves as it is.
func (w *healthWatch) lookWhoWatches(ctx context.Context) {
	if w.connection == nil || w.watching == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, healthPatience)
	defer cancel()
	if found, err := w.connection.Watchers(ctx, w.place, ceph.GraceObject); err == nil {
		w.watching.set(ceph.Dead(found))
	}
}

// look asks once. What it can't know is not known: rights that are missing, say, or a cluster that was never reached.
func (w *healthWatch) look(ctx context.Context) (health backend.Health, known bool) {
	isOld := w.connection != nil
	answer, err := w.ask(ctx)
	if isOld && isSilence(err) {
		// Ceph leaves who has a key that was replaced without an answer, as one that is away does: a new connection has the new key.
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

// isSilence tells whether there was no answer in time.
func isSilence(err error) bool {
	return errors.Is(err, syscall.ETIMEDOUT) || errors.Is(err, context.DeadlineExceeded)
}

// ask asks once, by a new connection if there is none, and keeps none that has no answer.
func (w *healthWatch) ask(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, healthPatience)
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
