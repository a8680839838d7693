package directories

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"
	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/internal/namespace/tree"
	nfs "github.com/howdah/howdah/internal/nfs4/client"
)

const (
	// moveTimeout bounds the move of a directory with everything below it. The client waits that long. The leader does
	// the rest.
	moveTimeout = 10 * time.Minute
	// moveParallel is how many directories of one directory are moved at a time.
	moveParallel = 8
	// movePause is the time between tries while others change a directory.
	movePause = 200 * time.Millisecond
)

// moveTree renames a directory above the depth with the directories below it. Their ShareDirectories and owners have
// whole paths, so each directory is renamed on its own, from the bottom up, while both names exist. The ShareDirectory
// of the new name is made first, so that the leader knows about the rename. After that there is no way back, because
// some directories may have moved.
func (s *Service) moveTree(ctx context.Context, entry *tree.Entry, rel string) (status nfsv4.Nfsstat4, begun bool) {
	// The usual timeout is for one directory.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), moveTimeout)
	defer cancel()
	return s.move(ctx, entry.Share, entry.Rel, rel, root)
}

// mayMove is the status of a rename before anything is done for it.
func (s *Service) mayMove(ctx context.Context, entry *tree.Entry, rel string) nfsv4.Nfsstat4 {
	if isTooLong(rel) {
		return nfsv4.NFS4ERR_NAMETOOLONG
	}
	if entry.Junction() {
		if err := s.lookIfLost(ctx, entry.Share, rel, tree.Slot{Server: entry.Directory.Server, Volume: entry.Directory.Volume}); err != nil {
			return s.status("rename "+entry.Path, err)
		}
		return nfsv4.NFS4_OK
	}
	for _, r := range s.Tree.AllBelow(entry.Share.Name, entry.Rel) {
		if r.State == internalv1.DirectoryMissing {
			s.Log.Info("a directory is not renamed before all directories below it are back or given up", "path", entry.Path, "missing", r.Path)
			return nfsv4.NFS4ERR_DELAY
		}
		if server, ok := s.Tree.Server(r.Server); r.Server != "" && (!ok || !server.Serves[r.Share] || s.Reachable != nil && !s.Reachable(r.Server)) {
			s.Log.Info("a directory is not renamed before all data servers answer that have directories below it", "path", entry.Path, "server", r.Server)
			return nfsv4.NFS4ERR_DELAY
		}
	}
	if s.becomeTooLong(entry.Share.Name, entry.Rel, rel) {
		return nfsv4.NFS4ERR_NAMETOOLONG
	}
	return nfsv4.NFS4_OK
}

// becomeTooLong reports whether something below a directory would get a path that no ShareDirectory holds.
func (s *Service) becomeTooLong(share, from, to string) bool {
	return slices.ContainsFunc(s.Tree.AllBelow(share, from), func(r *tree.Directory) bool { return isTooLong(to + r.Path[len(from):]) })
}

