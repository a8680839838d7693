package mover

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/howdah/howdah/internal/dataserver/durable"
	nfs "github.com/howdah/howdah/internal/nfs4/client"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
)

const (
	// freezeRounds is how often it is looked for files that were made while ganesha learned which ones it refuses. Each round refuses all directories
	// that the round before has found.
	freezeRounds = 10
	// staleAfter is how long the source makes clients wait after the new owner is known, so that every namespace server knows it: a client that gets
	// ESTALE looks the directory up again, once.
	staleAfter = 3 * time.Second
	// orphanAfter is how long a frozen directory waits whose move is in no task any more. All objects may be lost, and are written again.
	orphanAfter = time.Minute
)

// root is the user of changes that the supervisor makes through ganesha.
var root = nfs.Credentials{}

// freeze makes clients of the directory wait. When it returns, they change nothing in it any more.
func (m *Mover) freeze(ctx context.Context, where place, attempt int32, sequence int64) error {
	j, err := where.read()
	if err != nil {
		return err
	}
	switch {
	case j == nil || j.Stage == stageFreezing:
	case j.Stage == stageFrozen && j.Attempt == attempt:
		return nil
	case j.Stage == stageFrozen:
		j.Attempt, j.Sequence = attempt, sequence
		return where.write(j)
	default:
		return fmt.Errorf("it is %s, and can't be frozen", j.Stage)
	}
	j = &journal{ID: where.id, Share: where.share, Path: where.path, Volume: where.volume, Stage: stageFreezing, Attempt: attempt, Sequence: sequence}
	hidden, err := exists(where.hidden())
	if err != nil {
		return err
	}
	at := where.shown()
	if hidden {
		at = where.hidden()
	}
	if j.Parent, err = inodeOf(filepath.Dir(where.shown())); err != nil {
		return fmt.Errorf("looking for the directory: %w", err)
	}
	if j.Top, err = inodeOf(where.export()); err != nil {
		return fmt.Errorf("looking for the export: %w", err)
	}
	m.about("freeze")
	if err := where.write(j); err != nil {
		return err
	}
	if err := m.refuseInodes(ctx, where, at); err != nil {
		return err
	}
	if !hidden {
		m.about("hide")
		// Through ganesha, which knows then that the name is gone.
		if err := m.NFS.Rename(ctx, root, where.shownNFS(), where.hiddenNFS()); err != nil {
			return fmt.Errorf("hiding the directory: %w", err)
		}
	}
	if err := syncBoth(where); err != nil {
		return err
	}
	j.Stage = stageFrozen
	m.about("frozen")
	return where.write(j)
}

// refuseInodes lets ganesha refuse everything in the directory. What is made until it does is found in the next round, and nothing can be made in
// a directory that is refused.
func (m *Mover) refuseInodes(ctx context.Context, where place, at string) error {
	var known []uint64
	for range freezeRounds {
		inodes, err := walkInodes(at)
		if err != nil {
			return err
		}
		if known != nil && isSubset(inodes, known) {
			return nil
		}
		known = slices.Compact(slices.Sorted(slices.Values(append(inodes, known...))))
		if err := writeInodes(where.inodes(), known); err != nil {
			return err
		}
		m.about("refuse")
		if err := m.tell(ctx); err != nil {
			return err
		}
	}
	return fmt.Errorf("files were still made after %d rounds of refusing the directories that are there", freezeRounds)
}

// isSubset tells whether all of a are in b; both are sorted.
func isSubset(a, b []uint64) bool {
	for _, number := range a {
		if _, found := slices.BinarySearch(b, number); !found {
			return false
		}
	}
	return true
}

// thaw lets clients go on: the directory gets its name back first, then ganesha stops refusing it. A task that is older than the freeze does not thaw:
// what the target has verified since would not be true any more.
func (m *Mover) thaw(ctx context.Context, where place, sequence int64) error {
	j, err := where.read()
	if err != nil || j == nil {
		return err
	}
	if sequence <= j.Sequence {
		return fmt.Errorf("%w: step %d is older than the freeze, which was step %d", errNotYet, sequence, j.Sequence)
	}
	if j.Stage != stageFreezing && j.Stage != stageFrozen {
		return fmt.Errorf("it is %s, and can't be thawed", j.Stage)
	}
	j.Stage = stageFreezing
	if err := where.write(j); err != nil {
		return err
	}
	hidden, err := exists(where.hidden())
	if err != nil {
		return err
	}
	if hidden {
		m.about("show")
		if err := m.NFS.Rename(ctx, root, where.hiddenNFS(), where.shownNFS()); err != nil {
			return fmt.Errorf("giving the directory its name back: %w", err)
		}
	}
	if err := syncBoth(where); err != nil {
		return err
	}
	m.about("forget")
	if err := where.forget(); err != nil {
		return err
	}
	return m.tell(ctx)
}

