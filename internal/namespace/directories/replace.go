package directories

import (
	"context"
	"fmt"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/internal/namespace/tree"
	nfs "github.com/howdah/howdah/internal/nfs4/client"
)

// replacement is a rename onto an empty directory. What can refuse it comes before what can't be undone: both ShareDirectories are locked and name each
// other; the directory is renamed on its owner; the empty one is removed on its own, and if it is refused there, the other gets its old name back. Then one
// write gives the ShareDirectory of the new name to the renamed directory, and the rename ends like any other. Until that write, the Leader finds on the
// owners what was done (completeReplacement).
type replacement struct {
	*Service
	share       *tree.Share
	old, target *internalv1.ShareDirectory
	entry, onto *tree.Entry
	caller      tree.Credentials
}

// replace renames a directory onto another one, if that is empty. there: it is there, so the status is that of the rename. begun: something is locked.
func (s *Service) replace(ctx context.Context, entry, onto *tree.Entry, caller tree.Credentials) (there bool, status nfsv4.Nfsstat4, begun bool) {
	p := &replacement{Service: s, share: entry.Share, entry: entry, onto: onto, caller: caller}
	var err error
	if p.target, err = s.get(ctx, p.share.Name, onto.Rel); apierrors.IsNotFound(err) {
		s.Tree.DeleteDirectory(p.share.Name, onto.Directory.Path, onto.Directory.UID)
		return false, nfsv4.NFS4_OK, false
	}
	switch {
	case err != nil:
		return true, s.status("rename to "+onto.Path, err), false
	case p.target.State() == internalv1.DirectoryMissing:
		return true, nfsv4.NFS4ERR_EXIST, false // It is not known to be empty. Only rmdir gives it up.
	case p.target.State() != internalv1.DirectoryReady, !s.isAsJudged(onto):
		return true, nfsv4.NFS4ERR_DELAY, false
	}
	if p.old, err = s.get(ctx, p.share.Name, entry.Rel); err != nil {
		return true, s.status("rename "+entry.Path, err), false
	}
	if p.old.State() != internalv1.DirectoryReady || !s.isAsJudged(entry) || !s.mayAnswer(p.old) || !s.mayAnswer(p.target) {
		return true, nfsv4.NFS4ERR_DELAY, false
	}
	if status = p.lockOld(ctx); status != nfsv4.NFS4_OK {
		return true, status, false
	}
	if status = p.lockTarget(ctx); status != nfsv4.NFS4_OK {
		s.unlock(ctx, p.old)
		return true, status, false
	}
	stays, err := s.inPlace(ctx, p.share, onto.Rel)
	switch {
	case err != nil:
		status = s.status("rename to "+onto.Path, err)
	case !stays:
		status = nfsv4.NFS4ERR_DELAY
	case entry.Junction():
		status, begun = p.onOwners(ctx)
	default:
		status = p.emptied(ctx, p.share, onto.Rel)
	}
	switch {
	case begun:
		return true, nfsv4.NFS4ERR_DELAY, true
	case status != nfsv4.NFS4_OK:
		p.giveUp(ctx)
		return true, inTheWay(status), false
	}
	if err := s.takeOver(ctx, p.share, p.old, p.target); err != nil {
		return true, s.status("rename to "+onto.Path, err), true
	}
	if entry.Junction() {
		if err := s.endRename(ctx, p.old, p.target, entry); err != nil {
			return true, s.status("rename to "+onto.Path, err), true
		}
		return true, nfsv4.NFS4_OK, false
	}
	status, _ = s.moveTree(ctx, entry, onto.Rel)
	return true, status, true
}

// mayAnswer reports whether a directory's owner is there, as far as is known.
func (s *Service) mayAnswer(o *internalv1.ShareDirectory) bool {
	owner := o.Spec.DataServerRef.Name
	if owner == "" {
		return true
	}
	_, err := s.address(owner)
	return err == nil && (s.Reachable == nil || s.Reachable(owner))
}

// lockOld locks the directory that is renamed.
func (p *replacement) lockOld(ctx context.Context) nfsv4.Nfsstat4 {
	what := "rename " + p.entry.Path
	p.old.Status.Replaces = p.onto.Rel
	known, err := p.lockForRename(ctx, p.old)
	if err != nil {
		return p.status(what, err)
	}
	status := nfsv4.NFS4_OK
	switch {
	case !known:
		status = nfsv4.NFS4ERR_DELAY
	case !p.entry.Junction() && p.becomeTooLong(p.share.Name, p.entry.Rel, p.onto.Rel):
		status = nfsv4.NFS4ERR_NAMETOOLONG
	case p.entry.Junction():
		// From here on it is there. If it is not, later, it was renamed.
		if err = p.stat(ctx, p.old, p.entry.Rel); nfs.IsStatus(err, nfsv4.NFS4ERR_NOENT) {
			status = nfsv4.NFS4ERR_NOENT
		} else if err != nil {
			status = p.status(what, err)
		}
	}
	if status != nfsv4.NFS4_OK {
		p.unlock(ctx, p.old)
	}
	return status
}

