package directories

import (
	"context"
	"errors"
	"strings"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/internal/namespace/tree"
	nfs "github.com/howdah/howdah/internal/nfs4/client"
)

// Rename implements operations.Mutator. A distributed directory stays on its owner. The steps are: lock the
// ShareDirectory (Removing); create one for the new path (Renaming, with the old path); rename on the owner; delete the
// old ShareDirectory; set the new one to Ready. In this order, after a crash at any point the owner's directories show
// the state, and each ShareDirectory is completed on its own: if its path exists it becomes Ready, otherwise it is
// deleted.
func (s *Service) Rename(ctx context.Context, entry, parent tree.Entry, name string, caller tree.Credentials) nfsv4.Nfsstat4 {
	ctx, done, ok := s.begin(ctx)
	if !ok {
		return nfsv4.NFS4ERR_DELAY
	}
	defer done()
	if !entry.Share.Inventoried {
		return nfsv4.NFS4ERR_DELAY // A data server may have a directory of the new name.
	}
	rel := strings.TrimPrefix(parent.Rel+"/"+name, "/")
	key := renameKey(entry.Share.Name, entry.Rel, rel)
	old, err := s.get(ctx, entry.Share.Name, entry.Rel)
	switch {
	case apierrors.IsNotFound(err) && entry.Directory != nil:
		s.Tree.DeleteDirectory(entry.Share.Name, entry.Directory.Path, entry.Directory.UID)
		return s.renamed(ctx, entry.Share, entry.Rel, rel)
	case apierrors.IsNotFound(err):
		return nfsv4.NFS4ERR_PERM // an implied directory has no ShareDirectory to rename
	case err != nil:
		return s.status("rename "+entry.Path, err)
	case entry.Junction() && entry.Target.Address == "", !s.isAsJudged(&entry):
		return nfsv4.NFS4ERR_DELAY
	}
	if s.attempts.of(key) != renamedSpec(old).Identity {
		s.attempts.take(key) // It was for another directory, that had the name before.
	}
	if parent.Rel != "" && s.leaving(entry.Share, parent.Rel) {
		return nfsv4.NFS4ERR_DELAY
	}
	resumes := s.attempts.has(key)
	if r, ok := s.Tree.Directory(entry.Share.Name, rel); !resumes && (old.State() != internalv1.DirectoryReady || ok && !r.Shown()) {
		return nfsv4.NFS4ERR_DELAY // one of the names is being changed
	}
	var begun bool
	status := s.mayMove(ctx, &entry, rel)
	switch {
	case status == nfsv4.NFS4ERR_DELAY && resumes:
		s.attempts.put(key, renamedSpec(old).Identity, s.Clock.Now())
		return status
	case status != nfsv4.NFS4_OK && !resumes:
		return status
	}
	for range replaceTries {
		// rename(2) replaces an empty directory.
		replacing := false
		if target, ok := s.Tree.Lookup(parent.ID, name); ok && target.Directory != nil && target.Directory.Shown() {
			replacing, status, begun = s.replace(ctx, &entry, &target, caller)
		}
		if replacing {
			break
		}
		if entry.Junction() {
			status, begun = s.move(ctx, entry.Share, entry.Rel, rel, credentials(caller))
		} else {
			status, begun = s.moveTree(ctx, &entry, rel)
		}
		if status != nfsv4.NFS4ERR_EXIST {
			break
		}
		// Another client made a directory of the new name meanwhile. It is replaced, too, if it is empty.
		if status = s.inTheWayNow(ctx, entry.Share, rel); status == nfsv4.NFS4ERR_DELAY {
			break
		}
	}
	if status == nfsv4.NFS4ERR_DELAY && (begun || resumes) {
		// It is not known whether it was renamed. The client repeats the request, or the leader checks.
		s.attempts.put(key, renamedSpec(old).Identity, s.Clock.Now())
	}
	if status != nfsv4.NFS4ERR_DELAY {
		s.attempts.take(key)
	}
	return status
}

// Renamed implements operations.Mutator.
func (s *Service) Renamed(ctx context.Context, parent tree.Entry, name string, to tree.Entry, toName string) nfsv4.Nfsstat4 {
	ctx, done, ok := s.begin(ctx)
	if !ok {
		return nfsv4.NFS4ERR_DELAY
	}
	defer done()
	return s.renamed(ctx, parent.Share, strings.TrimPrefix(parent.Rel+"/"+name, "/"), strings.TrimPrefix(to.Rel+"/"+toName, "/"))
}