// move renames a directory with everything below it, and continues an earlier try. begun: its directories may be
// locked.
func (s *Service) move(ctx context.Context, share *tree.Share, from, to string, creds nfs.Credentials) (status nfsv4.Nfsstat4, begun bool) {
	what := "move " + from + " of share " + share.Name
	if isTooLong(to) {
		return nfsv4.NFS4ERR_NAMETOOLONG, false
	}
	old, err := s.get(ctx, share.Name, from)
	switch {
	case apierrors.IsNotFound(err):
		return s.moved(ctx, share, from, to, ""), false
	case err != nil:
		return s.status(what, err), false
	}
	next, err := s.get(ctx, share.Name, to)
	ours := err == nil && next.Spec.RenamedFrom == from && next.State() == internalv1.DirectoryRenaming
	switch {
	case err != nil && !apierrors.IsNotFound(err):
		return s.status(what, err), false
	case ours && !sameDirectory(old, next):
		return nfsv4.NFS4ERR_DELAY, false // It was begun for another directory of that name, and the leader finishes it.
	case old.State() != internalv1.DirectoryReady && (old.State() != internalv1.DirectoryRemoving || !ours && s.attempts.of(lockKey(share.Name, from)) != removalOf(old)):
		return nfsv4.NFS4ERR_DELAY, false // made, removed or renamed right now
	}
	if old.Spec.DataServerRef.Name != "" {
		// The Leader waits longer than that.
		bounded, cancel := context.WithTimeout(ctx, s.Timeout)
		defer cancel()
		ctx = bounded
	}
	known, err := s.lockForRename(ctx, old)
	switch {
	case err != nil:
		return s.status(what, err), false
	case !known && ours:
		return nfsv4.NFS4ERR_DELAY, true
	case !known:
		s.unlock(ctx, old)
		return nfsv4.NFS4ERR_DELAY, false
	case !ours && s.becomeTooLong(share.Name, from, to):
		s.unlock(ctx, old)
		return nfsv4.NFS4ERR_NAMETOOLONG, false
	}
	defer func() {
		if begun && status == nfsv4.NFS4ERR_DELAY {
			s.attempts.put(lockKey(share.Name, from), removalOf(old), s.Clock.Now())
		}
	}()
	if ours {
		err = s.hold(ctx, next)
		status = nfsv4.NFS4_OK
	} else {
		err = nil
		next, status = s.claim(ctx, share, to, renamedSpec(old))
	}
	switch {
	case err != nil:
		return s.status(what, err), true
	case status == nfsv4.NFS4ERR_DELAY:
		return status, true
	case status != nfsv4.NFS4_OK:
		s.unlock(ctx, old)
		return status, false
	}
	was, ok := s.Tree.At(share.Path + "/" + from)
	if !ok {
		return nfsv4.NFS4ERR_DELAY, true
	}
	status = s.carryOut(ctx, share, tree.NewDirectory(old), to, creds)
	switch {
	case status == nfsv4.NFS4_OK:
	case status == nfsv4.NFS4ERR_DELAY, status == nfsv4.NFS4ERR_STALE && ours: // Something may have moved already.
		return nfsv4.NFS4ERR_DELAY, true
	default:
		return s.takeBack(ctx, old, next, status), false
	}
	if err := s.endRename(ctx, old, next, &was); err != nil {
		return s.status(what, err), true
	}
	return nfsv4.NFS4_OK, true
}

// takeBack ends a rename that was refused, and gives its status.
func (s *Service) takeBack(ctx context.Context, old, next *internalv1.ShareDirectory, status nfsv4.Nfsstat4) nfsv4.Nfsstat4 {
	if err := s.drop(ctx, next); err != nil {
		s.Log.Warn("a rename that was refused is left to the leader", "share", old.Spec.FileShareRef.Name, "path", old.Spec.Path, "error", err)
		return status
	}
	s.unlock(ctx, old)
	if status == nfsv4.NFS4ERR_STALE {
		// This server may show that directory still, and it may stay. Linux walks the path again only once.
		return nfsv4.NFS4ERR_DELAY
	}
	return status
}

// carryOut renames a directory for which both names are locked. NFS4ERR_STALE: the directory of the new name is gone, or is about to go.
func (s *Service) carryOut(ctx context.Context, share *tree.Share, r *tree.Directory, to string, creds nfs.Credentials) nfsv4.Nfsstat4 {
	stays, err := s.inPlace(ctx, share, to)
	switch {
	case err != nil:
		return s.status("rename to "+to, err)
	case !stays:
		return nfsv4.NFS4ERR_STALE
	case r.Server != "":
		return s.renameOnOwner(ctx, share, r, to, creds)
	}
	return s.moveKids(ctx, share, r.Path, to)
}

// sameDirectory reports whether a ShareDirectory is another one's successor under a new path.
func sameDirectory(old, next *internalv1.ShareDirectory) bool {
	known := next.Spec.Identity == "" || next.Spec.Identity == renamedSpec(old).Identity
	return known && old.Spec.DataServerRef == next.Spec.DataServerRef &&
		ptr.Deref(old.Spec.Volume, 0) == ptr.Deref(next.Spec.Volume, 0)
}

