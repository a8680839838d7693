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
// record takes the new path (Renaming, with the old path), the owner renames, the old
// record goes, the new one becomes Ready. In this order a crash at any point can be told
// from what the owner has.
func (s *Service) Rename(ctx context.Context, entry, parent tree.Entry, name string, caller tree.Credentials) nfsv4.Nfsstat4 {
	ctx, done, ok := s.begin(ctx)
	if !ok {
		return nfsv4.NFS4ERR_DELAY
	}
	defer done()
	old, err := s.get(ctx, entry.Share.Name, entry.Rel)
	switch {
	case apierrors.IsNotFound(err) && entry.Record != nil:
		s.Tree.DeleteDirectory(entry.Share.Name, entry.Record.Path, entry.Record.UID)
		return nfsv4.NFS4ERR_NOENT
	case apierrors.IsNotFound(err):
		return nfsv4.NFS4ERR_PERM // an implied directory has no record to rename
	case err != nil:
		return s.status("rename "+entry.Path, err)
	case old.State() != internalv1.DirectoryReady || entry.Junction() && entry.Target.Address == "":
		return nfsv4.NFS4ERR_DELAY
	}
	spec := old.Spec
	spec.RenamedFrom, spec.Removal = old.Spec.Path, ""
	if spec.Identity == "" {
		spec.Identity = string(old.UID)
	}
	rel := strings.TrimPrefix(parent.Rel+"/"+name, "/")
	next, status := s.claim(ctx, entry.Share, rel, spec)
	if status != nfsv4.NFS4_OK {
		return status
	}
	if entry.Junction() {
		status = s.renameOnOwner(ctx, &entry, rel, credentials(caller))
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
	s.emptying(ctx, &entry)
	// What is in it did not change: it keeps its time.
	next.Status.ModifiedTime, next.Status.ChangedTime = ptr.To(metav1.NewMicroTime(entry.Modified.UTC())), ptr.To(metav1.NewMicroTime(s.Clock.Now().UTC()))
	next.Status.AccessedTime = old.Status.AccessedTime
	if err := s.drop(ctx, old); err != nil {
		return s.status("rename "+entry.Path, err)
	}
	if err := s.finish(ctx, next); err != nil {
		return s.status("rename "+entry.Path, err)
	}
	return nfsv4.NFS4_OK
}

// renameOnOwner renames a directory where it is.
func (s *Service) renameOnOwner(ctx context.Context, entry *tree.Entry, rel string, creds nfs.Credentials) nfsv4.Nfsstat4 {
	t := entry.Target
	if slash := strings.LastIndexByte(rel, '/'); slash >= 0 {
		if err := s.makeParents(ctx, t.Address, entry.Share, t.Volume, rel[:slash]); err != nil {
			return s.status("rename "+entry.Path, err)
		}
	}
	path := tree.ExportPath(entry.Share.Name, t.Volume, rel)
	err := s.Owners.Rename(ctx, t.Address, t.Path, path, creds)
	var status *nfs.StatusError
	if errors.As(err, &status) && status.Retried {
		// The reply of an earlier try was lost: the directory may have its new name already.
		if _, statErr := s.Owners.Stat(ctx, t.Address, path, root); statErr == nil {
			err = nil
		}
	}
	switch {
	case nfs.IsStatus(err, nfsv4.NFS4ERR_NOENT):
		return nfsv4.NFS4ERR_NOENT
	case err != nil:
		return s.status("rename "+entry.Path, err)
	}
	return nfsv4.NFS4_OK
}
