package mover

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"sync"
	"time"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
)

// reportOrphan times the wait of a move in no task is until a directory that stays frozen is reported: the target is heard of before, in most cases.
const reportOrphan = 5

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
	t := &tidying{unknown: map[string]time.Time{}, kept: map[string]time.Time{}, informed: map[string]time.Time{}}
	for ctx.Err() == nil {
		m.tidy(ctx, t)
		select {
		case <-ctx.Done():
		case <-time.After(m.limits.tidy):
		}
	}
}

// tidying has since when a move that is on a volume is in no task, since when the time of one in the trash is not written down, and when it was last seen that the
// other data server does not know what became of one. All are of the process's own clock: nothing is deleted because that of the machine was changed.
type tidying struct{ unknown, kept, informed map[string]time.Time }

// forget forgets the moves that are on no volume any more.
func (t *tidying) forget(all []*journal) {
	is := make(map[string]bool, len(all))
	for _, j := range all {
		is[j.ID] = true
	}
	for _, times := range []map[string]time.Time{t.unknown, t.kept, t.informed} {
		maps.DeleteFunc(times, func(id string, _ time.Time) bool { return !is[id] })
	}
}

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
	t.forget(all)
	var orphans []internalv1.MoveReport
	for _, j := range all {
		if err := m.tidyOne(ctx, t, j); err != nil && ctx.Err() == nil {
			m.Log.Error("tidying up after a move failed; trying again", "share", j.Share, "path", j.Path, "err", err)
		}
		if j.Stage == stagePromised && m.task(j.ID) == nil && !t.unknown[j.ID].IsZero() && time.Since(t.unknown[j.ID]) > reportOrphan*m.limits.orphan {
			orphans = append(orphans, orphaned(j))
		}
	}
	m.noteOrphans(sorted(orphans))
}

// orphaned is the report of a directory that stays frozen because its move is in no task any more.
func orphaned(j *journal) internalv1.MoveReport {
	return internalv1.MoveReport{ID: j.ID, State: internalv1.MoveStateOrphaned, Message: cut(fmt.Sprintf(
		"%s of share %s, on volume %d, is frozen for its move %s to data server %s, which may have it and was not heard of since the move's objects were lost", j.Path, j.Share, j.Volume, j.ID, j.Peer))}
}

// noteOrphans reports frozen directories without a task if they are others than before.
func (m *Mover) noteOrphans(orphans []internalv1.MoveReport) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if !reflect.DeepEqual(m.orphans, orphans) {
		m.orphans = orphans
		poke(m.changed)
	}
}

// pause is how long one that waits for another data server waits until the next try.
func (t *tidying) pause(id string, orphan time.Duration) time.Duration {
	if time.Since(t.unknown[id]) < informOften/orphanAfter*orphan {
		return orphan
	}
	return 10 * orphan
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
	case time.Since(t.unknown[j.ID]) < m.limits.orphan, time.Since(t.informed[j.ID]) < t.pause(j.ID, m.limits.orphan) && !j.isBack():
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
		m.Log.Warn("the move of a directory is in no task any more, and the target may serve it: it stays frozen here until the target is heard of",
			"share", j.Share, "path", j.Path, "target", j.Peer)
		t.informed[j.ID] = time.Now()
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
	err = m.endTarget(ctx, where, j)
	if !errors.Is(err, errUnaware) {
		return err
	}
	if time.Since(t.unknown[j.ID]) >= m.limits.inform {
		m.Log.Warn("the source of a move has not answered, and does not learn any more that the directory is here: clients that have it mounted there wait; "+
			"unmount it there by force, and mount it again", "share", j.Share, "path", j.Path, "source", j.Peer, "err", err)
		return where.forget(ctx)
	}
	t.informed[j.ID] = time.Now()
	return nil
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