// leave puts the directory into the trash. From then on its handles are stale.
func (m *Mover) leave(ctx context.Context, where place, keepSeconds int64) error {
	j, err := where.read()
	switch {
	case err != nil:
		return err
	case j == nil:
		return errors.New("there is no record of a frozen directory")
	case j.Stage == stageLeft:
		return nil
	case j.Stage != stageFrozen && j.Stage != stageLeaving:
		return fmt.Errorf("it is %s, and not frozen", j.Stage)
	}
	j.Stage, j.KeepSeconds = stageLeaving, keepSeconds
	m.about("leave")
	if err := where.write(j); err != nil {
		return err
	}
	if err := m.tell(ctx); err != nil {
		return err
	}
	hidden, err := exists(where.hidden())
	if err != nil {
		return err
	}
	if hidden {
		m.about("trash")
		if err := os.Rename(where.hidden(), where.data()); err != nil {
			return fmt.Errorf("moving the directory into the trash: %w", err)
		}
		if err := errors.Join(durable.SyncDirectory(where.directory()), durable.SyncDirectory(where.export())); err != nil {
			return fmt.Errorf("making it durable that the directory is in the trash: %w", err)
		}
	}
	j.Stage, j.Left = stageLeft, m.Now()
	m.about("left")
	return where.write(j)
}

func syncBoth(where place) error {
	if err := errors.Join(durable.SyncDirectory(where.export()), durable.SyncDirectory(filepath.Dir(where.shown()))); err != nil {
		return fmt.Errorf("making the name of the directory durable: %w", err)
	}
	return nil
}

// sourceStep does what the source's task asks for, and returns what to report and when to look again, 0 for when it changes.
func (m *Mover) sourceStep(ctx context.Context, where place, task *internalv1.MoveTask, since time.Time) (internalv1.MoveReport, time.Duration) {
	report := internalv1.MoveReport{ID: task.ID, State: internalv1.MoveStateServing, Attempt: task.Attempt}
	var err error
	switch task.Step {
	case internalv1.MoveCopying, internalv1.MoveThawing:
		err = m.thaw(ctx, where, task.Sequence)
	case internalv1.MoveFreezing, internalv1.MovePlacing:
		if err = m.freeze(ctx, where, task.Attempt, task.Sequence); err == nil {
			report.State = internalv1.MoveStateFrozen
		}
	case internalv1.MoveLeaving:
		report.State = internalv1.MoveStateFrozen
		if wait := staleAfter - time.Since(since); wait > 0 {
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

// tidy deletes trash whose time is over, and ends what is in no task any more. It returns how long until it has something to do.
func (m *Mover) tidy(ctx context.Context, isKnown func(id string) bool) time.Duration {
	all, err := journals(m.Root)
	if err != nil {
		m.Log.Error("looking for what moves have left failed", "err", err)
		return tidyEvery
	}
	for _, j := range all {
		where := placeOf(m.Root, j)
		switch {
		case j.Stage == stageLeft && m.Now().Sub(j.Left) >= time.Duration(j.KeepSeconds)*time.Second:
			m.Log.Info("deleting a directory that has moved to another data server", "share", j.Share, "path", j.Path, "left", j.Left)
			m.about("empty")
			err = where.forget()
			if err == nil {
				err = m.tell(ctx)
			}
		case isKnown(j.ID) || j.Stage == stageLeft:
			delete(m.unknown, j.ID)
			continue
		case m.unknown[j.ID].IsZero():
			m.unknown[j.ID] = m.Now()
			continue
		case m.Now().Sub(m.unknown[j.ID]) < orphanAfter:
			continue
		case j.Stage == stageFreezing || j.Stage == stageFrozen:
			m.Log.Warn("the move of a frozen directory is in no task any more: clients go on with it here", "share", j.Share, "path", j.Path)
			err = m.thaw(ctx, where, math.MaxInt64)
		case j.Stage == stageLeaving:
			err = m.leave(ctx, where, j.KeepSeconds)
		default:
			err = m.endTarget(where, j)
		}
		if err != nil {
			m.Log.Error("tidying up after a move failed; trying again", "share", j.Share, "path", j.Path, "err", err)
		}
	}
	return tidyEvery
}
