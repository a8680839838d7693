package mover

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	nfs "github.com/howdah/howdah/internal/nfs4/client"
)

// put gives the verified copy its name in the share.
func (m *Mover) put(ctx context.Context, where place, task *internalv1.MoveTask) error {
	j, err := where.read()
	switch {
	case err != nil:
		return err
	case j == nil:
		return fmt.Errorf("%w: there is no copy, it was removed", errUnknown)
	case j.Stage == stagePlaced:
		return nil
	case j.Stage == stageVerified && j.Attempt == task.Attempt:
		j.Stage, j.Peer, j.PeerAddress = stageAsking, task.Peer.Name, task.PeerAddress
		m.about("ask")
		if err := where.write(j); err != nil {
			return err
		}
	case j.isPlacing():
	case j.isSource():
		return fmt.Errorf("the move's ID %s is that of another move of this data server", j.ID)
	default:
		// It was given up, perhaps in a process before this one, which did not come to report it.
		return fmt.Errorf("the copy is %s, of attempt %d: %w", j.Stage, j.Attempt, errEnded)
	}
	if j.Stage == stageAsking {
		if err := m.askPromise(ctx, where, j, m.dialer(task)); err != nil {
			if !isEnded(err) {
				return err
			}
			j.Stage = stageCopying // It is not placed from here on, whatever comes.
			m.about("give up")
			return errors.Join(where.write(j), err)
		}
	}
	return m.place(ctx, where, j)
}

// isEnded tells that the freeze in which the copy was verified does not hold any more.
func isEnded(err error) bool { return errors.Is(err, errEnded) || errors.Is(err, errUnknown) }

// askPromise has the source promise that it keeps the directory frozen, and makes it durable that it has.
func (m *Mover) askPromise(ctx context.Context, where place, j *journal, dial func(ctx context.Context) (net.Conn, error)) error {
	conn, _, _, err := m.askSource(ctx, dial, ask{Move: j.ID, Kind: askPromise, Freeze: j.Freeze})
	if err != nil {
		return err
	}
	_ = conn.Close()
	j.Stage = stagePlacing
	m.about("place")
	return where.write(j)
}

// place puts the copy into the share. The source has promised.
func (m *Mover) place(ctx context.Context, where place, j *journal) error {
	// The directory may have left this data server a moment ago.
	if !m.hasList() {
		if _, err := m.tell(ctx); err != nil {
			return err
		}
	}
	if err := m.makeParents(ctx, where, j.Parents); err != nil {
		return err
	}
	m.about("into the export")
	if err := where.rename(where.data(), where.hidden()); err != nil {
		return fmt.Errorf("moving the copy into the export: %w", err)
	}
	hidden, err := exists(where.hidden())
	if err != nil {
		return err
	}
	if hidden {
		m.about("name")
		// Through ganesha, which knows the name then.
		if err := m.NFS.Rename(ctx, root, where.hiddenNFS(), where.shownNFS()); err != nil {
			return fmt.Errorf("giving the copy its name: %w", err)
		}
	}
	if _, err := m.NFS.Stat(ctx, root, where.shownNFS()); err != nil {
		return fmt.Errorf("looking for the copy through ganesha: %w", err)
	}
	if err := syncBoth(where); err != nil {
		return err
	}
	j.Stage = stagePlaced
	m.about("placed")
	return where.write(j)
}

// makeParents makes the directories above, as the source has them.
func (m *Mover) makeParents(ctx context.Context, where place, parents []parent) error {
	at, onDisk := filepath.Dir(where.shownNFS()), filepath.Dir(where.shown())
	for range parents {
		at, onDisk = filepath.Dir(at), filepath.Dir(onDisk)
	}
	for _, above := range parents {
		at, onDisk = at+"/"+above.Name, onDisk+"/"+above.Name
		if there, err := exists(onDisk); err != nil || there {
			if err != nil {
				return err
			}
			continue
		}
		uid, gid := above.UID, above.GID
		err := m.NFS.Mkdir(ctx, root, at, nfs.MkdirOptions{Mode: above.Mode, Owner: &uid, Group: &gid})
		if err != nil && !nfs.IsStatus(err, nfsv4.NFS4ERR_EXIST) {
			return fmt.Errorf("making the directory above: %w", err)
		}
	}
	return nil
}

// endTarget ends a move that is in no task any more. A copy that may be the directory by now stays, and gets its name. It is not forgotten before the source
// knows that.
func (m *Mover) endTarget(ctx context.Context, where place, j *journal) error {
	if j.isPlacing() && j.Stage != stagePlaced && isThere(where.export()) {
		if j.Stage == stageAsking {
			err := m.askPromise(ctx, where, j, m.dialerOf(j))
			if err != nil && !errors.Is(err, errEnded) {
				return fmt.Errorf("the source may have promised that this copy is the directory; it stays in %s until the source answers: %w", where.data(), err)
			}
		}
		if j.Stage == stagePlacing {
			if err := m.place(ctx, where, j); err != nil {
				return err
			}
		}
	}
	if j.Stage == stagePlaced && isThere(where.export()) {
		if err := m.tellPlaced(ctx, j); err != nil {
			return err
		}
	}
	m.about("end")
	return where.forget(ctx)
}
