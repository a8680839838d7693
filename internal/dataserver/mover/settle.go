package mover

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
)

// A promise ends with the operator's next step. It also ends where the operator has none: the target tells the source what it has
// (docs/design/2026-11-28-ends-of-promises.md).

// answerWait is how long an answer may take for which nothing is copied or measured.
const answerWait = 30 * time.Second

// errUnaware says that the source does not know that the target has the directory.
var errUnaware = errors.New("the source does not know yet that the directory is here")

// tellPlaced tells the source that the copy is the directory. Without the record of it nothing else could.
func (m *Mover) tellPlaced(ctx context.Context, j *journal) error {
	conn, _, _, err := m.askSource(ctx, m.dialerOf(j), ask{Move: j.ID, Kind: askPlaced, Freeze: j.Freeze})
	if err != nil {
		return fmt.Errorf("%w: %w", errUnaware, err)
	}
	_ = conn.Close()
	return nil
}

// dialerOf connects to the source of a move that is in no task any more. Its address may be another one by now; the name of its Service is that of the data
// server. Whoever answers shows a certificate of it.
func (m *Mover) dialerOf(j *journal) func(ctx context.Context) (net.Conn, error) {
	return func(ctx context.Context) (net.Conn, error) {
		first, cancel := context.WithTimeout(ctx, dialWait/2)
		defer cancel()
		conn, err := m.Dial(first, j.Peer, j.PeerAddress)
		if err == nil {
			return conn, nil
		}
		conn, named := m.Dial(ctx, j.Peer, j.Peer)
		if named != nil {
			return nil, errors.Join(err, named)
		}
		return conn, nil
	}
}

// tellNothing tells the source that the target has neither the directory nor a record of the move: its volume is another one than that of the promise.
func (m *Mover) tellNothing(ctx context.Context, where place, task *internalv1.MoveTask) error {
	for _, path := range []string{where.shown(), where.hidden()} {
		if there, err := exists(path); err != nil || there {
			return err
		}
	}
	conn, _, _, err := m.askSource(ctx, m.dialer(task), ask{Move: task.ID, Kind: askNothing})
	if err != nil {
		return err
	}
	_ = conn.Close()
	return nil
}

// settling is what answers requests about promises, nil for others.
func (m *Mover) settling(kind string) func(peer string, request *ask) error {
	switch kind {
	case askPromise:
		return m.promise
	case askPlaced:
		return m.hearPlaced
	case askNothing:
		return m.hearNothing
	}
	return nil
}

// hearPlaced ends a promise to a target that has the directory, if the operator knows nothing of the move. It has left then.
func (m *Mover) hearPlaced(peer string, request *ask) error {
	j, release, err := m.promisedTo(peer, request.Move)
	if err != nil || j == nil {
		return err
	}
	defer release()
	switch {
	case j.Freeze != request.Freeze:
		return fmt.Errorf("%w: it was promised in another freeze", errNotYet)
	case m.task(j.ID) != nil:
		return fmt.Errorf("%w: the operator is to end the move", errNotYet)
	}
	m.Log.Warn("the move of a directory is in no task any more, and the target has it: it goes into the trash here", "share", j.Share, "path", j.Path, "target", j.Peer)
	j.Stage, j.KeepSeconds = stageLeaving, defaultKeepSeconds
	m.about("leave without a task")
	if err := placeOf(m.Root, j).write(j); err != nil {
		return fmt.Errorf("%w: %w", errNotYet, err)
	}
	return nil
}

// hearNothing takes a promise back that the target has lost, with its volume. The operator must want that: it thaws because the target has reported so.
func (m *Mover) hearNothing(peer string, request *ask) error {
	j, release, err := m.promisedTo(peer, request.Move)
	if err != nil || j == nil {
		return err
	}
	defer release()
	task := m.task(j.ID)
	if task == nil || task.Role != internalv1.MoveSource || task.Step != internalv1.MoveThawing || task.Peer.Name != peer || task.Sequence <= j.Sequence {
		return fmt.Errorf("%w: the operator has not asked to thaw the directory", errNotYet)
	}
	m.staging.Lock()
	defer m.staging.Unlock()
	m.Log.Warn("the target of a move has lost its copy: clients go on with the directory here", "share", j.Share, "path", j.Path, "target", j.Peer)
	j.Stage, j.Freeze = stageFrozen, rand.Text()
	m.about("take back")
	if err := placeOf(m.Root, j).write(j); err != nil {
		return fmt.Errorf("%w: %w", errNotYet, err)
	}
	m.wake(j.ID)
	return nil
}

// promisedTo finds what was promised to a data server, and keeps others away from it until release is called; nil: nothing was.
func (m *Mover) promisedTo(peer, move string) (j *journal, release func(), err error) {
	all, err := journals(m.Root)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", errNotYet, err)
	}
	at := slices.IndexFunc(all, func(j *journal) bool { return j.ID == move })
	if at < 0 {
		return nil, nil, nil
	}
	release = m.alone(move)
	j, err = placeOf(m.Root, all[at]).read()
	switch {
	case err != nil:
		err = fmt.Errorf("%w: %w", errNotYet, err)
	case j == nil || j.Stage != stagePromised:
		j = nil
	case j.Peer != peer:
		j, err = nil, fmt.Errorf("%w: the target of move %q is data server %s, not %s", errNotYet, move, j.Peer, peer)
	}
	if j == nil || err != nil {
		release()
		return nil, nil, err
	}
	return j, release, nil
}

// wake has a step done again though its task is the same.
func (m *Mover) wake(id string) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if w := m.known[id]; w != nil {
		poke(w.wake)
	}
}
