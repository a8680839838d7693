package mover

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
)

const (
	// freezeRounds is how often it is looked for files that were made while ganesha learned which ones it refuses. Each round refuses all directories
	// that the round before has found.
	freezeRounds = 10
	// closingLimit is how long clients that open files of the directory wait for those who have some open; closingEvery how often these are counted.
	closingLimit = 5 * time.Second
	closingEvery = 100 * time.Millisecond
)

var (
	// errInUse says that clients have files of the directory open.
	errInUse = errors.New("the directory moves when no file in it is open (spec.moves.openFiles of the FileServer)")
	// errEnded says that this freeze has ended by itself. errUnknown says that nothing is known of it.
	errUnknown = errors.New("the source knows nothing of this freeze")
	errEnded   = errors.New("the freeze has ended by itself, because this data server heard nothing of the operator")
)

// freeze makes clients of the directory wait. When it returns, they change nothing in it any more.
func (m *Mover) freeze(ctx context.Context, where place, task *internalv1.MoveTask) error {
	j, err := where.read()
	if err != nil {
		return err
	}
	switch {
	case j != nil && j.Stage == stageReleased && j.Attempt >= task.Attempt:
		return errEnded
	case j == nil || j.Stage == stageFreezing || j.Stage == stageClosing || j.Stage == stageReleased:
	case (j.Stage == stageFrozen || j.Stage == stagePromised) && j.Attempt == task.Attempt:
		return nil
	case j.Stage == stageFrozen:
		return m.renumber(where, task)
	default:
		return fmt.Errorf("it is %s, and can't be frozen", j.Stage)
	}
	// What is verified is verified in this freeze, and in no other one of the same number.
	j = &journal{
		ID: where.id, Share: where.share, Path: where.path, Volume: where.volume, Attempt: task.Attempt, Sequence: task.Sequence,
		Peer: task.Peer.Name, Freeze: rand.Text(),
	}
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
	all, err := journals(m.Root)
	if err != nil {
		return err
	}
	if err := hasRoomFor(all, j.exportOf()); err != nil {
		return err
	}
	m.about("freeze")
	if !hidden && task.OpenFiles != internalv1.MoveOpenFilesInterrupt {
		j.Stage = stageClosing
		if err := m.close(ctx, where, j, at); err != nil {
			return err
		}
	}
	j.Stage = stageFreezing
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

// renumber makes a freeze that goes on that of another attempt.
func (m *Mover) renumber(where place, task *internalv1.MoveTask) error {
	m.staging.Lock()
	defer m.staging.Unlock()
	j, err := where.read()
	if err != nil || j == nil || j.Stage != stageFrozen {
		return errors.Join(fmt.Errorf("%w: it is not frozen any more", errNotYet), err)
	}
	j.Attempt, j.Sequence = task.Attempt, task.Sequence
	return where.write(j)
}

// close waits until no file of the directory is open. Clients that open one meanwhile wait, too, and those with an open one go on. If files are still open
// after a while, all go on.
func (m *Mover) close(ctx context.Context, where place, j *journal, at string) error {
	if err := where.write(j); err != nil {
		return err
	}
	if err := m.refuseInodes(ctx, where, at); err != nil {
		return err
	}
	limit := time.NewTimer(m.limits.closing)
	defer limit.Stop()
	for {
		open, err := m.openFiles(ctx, where)
		if err != nil {
			return err
		}
		switch open {
		case "0":
			return nil
		case inGrace:
			open = "perhaps some, after ganesha's start"
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(closingEvery):
		case <-limit.C:
			m.about("let them open")
			if err := where.forget(ctx); err != nil {
				return err
			}
			_, err := m.tell(ctx)
			return errors.Join(fmt.Errorf("open files: %s; %w", open, errInUse), err)
		}
	}
}

// openFiles is how many files of the directory are open, as ganesha writes it.
func (m *Mover) openFiles(ctx context.Context, where place) (string, error) {
	counts, err := m.tell(ctx)
	if err != nil {
		return "", err
	}
	count, known := counts[where.id]
	if !known {
		return "", errors.New("ganesha does not say whether files are open")
	}
	return count, nil
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
		whole := known != nil && isSubset(inodes, known)
		if whole && len(inodes) == len(known) {
			return nil
		}
		if !whole {
			inodes = slices.Compact(slices.Sorted(slices.Values(append(inodes, known...))))
		}
		// In the end without what was removed meanwhile: new files of other directories get those inodes.
		known = inodes
		if err := where.writeInodes(known); err != nil {
			return err
		}
		m.about("refuse")
		if _, err := m.tell(ctx); err != nil || whole {
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

// promise answers the target, which is about to put its copy into the share: from now on only the operator ends the freeze. It is the one moment in which
// the two data servers have to agree, so what was promised, or not, is on the volume.
func (m *Mover) promise(peer string, request *ask) error {
	m.staging.Lock()
	defer m.staging.Unlock()
	all, err := journals(m.Root)
	if err != nil {
		return fmt.Errorf("%w: %w", errNotYet, err)
	}
	at := slices.IndexFunc(all, func(j *journal) bool { return j.ID == request.Move })
	if at < 0 {
		return errUnknown
	}
	if all[at].Freeze != request.Freeze || request.Freeze == "" {
		return errEnded
	}
	j := all[at]
	switch {
	case j.Peer != peer:
		return fmt.Errorf("%w: the target of move %q is data server %s, not %s", errNotYet, request.Move, j.Peer, peer)
	case j.Stage == stagePromised:
		return nil
	case j.Stage != stageFrozen:
		return errEnded
	}
	j.Stage = stagePromised
	m.about("promise")
	if err := placeOf(m.Root, j).write(j); err != nil {
		return fmt.Errorf("%w: %w", errNotYet, err)
	}
	return nil
}

// thaw lets clients go on: the directory gets its name back first, then ganesha stops refusing it. A task that is older than the freeze does not thaw:
// what the target has verified since would not be true any more.
func (m *Mover) thaw(ctx context.Context, where place, sequence int64) error {
	return m.unfreeze(ctx, where, func(j *journal) error {
		switch {
		case sequence <= j.Sequence:
			return fmt.Errorf("%w: step %d is older than the freeze, which was step %d", errNotYet, sequence, j.Sequence)
		case !j.isBack():
			return fmt.Errorf("it is %s, and can't be thawed", j.Stage)
		}
		return nil
	}, func() error { return where.forget(ctx) })
}

// release ends a freeze that the operator does not end. What was promised stays frozen: the target may serve the directory.
func (m *Mover) release(ctx context.Context, where place) error {
	var released journal
	return m.unfreeze(ctx, where, func(j *journal) error {
		if !j.isBack() {
			return fmt.Errorf("it is %s, and does not end by itself", j.Stage)
		}
		released = *j
		released.Stage, released.Freeze = stageReleased, ""
		return nil
	}, func() error {
		if err := where.remove(context.WithoutCancel(ctx), where.inodes()); err != nil {
			return err
		}
		return where.write(&released)
	})
}

// unfreeze lets clients go on, if the journal allows it, and then keeps or forgets it.
func (m *Mover) unfreeze(ctx context.Context, where place, allow func(j *journal) error, after func() error) error {
	j, err := m.beginUnfreeze(where, allow)
	if err != nil || j == nil {
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
	if err := after(); err != nil {
		return err
	}
	_, err = m.tell(ctx)
	return err
}

// beginUnfreeze takes the freeze back on the volume: from then on it is not promised any more.
func (m *Mover) beginUnfreeze(where place, allow func(j *journal) error) (*journal, error) {
	m.staging.Lock()
	defer m.staging.Unlock()
	j, err := where.read()
	if err != nil || j == nil {
		return nil, err
	}
	if err := allow(j); err != nil {
		return nil, err
	}
	if j.Stage == stageReleased {
		return j, nil
	}
	j.Stage, j.Freeze = stageFreezing, ""
	return j, where.write(j)
}

// syncBoth makes the name of a directory durable.
func syncBoth(where place) error {
	volume, err := where.open()
	if err != nil {
		return err
	}
	defer func() { _ = volume.Close() }()
	if err := errors.Join(syncIfThere(volume, where.on(where.export())), syncIfThere(volume, where.on(filepath.Dir(where.shown())))); err != nil {
		return fmt.Errorf("making the name of the directory durable: %w", err)
	}
	return nil
}

// countsOf are ganesha's counts of open files by move: the list has two lines for each.
func countsOf(taken string, ids []string) map[string]string {
	words := strings.Fields(taken)
	counts := map[string]string{}
	for i, id := range ids {
		if 1+2*i < len(words) {
			counts[id] = words[1+2*i]
		}
	}
	return counts
}