// lockForRename locks the old name: its state is Removing, and the directories on the owner show the result. From then on others make nothing in a
// directory above the depth (inPlace). known: the tree has what they made before.
func (s *Service) lockForRename(ctx context.Context, old *internalv1.ShareDirectory) (known bool, err error) {
	heard := s.listen(old.UID)
	if old.State() == internalv1.DirectoryReady {
		err = s.setState(ctx, old, internalv1.DirectoryRemoving)
	} else {
		err = s.hold(ctx, old)
	}
	if err != nil || old.Spec.DataServerRef.Name != "" {
		s.unlisten(heard, old.UID)
		return true, err
	}
	return s.await(ctx, heard, old), nil
}

// unlock unlocks a directory that was not renamed.
func (s *Service) unlock(ctx context.Context, old *internalv1.ShareDirectory) {
	if err := s.setState(ctx, old, internalv1.DirectoryReady); err != nil {
		s.Log.Warn("a directory that was not renamed is left to the leader", "share", old.Spec.FileShareRef.Name, "path", old.Spec.Path, "error", err)
	}
}

// moved is the status of a move whose source is gone: another server has moved it, or is about to finish. identity is that of the directory;
// "": any.
func (s *Service) moved(ctx context.Context, share *tree.Share, from, to, identity string) nfsv4.Nfsstat4 {
	next, err := s.get(ctx, share.Name, to)
	switch {
	case apierrors.IsNotFound(err):
		return nfsv4.NFS4ERR_NOENT
	case err != nil:
		return s.status("move "+from+" of share "+share.Name, err)
	case next.Spec.RenamedFrom != from, identity != "" && next.Spec.Identity != identity:
		return nfsv4.NFS4ERR_NOENT
	case next.State() == internalv1.DirectoryRenaming && next.Spec.DataServerRef.Name != "":
		return nfsv4.NFS4ERR_DELAY // renamed, or removed before: the leader checks
	case next.State() == internalv1.DirectoryRenaming:
		if err := s.finish(ctx, next); err != nil {
			return s.status("move "+from+" of share "+share.Name, err)
		}
	}
	return nfsv4.NFS4_OK
}

// moveKids moves all directories in a directory, including those that are made meanwhile, and then removes the
// directory from its owners.
func (s *Service) moveKids(ctx context.Context, share *tree.Share, from, to string) nfsv4.Nfsstat4 {
	for {
		kids := s.Tree.DirectoriesIn(share.Name, from)
		if len(kids) == 0 {
			status := s.emptied(ctx, share, from)
			if status == nfsv4.NFS4_OK {
				return status
			}
			if len(s.Tree.DirectoriesIn(share.Name, from)) == 0 {
				s.Log.Warn("a data server keeps something in a directory of the namespace that was renamed", "share", share.Name, "path", from)
				return nfsv4.NFS4_OK
			}
			continue
		}
		var stay atomic.Int64
		group, inner := errgroup.WithContext(ctx)
		group.SetLimit(moveParallel)
		for _, kid := range kids {
			group.Go(func() error {
				status, _ := s.move(inner, share, kid.Path, to+kid.Path[len(from):], root)
				switch status {
				case nfsv4.NFS4ERR_EXIST, nfsv4.NFS4ERR_NAMETOOLONG:
					stay.Add(1)
					return nil
				case nfsv4.NFS4_OK, nfsv4.NFS4ERR_DELAY, nfsv4.NFS4ERR_NOENT:
					return nil // the next round checks again
				}
				return fmt.Errorf("move %s: %s", kid.Path, nfs.StatusName(status))
			})
		}
		if err := group.Wait(); err != nil {
			s.Log.Warn("a directory can't be moved with the one above it, and is tried again", "share", share.Name, "error", err)
		}
		if int(stay.Load()) == len(kids) {
			// They were made under the old name after others with their names had moved, or have no room for the new name. They stay.
			s.Log.Warn("directories that were made in a directory while it was renamed stay under its old name", "share", share.Name, "path", from)
			return nfsv4.NFS4_OK
		}
		if len(s.Tree.DirectoriesIn(share.Name, from)) > 0 && !s.pause(ctx, movePause) {
			return nfsv4.NFS4ERR_DELAY
		}
	}
}
