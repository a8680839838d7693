package mover

import (
	"context"
	"errors"
	"fmt"
	"time"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	nfs "github.com/howdah/howdah/internal/nfs4/client"
)

const (
	// staleAfter is how long the source makes clients wait after the new owner is known, so that every namespace server knows it: a client that gets
	// ESTALE looks the directory up again, once. Where a namespace server does not know it by then, that finds out and makes such a client wait
	// (internal/namespace/operations, referred).
	staleAfter = 3 * time.Second
	// orphanAfter is how long a frozen directory waits whose move is in no task any more. All objects may be lost, and are written again.
	orphanAfter = time.Minute
)

// root is the user of changes that the supervisor makes through ganesha.
var root = nfs.Credentials{}

// leave puts the directory into the trash. From then on its handles are stale.
func (m *Mover) leave(ctx context.Context, where place, keepSeconds int64) error {
	j, err := where.read()
	switch {
	case err != nil:
		return err
	case j == nil:
		return hasGone(where)
	case j.Stage == stageLeft:
		return nil
	case j.Stage != stagePromised && j.Stage != stageLeaving:
		return fmt.Errorf("it is %s, and not promised to the target", j.Stage)
	}
	j.Stage, j.KeepSeconds = stageLeaving, keepSeconds
	m.about("leave")
	if err := where.write(j); err != nil {
		return err
	}
	if _, err := m.tell(ctx); err != nil {
		return err
	}
	m.about("trash")
	if err := where.rename(where.hidden(), where.data()); err != nil {
		return fmt.Errorf("moving the directory into the trash: %w", err)
	}
	j.Stage, j.Left = stageLeft, m.Now()
	m.about("left")
	return where.write(j)
}

// hasGone tells whether a directory has left without a trace: its time in the trash is over, and the task is of an older backup of the objects.
func hasGone(where place) error {
	for _, path := range []string{where.shown(), where.hidden()} {
		if there, err := exists(path); err != nil || there {
			return errors.Join(errors.New("there is no record of a frozen directory, and the directory is there"), err)
		}
	}
	return nil
}

// sourceStep does what the source's task asks for, and returns what to report and when to look again, 0 for when it changes.
func (m *Mover) sourceStep(ctx context.Context, where place, task *internalv1.MoveTask, since time.Time) (internalv1.MoveReport, time.Duration) {
	report := internalv1.MoveReport{ID: task.ID, State: internalv1.MoveStateServing, Attempt: task.Attempt}
	// What was promised is kept, whatever is asked for: the object may be of an older backup.
	j, err := where.read()
	promised := err == nil && j != nil && j.Stage == stagePromised
	switch {
	case err != nil || j == nil:
	case j.Stage == stageLeft || j.Stage == stageEmptying:
		report.State = internalv1.MoveStateLeft
		return report, 0
	case j.Stage == stageLeaving && task.Step != internalv1.MoveLeaving:
		if err := m.leave(ctx, where, j.KeepSeconds); err != nil {
			report.State, report.Message = internalv1.MoveStateFrozen, cut(err.Error())
			return report, retryAfter
		}
		report.State = internalv1.MoveStateLeft
		return report, 0
	case promised && task.Step != internalv1.MoveLeaving:
		report.State, report.Attempt = internalv1.MoveStateFrozen, j.Attempt
		return report, 0
	}
	err = nil
	switch task.Step {
	case internalv1.MoveCopying, internalv1.MoveThawing:
		if err = m.thaw(ctx, where, task.Sequence); err == nil && hasGone(where) == nil {
			report.State = internalv1.MoveStateAbsent
			report.Message = fmt.Sprintf("%q of share %s is not on volume %d, and nothing says where it went: it was removed or lost, or the target has it", where.path, where.share, where.volume)
			return report, retryAfter
		}
	case internalv1.MoveFreezing:
		return m.freezeStep(ctx, where, task, since)
	case internalv1.MovePlacing:
		var j *journal
		if j, err = where.read(); err == nil && j.isFrozen(task.Attempt) {
			return m.keepFrozen(ctx, where, j, report, since)
		}
	case internalv1.MoveLeaving:
		report.State = internalv1.MoveStateFrozen
		if wait := m.limits.stale - time.Since(since); wait > 0 {
			return report, wait
		}
		keep := int64(defaultKeepSeconds)
		if task.TrashSeconds != nil {
			keep = *task.TrashSeconds
		}
		if err = m.leave(ctx, where, keep); err == nil {
			report.State = internalv1.MoveStateLeft
		}
	}
	if err != nil {
		if report.State == internalv1.MoveStateServing && task.Step != internalv1.MoveCopying {
			report.State = "" // It is not known.
		}
		report.Message = cut(err.Error())
		return report, retryAfter
	}
	return report, 0
}

// freezeStep freezes the directory, and ends the freeze if nothing is heard of the operator.
func (m *Mover) freezeStep(ctx context.Context, where place, task *internalv1.MoveTask, since time.Time) (internalv1.MoveReport, time.Duration) {
	report := internalv1.MoveReport{ID: task.ID, State: internalv1.MoveStateServing, Attempt: task.Attempt}
	err := m.freeze(ctx, where, task)
	switch {
	case errors.Is(err, errInUse):
		report.State, report.Message = internalv1.MoveStateInUse, cut(err.Error())
		return report, m.limits.release // The operator was asked to go on with something else by then.
	case errors.Is(err, errEnded):
		report.Message = cut(err.Error())
		return report, 0
	}
	j, reading := where.read()
	if err = errors.Join(err, reading); err == nil {
		return m.keepFrozen(ctx, where, j, report, since)
	}
	if j != nil && j.isBack() && m.unheard(since) > m.limits.release {
		err = errors.Join(err, m.release(ctx, where))
	}
	report.State, report.Message = "", cut(err.Error())
	return report, retryAfter
}

// keepFrozen reports a frozen directory, and lets clients go on if it was not promised and nothing was heard for too long.
func (m *Mover) keepFrozen(ctx context.Context, where place, j *journal, report internalv1.MoveReport, since time.Time) (internalv1.MoveReport, time.Duration) {
	report.State = internalv1.MoveStateFrozen
	left := m.limits.release - m.unheard(since)
	if j.Stage == stagePromised || left > 0 {
		return report, max(left, 0)
	}
	m.Log.Warn("nothing was heard of the operator: clients of a frozen directory go on with it here", "share", where.share, "path", where.path, "after", m.limits.release)
	if err := m.release(ctx, where); err != nil {
		report.Message = cut(err.Error())
		return report, retryAfter
	}
	report.State, report.Message = internalv1.MoveStateServing, cut(errEnded.Error())
	return report, 0
}
