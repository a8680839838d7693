package directories

import (
	"context"
	"errors"
	"strings"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/internal/namespace/tree"
	nfs "github.com/howdah/howdah/internal/nfs4/client"
)

// Rename implements operations.Mutator. A distributed directory stays on its owner: a new
// ShareDirectory takes the new path (Renaming, with the old path), the owner renames, the old
// ShareDirectory goes, the new one becomes Ready. In this order a crash at any point can be told
// from what the owner has.
func (s *Service) Rename(ctx context.Context, entry, parent tree.Entry, name string, caller tree.Credentials) nfsv4.Nfsstat4 {
	ctx, done, ok := s.begin(ctx)
	if !ok {
		return nfsv4.NFS4ERR_DELAY
	}
	defer done()
	if !entry.Share.Inventoried {
		return nfsv4.NFS4ERR_DELAY // A data server may have a directory of the new name.
	}
	old, err := s.get(ctx, entry.Share.Name, entry.Rel)
	switch {
	case apierrors.IsNotFound(err) && entry.Directory != nil:
		s.Tree.DeleteDirectory(entry.Share.Name, entry.Directory.Path, entry.Directory.UID)
		return nfsv4.NFS4ERR_NOENT
	case apierrors.IsNotFound(err):
		return nfsv4.NFS4ERR_PERM // an implied directory has no ShareDirectory to rename
	case err != nil:
		return s.status("rename "+entry.Path, err)
	case old.State() != internalv1.DirectoryReady || entry.Junction() && entry.Target.Address == "":
		return nfsv4.NFS4ERR_DELAY
	}
	rel := strings.TrimPrefix(parent.Rel+"/"+name, "/")
	if target, ok := s.Tree.Lookup(parent.ID, name); ok && target.Directory != nil {
		// rename(2) replaces an empty directory. Here that takes two steps, and a crash between them leaves the name free.
		if status := s.rmdir(ctx, target, caller); status != nfsv4.NFS4_OK && status != nfsv4.NFS4ERR_NOENT {
			return inTheWay(status)
		}
	}
	if !entry.Junction() && s.Tree.Below(entry.Share.Name, entry.Rel) {
		return s.moveTree(ctx, &entry, rel)
	}
	next, status := s.claim(ctx, entry.Share, rel, renamedSpec(old))
	if status != nfsv4.NFS4_OK {
		return status
	}
	if entry.Junction() {
		status = s.renameOnOwner(ctx, entry.Share, entry.Directory, rel, credentials(caller))
	} else {
		status = s.emptied(ctx, entry.Share, old.Spec.Path)
	}
	switch status {
	case nfsv4.NFS4_OK:
	case nfsv4.NFS4ERR_DELAY: // nobody knows whether it was renamed: the keeper looks
		return status
	default:
		if err := s.drop(ctx, next); err != nil {
			s.Log.Warn("a rename that was refused is left to the keeper", "path", entry.Path, "error", err)
		}
		return status
	}
	if err := s.endRename(ctx, old, next, &entry); err != nil {
		return s.status("rename "+entry.Path, err)
	}
	return nfsv4.NFS4_OK
}

// inTheWay is what a RENAME answers when what has the name can't be removed: that it is not empty is NFS4ERR_EXIST
// (RFC 8881 section 18.26.3).
func inTheWay(status nfsv4.Nfsstat4) nfsv4.Nfsstat4 {
	if status == nfsv4.NFS4ERR_NOTEMPTY {
		return nfsv4.NFS4ERR_EXIST
	}
	return status
}

// renamedSpec is the spec of a ShareDirectory's successor under another path. The directory stays the same: so does its identity.
func renamedSpec(old *internalv1.ShareDirectory) internalv1.ShareDirectorySpec {
	spec := old.Spec
	spec.RenamedFrom, spec.Removal = old.Spec.Path, ""
	if spec.Identity == "" {
		spec.Identity = string(old.UID)
	}
	return spec
}

// endRename drops the old ShareDirectory and makes the new one ready. was is the directory under its old name: what is in it did not
// change, so it keeps its time.
func (s *Service) endRename(ctx context.Context, old, next *internalv1.ShareDirectory, was *tree.Entry) error {
	s.emptying(ctx, was)
	next.Status.ModifiedTime = ptr.To(metav1.NewMicroTime(was.Modified.UTC()))
	next.Status.ChangedTime = ptr.To(metav1.NewMicroTime(s.Clock.Now().UTC()))
	next.Status.AccessedTime = old.Status.AccessedTime
	if err := s.drop(ctx, old); err != nil {
		return err
	}
	return s.finish(ctx, next)
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
	err = s.Owners.Rename(ctx, address, tree.ExportPath(share.Name, r.Volume, r.Path), path, creds)
	var status *nfs.StatusError
	if errors.As(err, &status) && (status.Retried || status.Status == nfsv4.NFS4ERR_NOENT) {
		// An earlier try, of which nobody heard, may have renamed it already.
		if _, statErr := s.Owners.Stat(ctx, address, path, root); statErr == nil {
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
