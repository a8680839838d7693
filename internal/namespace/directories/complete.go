package directories

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/internal/namespace/tree"
	nfs "github.com/howdah/howdah/internal/nfs4/client"
)

// complete finishes or undoes the change that a ShareDirectory records.
func (k *Leader) complete(ctx context.Context, t task) error {
	r, ok := k.Tree.Directory(t.share, t.path)
	if !ok || !r.Unfinished() {
		return nil
	}
	share, ok := k.Tree.Share(t.share)
	if !ok {
		return nil // ShareChanged is called when it is shown
	}
	k.mu.Lock()
	wait := k.wait(t, r)
	if wait > 0 && k.queue != nil {
		k.queue.AddAfter(t, wait)
	}
	k.mu.Unlock()
	if wait > 0 {
		return nil
	}
	if r.Server != "" && !r.BeingReplaced {
		server, ok := k.Tree.Server(r.Server)
		if !ok || server.Address == "" || !server.Serves[r.Share] {
			return nil // ServerChanged is called when it serves the share
		}
	}
	directory, err := k.get(ctx, t.share, t.path)
	switch {
	case apierrors.IsNotFound(err):
		k.Tree.DeleteDirectory(r.Share, r.Path, r.UID)
		return nil
	case err != nil:
		return err
	case tree.NewDirectory(directory).Version != r.Version:
		k.DirectoryChanged(t.share, t.path) // it is being changed
		return nil
	}
	switch directory.State() {
	case internalv1.DirectoryReady:
		if directory.Spec.Removal == internalv1.RemovalWhenEmpty {
			err = k.removeWhenEmpty(ctx, t, share, directory)
		} else if !r.CopiesCurrent {
			err = k.completeCopies(ctx, share, directory)
		}
	case internalv1.DirectoryMissing:
		err = k.completeMissing(ctx, share, directory)
	case internalv1.DirectoryCreating:
		err = k.completeCreating(ctx, share, directory)
	case internalv1.DirectoryRemoving:
		if directory.Status.ReplacedBy.Identity != "" {
			err = k.completeReplacement(ctx, share, directory)
		} else {
			err = k.completeRemoving(ctx, share, directory)
		}
	case internalv1.DirectoryRenaming:
		err = k.completeRenaming(ctx, share, directory)
	}
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return nil // another change was faster; its event follows
	}
	return err
}

// completeCreating makes a directory that is declared, or whose maker is gone. If it exists already, nothing more is
// needed.
func (k *Leader) completeCreating(ctx context.Context, share *tree.Share, directory *internalv1.ShareDirectory) error {
	r := tree.NewDirectory(directory)
	switch {
	case r.Server == "":
	case k.isReplaced(directory):
		return k.completeReplaced(ctx, directory)
	case r.Path == tree.RootPath:
		// The root of a Single share is the export's root, which must answer.
		if _, err := k.exists(ctx, r.Server, r.Volume, share.Name, r.Path); err != nil {
			return err
		}
		directory.Status.RootID = k.rootNow(r)
	default:
		address, err := k.address(r.Server)
		if err != nil {
			return err
		}
		elsewhere, err := k.isElsewhere(ctx, share, directory)
		switch {
		case err != nil:
			return err
		case elsewhere:
			return k.setState(ctx, directory, internalv1.DirectoryMissing)
		}
		opts := nfs.MkdirOptions{Mode: r.Mode, Owner: ptr.To(r.Owner), Group: ptr.To(r.Group)}
		err = k.makeWithParents(ctx, address, share, r.Volume, r.Path, root, opts)
		if err != nil && !nfs.IsStatus(err, nfsv4.NFS4ERR_EXIST) {
			return fmt.Errorf("make %s on data server %s: %w", r.Path, r.Server, err)
		}
	}
	return k.setState(ctx, directory, internalv1.DirectoryReady)
}

// completeReplaced is for a directory whose volume is another one than when a client made it. The client may have written into it: so it
// is Missing, unless it is there, and the check of the volume and the user decide.
func (k *Leader) completeReplaced(ctx context.Context, directory *internalv1.ShareDirectory) error {
	r := tree.NewDirectory(directory)
	there, err := k.exists(ctx, r.Server, r.Volume, r.Share, r.Path)
	switch {
	case err != nil:
		return err
	case there:
		return k.setState(ctx, directory, internalv1.DirectoryReady)
	}
	k.Log.Warn("a directory that a client made is not on the volume, which is another one than before", "share", r.Share, "path", r.Path, "server", r.Server)
	return k.setState(ctx, directory, internalv1.DirectoryMissing)
}