// renamed is the status of a rename whose source is gone: it got no answer at first, and was made, maybe by the leader.
func (s *Service) renamed(ctx context.Context, share *tree.Share, from, to string) nfsv4.Nfsstat4 {
	key := renameKey(share.Name, from, to)
	identity := s.attempts.of(key)
	if identity == "" {
		return nfsv4.NFS4ERR_NOENT
	}
	status := s.moved(ctx, share, from, to, identity)
	if status != nfsv4.NFS4ERR_DELAY {
		s.attempts.take(key)
	}
	return status
}

// replaceTries is how often a rename looks for a directory of the new name that others make meanwhile.
const replaceTries = 3

// inTheWayNow puts what has a name into the tree. NFS4ERR_DELAY: it is being changed.
func (s *Service) inTheWayNow(ctx context.Context, share *tree.Share, rel string) nfsv4.Nfsstat4 {
	o, err := s.get(ctx, share.Name, rel)
	switch {
	case err != nil && !apierrors.IsNotFound(err):
		return s.status("rename to "+rel, err)
	case err == nil && o.State() != internalv1.DirectoryReady:
		return nfsv4.NFS4ERR_DELAY
	}
	return nfsv4.NFS4ERR_EXIST
}

// renamedSpec is the spec of a ShareDirectory's successor under another path. The directory stays the same: so does its identity.
func renamedSpec(old *internalv1.ShareDirectory) internalv1.ShareDirectorySpec {
	spec := old.Spec
	spec.RenamedFrom, spec.Removal = old.Spec.Path, ""
	spec.Move = internalv1.DirectoryMove{} // It is asked for again, under the new name.
	if spec.Identity == "" {
		spec.Identity = string(old.UID)
	}
	return spec
}

// endRename deletes the old ShareDirectory and sets the new one to Ready. was is the directory under its old name. Its
// content did not change, so it keeps its modification time.
func (s *Service) endRename(ctx context.Context, old, next *internalv1.ShareDirectory, was *tree.Entry) error {
	s.emptying(ctx, was)
	next.Status.ModifiedTime = tree.FormatTime(was.Modified)
	next.Status.ChangedTime = tree.FormatTime(latest(s.Clock.Now(), was.Changed))
	next.Status.AccessedTime = old.Status.AccessedTime
	if err := s.drop(ctx, old); err != nil {
		return err
	}
	if err := s.finish(ctx, next); err != nil {
		// From here on there is no way back: clients can see the new name.
		s.Log.Warn("the end of a rename is left to the leader", "share", next.Spec.FileShareRef.Name, "path", next.Spec.Path, "error", err)
	}
	return nil
}

// renameOnOwner renames a directory where it is.
func (s *Service) renameOnOwner(ctx context.Context, share *tree.Share, r *tree.Directory, rel string, creds nfs.Credentials) nfsv4.Nfsstat4 {
	what := "rename " + r.Path + " of share " + share.Name
	address, err := s.address(r.Server)
	if err != nil {
		return s.status(what, err)
	}
	if slash := strings.LastIndexByte(rel, '/'); slash >= 0 {
		if err := s.makeParents(ctx, address, share, r.Volume, rel[:slash]); err != nil {
			return s.status(what, err)
		}
	}
	path := tree.ExportPath(share.Name, r.Volume, rel)
	rename := func() error {
		return s.Owners.Rename(ctx, address, tree.ExportPath(share.Name, r.Volume, r.Path), path, creds)
	}
	err = rename()
	for try := 1; try < ownerTries && err != nil && !answered(err) && s.pause(ctx, ownerPause); try++ {
		err = rename()
	}
	var status *nfs.StatusError
	if errors.As(err, &status) && (status.Retried || status.Status == nfsv4.NFS4ERR_NOENT) {
		// An earlier try, whose answer was lost, may have renamed it already. What has the new name may also be what it was to replace.
		_, newErr := s.Owners.Stat(ctx, address, path, root)
		_, oldErr := s.Owners.Stat(ctx, address, tree.ExportPath(share.Name, r.Volume, r.Path), root)
		switch {
		case newErr != nil && !nfs.IsStatus(newErr, nfsv4.NFS4ERR_NOENT):
			return s.status(what, newErr) // it is not known
		case oldErr != nil && !nfs.IsStatus(oldErr, nfsv4.NFS4ERR_NOENT):
			return s.status(what, oldErr)
		case newErr == nil && nfs.IsStatus(oldErr, nfsv4.NFS4ERR_NOENT):
			err = nil
		}
	}
	switch {
	case nfs.IsStatus(err, nfsv4.NFS4ERR_NOENT):
		return nfsv4.NFS4ERR_NOENT
	case err != nil:
		return s.status(what, err)
	}
	return nfsv4.NFS4_OK
}
