package directories

import (
	"context"
	"fmt"
	"time"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"
	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/internal/namespace/tree"
	nfs "github.com/howdah/howdah/internal/nfs4/client"
)

const (
	// moveTimeout bounds the move of a directory with all that is below it. The client waits for as long; what is not
	// done by then the keeper does.
	moveTimeout = 10 * time.Minute
	// moveParallel is how many directories of one directory are moved at a time.
	moveParallel = 8
	// movePause is the time between tries for what is being changed by others.
	movePause = 200 * time.Millisecond
)

// moveTree renames a directory of the namespace with the directories below it. Paths are in all their ShareDirectories and on all their
// owners, so each is renamed by itself, from the bottom up, while both names exist; the ShareDirectory of the new name, made first,
// tells the keeper what was begun. From then on the only way is forward: part of the directories may have moved.
func (s *Service) moveTree(ctx context.Context, entry *tree.Entry, rel string) nfsv4.Nfsstat4 {
	for _, r := range s.Tree.AllBelow(entry.Share.Name, entry.Rel) {
		if server, ok := s.Tree.Server(r.Server); r.Server != "" && (!ok || !server.Serves[r.Share] || s.Reachable != nil && !s.Reachable(r.Server)) {
			s.Log.Info("a directory is not renamed before all data servers answer that have directories below it", "path", entry.Path, "server", r.Server)
			return nfsv4.NFS4ERR_DELAY
		}
	}
	// The change's own limit is about one directory.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), moveTimeout)
	defer cancel()
	return s.move(ctx, entry.Share, entry.Rel, rel)
}

// move renames a directory with all below it. It goes on where an earlier try was stopped.
func (s *Service) move(ctx context.Context, share *tree.Share, from, to string) nfsv4.Nfsstat4 {
	what := "move " + from + " of share " + share.Name
	old, err := s.get(ctx, share.Name, from)
	switch {
	case apierrors.IsNotFound(err):
		return s.moved(ctx, share, from, to)
	case err != nil:
		return s.status(what, err)
	case old.State() != internalv1.DirectoryReady:
		return nfsv4.NFS4ERR_DELAY // made, removed or renamed by somebody right now
	}
	next, status := s.takeName(ctx, share, old, to)
	if status != nfsv4.NFS4_OK {
		return status
	}
	was, ok := s.Tree.At(share.Path + "/" + from)
	if !ok {
		return nfsv4.NFS4ERR_DELAY
	}
	if r := tree.NewDirectory(old); r.Server != "" {
		// The caller needs permission where the top of the tree is, not for what is below it.
		status = s.renameOnOwner(ctx, share, r, to, root)
	} else {
		status = s.moveKids(ctx, share, from, to)
	}
	if status != nfsv4.NFS4_OK {
		return status
	}
	if err := s.endRename(ctx, old, next, &was); err != nil {
		return s.status(what, err)
	}
	return nfsv4.NFS4_OK
}

// moved is the status of a move whose source is gone: somebody else has moved it, or is at the last step.
func (s *Service) moved(ctx context.Context, share *tree.Share, from, to string) nfsv4.Nfsstat4 {
	next, err := s.get(ctx, share.Name, to)
	switch {
	case apierrors.IsNotFound(err):
		return nfsv4.NFS4ERR_NOENT
	case err != nil:
		return s.status("move "+from+" of share "+share.Name, err)
	case next.Spec.RenamedFrom != from:
		return nfsv4.NFS4ERR_NOENT
	case next.State() == internalv1.DirectoryRenaming:
		if err := s.finish(ctx, next); err != nil {
			return s.status("move "+from+" of share "+share.Name, err)
		}
	}
	return nfsv4.NFS4_OK
}

// takeName is claim, unless an earlier try has the name already.
func (s *Service) takeName(ctx context.Context, share *tree.Share, old *internalv1.ShareDirectory, to string) (*internalv1.ShareDirectory, nfsv4.Nfsstat4) {
	next, err := s.get(ctx, share.Name, to)
	if err == nil && next.Spec.RenamedFrom == old.Spec.Path && next.State() == internalv1.DirectoryRenaming {
		return next, nfsv4.NFS4_OK
	}
	return s.claim(ctx, share, to, renamedSpec(old))
}

// moveKids moves all directories of a directory, also those that others make in it meanwhile, and then takes it from its owners.
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
		group, inner := errgroup.WithContext(ctx)
		group.SetLimit(moveParallel)
		for _, kid := range kids {
			group.Go(func() error {
				status := s.move(inner, share, kid.Path, to+kid.Path[len(from):])
				switch status {
				case nfsv4.NFS4_OK, nfsv4.NFS4ERR_DELAY, nfsv4.NFS4ERR_NOENT:
					return nil // the next round looks again
				}
				return fmt.Errorf("move %s: %s", kid.Path, nfs.StatusName(status))
			})
		}
		if err := group.Wait(); err != nil {
			s.Log.Warn("a directory can't be moved with the one above it, and is tried again", "share", share.Name, "error", err)
		}
		if len(s.Tree.DirectoriesIn(share.Name, from)) > 0 && !s.pause(ctx, movePause) {
			return nfsv4.NFS4ERR_DELAY
		}
	}
}
