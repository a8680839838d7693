package mover

import (
	"context"
	"math"
	"sync"
	"time"
)

// keptEvery is how often it is written down how long something was in the trash.
const keptEvery = 10 * time.Minute

// alone waits until no other goroutine works on a move, and keeps others away until the result is called.
func (m *Mover) alone(id string) (release func()) {
	m.mutex.Lock()
	lock := m.acting[id]
	if lock == nil {
		lock = &sync.Mutex{}
		m.acting[id] = lock
	}
	m.mutex.Unlock()
	lock.Lock()
	return lock.Unlock
}

// tidyAlways deletes trash whose time is over, and ends what is in no task any more, until the context ends.
func (m *Mover) tidyAlways(ctx context.Context) {
	t := &tidying{unknown: map[string]time.Time{}, kept: map[string]time.Time{}}
	for ctx.Err() == nil {
		m.tidy(ctx, t)
		select {
		case <-ctx.Done():
		case <-time.After(m.limits.tidy):
		}
	}
}

// tidying has since when a move that is on a volume is in no task, and since when the time of one in the trash is not written down. Both are of the
// process's own clock: nothing is deleted because that of the machine was changed.
type tidying struct{ unknown, kept map[string]time.Time }

func (m *Mover) tidy(ctx context.Context, t *tidying) {
	all, err := journals(m.Root)
	if err != nil {
		m.Log.Error("looking for what moves have left failed", "err", err)
		return
	}
	if !m.hasList() {
		if _, err := m.tell(ctx); err != nil && ctx.Err() == nil {
			m.Log.Error("telling ganesha which directories move failed; trying again", "err", err)
		}
	}
	for _, j := range all {
		if err := m.tidyOne(ctx, t, j); err != nil && ctx.Err() == nil {
			m.Log.Error("tidying up after a move failed; trying again", "share", j.Share, "path", j.Path, "err", err)
		}
	}
}

func (m *Mover) tidyOne(ctx context.Context, t *tidying, j *journal) error {
	where := placeOf(m.Root, j)
	switch {
	case j.Stage == stageLeft:
		return m.keepTrash(t, where)
	case j.Stage == stageEmptying:
		return m.emptyTrash(ctx, where)
	case m.task(j.ID) != nil:
		delete(t.unknown, j.ID)
		return nil
	case t.unknown[j.ID].IsZero():
		t.unknown[j.ID] = time.Now()
		return nil
	case time.Since(t.unknown[j.ID]) < m.limits.orphan:
		return nil
	}
	defer m.alone(j.ID)()
	if m.task(j.ID) != nil {
		return nil
	}
	j, err := where.read()
	if err != nil || j == nil {
		return err
	}
	switch {
	case j.Stage == stagePromised && isThere(where.export()):
		m.Log.Warn("the move of a directory is in no task any more, and the target may serve it: it stays frozen here", "share", j.Share, "path", j.Path, "target", j.Peer)
		return nil
	case j.Stage == stagePromised:
		return where.forget(ctx) // The share was deleted meanwhile, with its data.
	case j.isBack():
		m.Log.Warn("the move of a frozen directory is in no task any more: clients go on with it here", "share", j.Share, "path", j.Path)
		return m.thaw(ctx, where, math.MaxInt64)
	case j.Stage == stageLeaving:
		return m.leave(ctx, where, j.KeepSeconds)
	case j.isSource():
		return nil
	}
	return m.endTarget(ctx, where, j)
}

// keepTrash counts for how long something was in the trash, and ends that.
func (m *Mover) keepTrash(t *tidying, where place) error {
	defer m.alone(where.id)()
	j, err := where.read()
	if err != nil || j == nil || j.Stage != stageLeft {
		return err
	}
	if t.kept[j.ID].IsZero() {
		t.kept[j.ID] = time.Now()
	}
	kept := time.Since(t.kept[j.ID])
	switch {
	case time.Duration(j.KeptSeconds)*time.Second+kept >= time.Duration(j.KeepSeconds)*time.Second:
		m.Log.Info("deleting a directory that has moved to another data server", "share", j.Share, "path", j.Path, "left", j.Left)
		j.Stage = stageEmptying
		m.about("empty")
		return where.write(j)
	case kept >= keptEvery:
		j.KeptSeconds += int64(kept / time.Second)
		t.kept[j.ID] = time.Now()
		return where.write(j)
	}
	return nil
}

// emptyTrash deletes what was in the trash. Ganesha stops refusing its inodes first: new files get them.
func (m *Mover) emptyTrash(ctx context.Context, where place) error {
	defer m.alone(where.id)()
	if _, err := m.tell(ctx); err != nil {
		return err
	}
	return where.forget(ctx)
}