// stat looks for a path on the owner of a directory.
func (s *Service) stat(ctx context.Context, o *internalv1.ShareDirectory, rel string) error {
	r := tree.NewDirectory(o)
	address, err := s.address(r.Server)
	if err != nil {
		return err
	}
	_, err = s.Owners.Stat(ctx, address, tree.ExportPath(r.Share, r.Volume, rel), root)
	return err
}

// lockTarget locks the directory that is to be replaced. Afterwards others make nothing in it, and it has nothing.
func (p *replacement) lockTarget(ctx context.Context) nfsv4.Nfsstat4 {
	if p.onto.Entries > 0 {
		return inTheWay(p.notEmpty(ctx, p.onto))
	}
	p.target.Status.ReplacedBy = internalv1.DirectoryReplacement{Path: p.entry.Rel, Identity: renamedSpec(p.old).Identity}
	heard := p.listen(p.target.UID)
	defer p.unlisten(heard, p.target.UID)
	if err := p.setState(ctx, p.target, internalv1.DirectoryRemoving); err != nil {
		return p.status("rename to "+p.onto.Path, err)
	}
	if p.onto.Junction() {
		return nfsv4.NFS4_OK
	}
	if !p.await(ctx, heard, p.target) || p.Tree.Below(p.share.Name, p.onto.Rel) && !p.shows(p.onto) {
		p.unlock(ctx, p.target)
		return nfsv4.NFS4ERR_DELAY
	}
	return nfsv4.NFS4_OK
}

// onOwners renames a distributed directory on its owner, and removes the one that it replaces. unknown: it may be done in part, and the Leader finds out.
func (p *replacement) onOwners(ctx context.Context) (status nfsv4.Nfsstat4, unknown bool) {
	status = p.renameOnOwner(ctx, p.share, tree.NewDirectory(p.old), p.onto.Rel, credentials(p.caller))
	if status != nfsv4.NFS4_OK || p.onOneStorage(p.old, p.target) {
		return status, status == nfsv4.NFS4ERR_DELAY
	}
	err := p.rmdirOnOwner(ctx, p.target, p.caller)
	for try := 1; try < ownerTries && err != nil && !answered(err) && p.pause(ctx, ownerPause); try++ {
		err = p.rmdirOnOwner(ctx, p.target, p.caller)
	}
	switch {
	case err == nil || nfs.IsStatus(err, nfsv4.NFS4ERR_NOENT):
		return nfsv4.NFS4_OK, false
	case !answered(err):
		return p.status("rmdir "+p.onto.Path, err), true
	}
	status = p.status("rmdir "+p.onto.Path, err)
	if err := p.renameBack(ctx, p.old, p.onto.Rel); err != nil {
		return p.status("rename "+p.onto.Path+" back", err), true
	}
	return status, false
}

// onOneStorage reports whether a rename on the owner of one directory replaces the other.
func (s *Service) onOneStorage(old, target *internalv1.ShareDirectory) bool {
	from, to := tree.NewDirectory(old), tree.NewDirectory(target)
	server, ok := s.Tree.Server(from.Server)
	return from.Server == to.Server && from.Volume == to.Volume || ok && server.SharedStorage
}

// renameBack gives a directory its old name again on its owner.
func (s *Service) renameBack(ctx context.Context, old *internalv1.ShareDirectory, from string) error {
	r := tree.NewDirectory(old)
	address, err := s.address(r.Server)
	if err != nil {
		return err
	}
	return s.Owners.Rename(ctx, address, tree.ExportPath(r.Share, r.Volume, from), tree.ExportPath(r.Share, r.Volume, r.Path), root)
}

// giveUp unlocks both directories. Neither has changed.
func (p *replacement) giveUp(ctx context.Context) {
	p.unlock(ctx, p.target)
	p.unlock(ctx, p.old)
}

// takeOver gives the ShareDirectory of the new name to the directory that was renamed, or, above the depth, is about to be.
func (s *Service) takeOver(ctx context.Context, share *tree.Share, old, target *internalv1.ShareDirectory) error {
	successor := s.newDirectory(share, target.Spec.Path, newMark(), renamedSpec(old))
	next := target.DeepCopy()
	next.Labels, next.Annotations, next.Spec = successor.Labels, successor.Annotations, successor.Spec
	if err := s.Client.Update(ctx, next); err != nil {
		return fmt.Errorf("give the ShareDirectory of %s of share %s to %s: %w", target.Spec.Path, share.Name, old.Spec.Path, err)
	}
	*target = *next
	s.Tree.SetDirectory(target)
	return nil
}