// completeRemoving deletes the ShareDirectory of a removed directory, and undoes a removal that did not happen.
func (k *Leader) completeRemoving(ctx context.Context, share *tree.Share, directory *internalv1.ShareDirectory) error {
	r := tree.NewDirectory(directory)
	replacing, err := k.isReplacing(ctx, directory)
	if err != nil {
		return err
	}
	if replacing || r.Server == "" && k.renamedTo(r) {
		k.againAfter(task{share: r.Share, path: r.Path}, abandonedAfter) // it is deleted at the end of that, or becomes Ready again
		return nil
	}
	if r.Server == "" {
		// It exists with its ShareDirectory. Only copies were removed, which are made again when they are needed.
		return k.setState(ctx, directory, internalv1.DirectoryReady)
	}
	gone, err := k.isGone(ctx, r)
	if err != nil {
		return err
	}
	if !gone {
		return k.setState(ctx, directory, internalv1.DirectoryReady)
	}
	elsewhere, err := k.isElsewhere(ctx, share, directory)
	switch {
	case err != nil:
		return err
	case elsewhere:
		return k.setState(ctx, directory, internalv1.DirectoryMissing)
	}
	k.emptyingOf(ctx, share, r)
	return k.drop(ctx, directory)
}

func (k *Leader) isGone(ctx context.Context, r *tree.Directory) (bool, error) {
	if r.Path == tree.RootPath {
		return false, nil // an export's root is not removed through NFS
	}
	exists, err := k.exists(ctx, r.Server, r.Volume, r.Share, r.Path)
	return !exists, err
}

// removeWhenEmpty carries out spec.removal. It needs no state: an empty directory is removed in one step on its owner,
// and an object without its directory is deleted later. A directory that holds data is tried again later.
func (k *Leader) removeWhenEmpty(ctx context.Context, t task, share *tree.Share, directory *internalv1.ShareDirectory) error {
	removed, err := k.removeEmpty(ctx, share, tree.NewDirectory(directory))
	switch {
	case err != nil:
		return err
	case removed:
		k.emptyingOf(ctx, share, tree.NewDirectory(directory))
		return k.drop(ctx, directory)
	}
	k.againLater(t)
	if directory.Status.RemovalRefusedTime != nil {
		return nil
	}
	next := directory.DeepCopy()
	next.Status.RemovalRefusedTime = ptr.To(metav1.NewTime(k.Clock.Now()))
	if err := k.Client.Status().Update(ctx, next); err != nil {
		return fmt.Errorf("say that %s of share %s holds data: %w", directory.Spec.Path, share.Name, err)
	}
	k.Tree.SetDirectory(next)
	return nil
}

// removeEmpty removes a directory on its owner if it is empty.
func (k *Leader) removeEmpty(ctx context.Context, share *tree.Share, r *tree.Directory) (bool, error) {
	switch {
	case r.Server == "":
		return k.emptied(ctx, share, r.Path) == nfsv4.NFS4_OK, nil
	case r.Path == tree.RootPath:
		return false, nil // an export's root is not removed through NFS
	}
	address, err := k.address(r.Server)
	if err != nil {
		return false, err
	}
	err = k.Owners.Rmdir(ctx, address, tree.ExportPath(share.Name, r.Volume, r.Path), root)
	switch {
	case err == nil || nfs.IsStatus(err, nfsv4.NFS4ERR_NOENT):
		return true, nil
	case nfs.IsStatus(err, nfsv4.NFS4ERR_NOTEMPTY, nfsv4.NFS4ERR_EXIST):
		return false, nil
	}
	return false, fmt.Errorf("remove %s on data server %s: %w", r.Path, r.Server, err)
}