// inTheWay is the answer to a RENAME whose target can't be removed. If it is not empty, that is NFS4ERR_EXIST (RFC 8881
// section 18.26.3).
func inTheWay(status nfsv4.Nfsstat4) nfsv4.Nfsstat4 {
	if status == nfsv4.NFS4ERR_NOTEMPTY {
		return nfsv4.NFS4ERR_EXIST
	}
	return status
}

// completeReplacement finishes or undoes a rename onto an empty directory, which is there still. What has taken its place is completed like any rename.
func (k *Leader) completeReplacement(ctx context.Context, share *tree.Share, target *internalv1.ShareDirectory) error {
	old, err := k.get(ctx, share.Name, target.Status.ReplacedBy.Path)
	switch {
	case apierrors.IsNotFound(err), err == nil && !areOneReplacement(old, target):
		return k.keepReplaced(ctx, target)
	case err != nil:
		return err
	}
	if old.Spec.DataServerRef.Name != "" {
		r := tree.NewDirectory(old)
		oldThere, err := k.exists(ctx, r.Server, r.Volume, share.Name, r.Path)
		if err != nil {
			return err
		}
		newThere, err := k.exists(ctx, r.Server, r.Volume, share.Name, target.Spec.Path)
		switch {
		case err != nil:
			return err
		case !oldThere && !newThere:
			return k.keepReplaced(ctx, target) // What becomes of the other is found out next.
		case !oldThere && (k.onOneStorage(old, target) || k.isKnownGone(ctx, target)):
			if err := k.takeOver(ctx, share, old, target); err != nil {
				return err
			}
			return k.completeRenaming(ctx, share, target)
		case !oldThere:
			// It was refused, or it is not known whether it was removed: clients need the other one.
			if err := k.renameBack(ctx, old, target.Spec.Path); err != nil {
				return err
			}
		}
	}
	if err := k.setState(ctx, old, internalv1.DirectoryReady); err != nil {
		return err
	}
	return k.keepReplaced(ctx, target)
}

// areOneReplacement reports whether two ShareDirectories are locked for the same rename.
func areOneReplacement(old, target *internalv1.ShareDirectory) bool {
	return old.State() == internalv1.DirectoryRemoving && old.Status.Replaces == target.Spec.Path && target.State() == internalv1.DirectoryRemoving &&
		target.Status.ReplacedBy == internalv1.DirectoryReplacement{Path: old.Spec.Path, Identity: renamedSpec(old).Identity}
}

// isKnownGone reports whether a directory's owner says that it does not have it.
func (k *Leader) isKnownGone(ctx context.Context, o *internalv1.ShareDirectory) bool {
	gone, err := k.isGone(ctx, tree.NewDirectory(o))
	return err == nil && gone
}

// keepReplaced unlocks a directory that was not replaced. It was locked, so only the rename can have removed it: it is made again.
func (k *Leader) keepReplaced(ctx context.Context, target *internalv1.ShareDirectory) error {
	r := tree.NewDirectory(target)
	if r.Server == "" {
		return k.setState(ctx, target, internalv1.DirectoryReady)
	}
	server, ok := k.Tree.Server(r.Server)
	if !ok || server.Address == "" || !server.Serves[r.Share] {
		return nil // ServerChanged is called when it serves the share.
	}
	share, ok := k.Tree.Share(r.Share)
	if !ok {
		return nil // ShareChanged is called when it is shown.
	}
	gone, err := k.isGone(ctx, r)
	if err == nil && gone {
		var elsewhere bool
		if elsewhere, err = k.isElsewhere(ctx, share, target); elsewhere {
			return k.setState(ctx, target, internalv1.DirectoryMissing)
		}
	}
	switch {
	case err != nil:
		return err
	case gone:
		return k.setState(ctx, target, internalv1.DirectoryCreating)
	}
	return k.setState(ctx, target, internalv1.DirectoryReady)
}

// isReplacing reports whether a locked directory is being renamed onto another one. The end of that decides about both.
func (k *Leader) isReplacing(ctx context.Context, o *internalv1.ShareDirectory) (bool, error) {
	if o.Status.Replaces == "" {
		return false, nil
	}
	target, err := k.get(ctx, o.Spec.FileShareRef.Name, o.Status.Replaces)
	switch {
	case apierrors.IsNotFound(err):
		return false, nil
	case err != nil:
		return false, err
	}
	hasTaken := target.State() == internalv1.DirectoryRenaming && target.Spec.Identity == renamedSpec(o).Identity
	return hasTaken || areOneReplacement(o, target), nil
}