// completeRenaming finishes a rename: the owner has the directory under one of its two names.
func (k *Leader) completeRenaming(ctx context.Context, share *tree.Share, directory *internalv1.ShareDirectory) error {
	r := tree.NewDirectory(directory)
	newThere, oldThere := false, false
	if r.Server != "" {
		var err error
		if newThere, err = k.exists(ctx, r.Server, r.Volume, share.Name, r.Path); err != nil {
			return err
		}
		if oldThere, err = k.exists(ctx, r.Server, r.Volume, share.Name, r.RenamedFrom); err != nil {
			return err
		}
	}
	old, err := k.get(ctx, r.Share, r.RenamedFrom)
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	if err != nil || !sameDirectory(old, directory) {
		old = nil // What has the old name now was made after the rename.
	}
	state := internalv1.DirectoryReady
	renamed := newThere && (!oldThere || old == nil)
	if r.Server != "" && !newThere && !oldThere {
		if renamed, err = k.isElsewhere(ctx, share, directory); err != nil {
			return err
		}
		state = internalv1.DirectoryMissing // The rename was made, and the directory has moved since.
	}
	if r.Server == "" {
		// It exists in the namespace only: it is renamed when the old ShareDirectory is deleted. If some directories
		// below it were moved, the rest must follow.
		renamed = old == nil
		if !renamed && (old.State() == internalv1.DirectoryRemoving || k.Tree.Below(r.Share, r.Path)) {
			if status, _ := k.move(ctx, share, r.RenamedFrom, r.Path, root); status != nfsv4.NFS4_OK {
				return fmt.Errorf("go on with the rename of %s of share %s to %s: %s", r.RenamedFrom, r.Share, r.Path, nfs.StatusName(status))
			}
			return nil
		}
	}
	switch {
	case !renamed && k.movesWithAbove(r):
		// The move of the directory above it includes this one, and may be doing so now. Check again later.
		k.againAfter(task{share: r.Share, path: r.Path}, abandonedAfter)
		return nil
	case !renamed:
		return k.undo(ctx, directory)
	}
	if old != nil {
		directory.Status.ModifiedTime, directory.Status.ChangedTime = old.Status.ModifiedTime, old.Status.ChangedTime
		directory.Status.AccessedTime = old.Status.AccessedTime
		if err := k.drop(ctx, old); err != nil {
			return err
		}
	}
	return k.setState(ctx, directory, state)
}

// renamedTo reports whether a directory is being renamed: there is a ShareDirectory for the new name.
func (k *Leader) renamedTo(r *tree.Directory) bool {
	return slices.ContainsFunc(k.Tree.Unfinished(), func(other *tree.Directory) bool {
		return other.Share == r.Share && other.State == internalv1.DirectoryRenaming && other.RenamedFrom == r.Path
	})
}

// movesWithAbove reports whether a directory is renamed because one above it is.
func (k *Leader) movesWithAbove(r *tree.Directory) bool {
	for at := strings.LastIndexByte(r.Path, '/'); at > 0; at = strings.LastIndexByte(r.Path[:at], '/') {
		above, ok := k.Tree.Directory(r.Share, r.Path[:at])
		if ok && above.State == internalv1.DirectoryRenaming && above.RenamedFrom+r.Path[at:] == r.RenamedFrom {
			return true
		}
	}
	return false
}

// exists reports whether an owner has a path of a share. What has left it, in a move, it does not have.
func (s *Service) exists(ctx context.Context, server string, volume int32, share, rel string) (bool, error) {
	switch err := s.look(ctx, server, volume, share, rel); {
	case nfs.IsStatus(err, nfsv4.NFS4ERR_NOENT) && rel != tree.RootPath, hasLeft(err, tree.ExportPath(share, volume, rel)):
		return false, nil
	case err != nil:
		return false, err
	}
	return true, nil
}

// look gives no error if an owner has a path of a share.
func (s *Service) look(ctx context.Context, server string, volume int32, share, rel string) error {
	address, err := s.address(server)
	if err == nil {
		_, err = s.Owners.Stat(ctx, address, tree.ExportPath(share, volume, rel), root)
	}
	if err != nil {
		return fmt.Errorf("look at %s of share %s on data server %s: %w", rel, share, server, err)
	}
	return nil
}

// hasLeft reports whether a data server answers that a path has left it: it refuses the name for an hour (internal/dataserver/mover). What is above the
// path answers, so it is not the export that is away.
func hasLeft(err error, path string) bool {
	var status *nfs.StatusError
	return errors.As(err, &status) && status.Op == "LOOKUP" && status.Status == nfsv4.NFS4ERR_STALE && status.Path == path
}
