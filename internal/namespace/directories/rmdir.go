package directories

import (
	"context"
	"strings"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/internal/namespace/tree"
	nfs "github.com/howdah/howdah/internal/nfs4/client"
)

// Rmdir implements operations.Mutator. It sets the ShareDirectory to Removing, removes the directory on the owner with
// the caller's credentials, and deletes the ShareDirectory. If the owner refuses, the ShareDirectory becomes Ready
// again.
func (s *Service) Rmdir(ctx context.Context, entry tree.Entry, caller tree.Credentials) nfsv4.Nfsstat4 {
	ctx, done, ok := s.begin(ctx)
	if !ok {
		return nfsv4.NFS4ERR_DELAY
	}
	defer done()
	return s.rmdir(ctx, entry, caller)
}

// Removed implements operations.Mutator.
func (s *Service) Removed(parent tree.Entry, name string) bool {
	return s.attempts.take(removeKey(parent.Share.Name, strings.TrimPrefix(parent.Rel+"/"+name, "/"))) != ""
}

// rmdir removes a directory. If that got no answer at first and the leader has finished it since, it is done, too.
func (s *Service) rmdir(ctx context.Context, entry tree.Entry, caller tree.Credentials) nfsv4.Nfsstat4 {
	status := s.remove(ctx, entry, caller)
	if status == nfsv4.NFS4ERR_DELAY {
		return status
	}
	begun := s.attempts.take(removeKey(entry.Share.Name, entry.Rel))
	if status == nfsv4.NFS4ERR_NOENT && entry.Directory != nil && strings.HasPrefix(begun, entry.Directory.UID+" ") {
		return nfsv4.NFS4_OK
	}
	return status
}

func (s *Service) remove(ctx context.Context, entry tree.Entry, caller tree.Credentials) nfsv4.Nfsstat4 {
	if !entry.Junction() {
		return s.rmdirPlain(ctx, entry)
	}
	directory, status := s.lock(ctx, &entry, internalv1.DirectoryRemoving)
	if status != nfsv4.NFS4_OK {
		return status
	}
	err := s.rmdirOnOwner(ctx, directory, caller)
	for try := 1; try < ownerTries && err != nil && !answered(err) && s.pause(ctx, ownerPause); try++ {
		err = s.rmdirOnOwner(ctx, directory, caller)
	}
	if err != nil && !nfs.IsStatus(err, nfsv4.NFS4ERR_NOENT) {
		if !answered(err) {
			// It is not known whether it was removed. The client repeats the request, or the leader checks.
			s.rememberRemoval(directory)
		} else {
			if err := s.setState(ctx, directory, internalv1.DirectoryReady); err != nil {
				s.Log.Warn("a removal that was refused is left to the leader", "path", entry.Path, "error", err)
			}
		}
		return s.status("rmdir "+entry.Path, err)
	}
	s.emptying(ctx, &entry)
	if err := s.drop(ctx, directory); err != nil {
		s.rememberRemoval(directory)
		return s.status("rmdir "+entry.Path, err)
	}
	return nfsv4.NFS4_OK
}

// rmdirOnOwner removes a directory on the data server that the API names. The tree may be older, and name another one, on which a
// directory of that name was before.
func (s *Service) rmdirOnOwner(ctx context.Context, directory *internalv1.ShareDirectory, caller tree.Credentials) error {
	r := tree.NewDirectory(directory)
	address, err := s.address(r.Server)
	if err != nil {
		return err
	}
	return s.Owners.Rmdir(ctx, address, tree.ExportPath(r.Share, r.Volume, r.Path), credentials(caller))
}

// lock writes the first state of a removal. If another change is in progress, the client must try again.
func (s *Service) lock(ctx context.Context, entry *tree.Entry, state internalv1.DirectoryState) (*internalv1.ShareDirectory, nfsv4.Nfsstat4) {
	directory, err := s.get(ctx, entry.Share.Name, entry.Directory.Path)
	switch {
	case apierrors.IsNotFound(err):
		s.Tree.DeleteDirectory(entry.Share.Name, entry.Directory.Path, entry.Directory.UID)
		return nil, nfsv4.NFS4ERR_NOENT
	case err != nil:
		return nil, s.status("read the ShareDirectory of "+entry.Path, err)
	case !s.isAsJudged(entry):
		return nil, nfsv4.NFS4ERR_DELAY
	case directory.State() == state && s.attempts.of(removeKey(entry.Share.Name, entry.Rel)) == removalOf(directory):
		if err := s.hold(ctx, directory); err != nil {
			return nil, s.status("go on with a change of "+entry.Path, err)
		}
		return directory, nfsv4.NFS4_OK
	case directory.State() == internalv1.DirectoryMissing && state == internalv1.DirectoryRemoving:
		// A client that may remove it gives it up. The owner confirms that it does not have it.
	case directory.State() != internalv1.DirectoryReady:
		return nil, nfsv4.NFS4ERR_DELAY
	}
	if owner := directory.Spec.DataServerRef.Name; owner != "" {
		if _, err := s.address(owner); err != nil {
			return nil, s.status("begin a change of "+entry.Path, err)
		}
	}
	if err := s.setState(ctx, directory, state); err != nil {
		return nil, s.status("begin a change of "+entry.Path, err)
	}
	return directory, nfsv4.NFS4_OK
}

// isAsJudged reports whether an entry is the one that the caller's permissions were judged by. One that another server has made in its place, or given
// another owner, the tree has by now.
func (s *Service) isAsJudged(entry *tree.Entry) bool {
	now, ok := s.Tree.Get(entry.ID)
	return ok && now.Path == entry.Path && now.Owner == entry.Owner
}

// rmdirPlain removes a directory above the depth. Its copies on the owners, from earlier directories below it, are
// removed too.
func (s *Service) rmdirPlain(ctx context.Context, entry tree.Entry) nfsv4.Nfsstat4 {
	if entry.Entries > 0 {
		return s.notEmpty(ctx, &entry)
	}
	if entry.Directory == nil { // implied by directories below it, and removed with them
		return nfsv4.NFS4ERR_DELAY
	}
	uid := types.UID(entry.Directory.UID)
	heard := s.listen(uid)
	directory, status := s.lock(ctx, &entry, internalv1.DirectoryRemoving)
	if status != nfsv4.NFS4_OK {
		s.unlisten(heard, uid)
		return status
	}
	// From here on others make nothing in it (inPlace). What they made before the tree has then.
	switch status = nfsv4.NFS4ERR_DELAY; {
	case !s.await(ctx, heard, directory):
	case s.Tree.Below(entry.Share.Name, directory.Spec.Path) && !s.shows(&entry):
		// What is in it is being made, and may be taken back.
	default:
		status = s.emptied(ctx, entry.Share, directory.Spec.Path)
	}
	if status != nfsv4.NFS4_OK {
		if err := s.setState(ctx, directory, internalv1.DirectoryReady); err != nil {
			s.Log.Warn("a removal that was refused is left to the leader", "path", entry.Path, "error", err)
		}
		return status
	}
	s.emptying(ctx, &entry)
	if err := s.drop(ctx, directory); err != nil {
		s.rememberRemoval(directory)
		return s.status("rmdir "+entry.Path, err)
	}
	return nfsv4.NFS4_OK
}

// shows reports whether a directory above the depth has directories that clients see.
func (s *Service) shows(entry *tree.Entry) bool {
	now, ok := s.Tree.Get(entry.ID)
	return ok && now.Entries > 0
}

// emptied removes a directory above the share's depth from all owners. It returns NFS4ERR_NOTEMPTY if something is
// below. Owners that do not answer keep an empty directory, which is harmless: if another one of the name is made, it gets its owner and mode (checkCopy).
func (s *Service) emptied(ctx context.Context, share *tree.Share, rel string) nfsv4.Nfsstat4 {
	if s.Tree.Below(share.Name, rel) {
		return nfsv4.NFS4ERR_NOTEMPTY
	}
	for _, server := range s.Tree.Servers() {
		if server.Address == "" || !server.Serves[share.Name] || s.Reachable != nil && !s.Reachable(server.Name) {
			continue
		}
		for volume := range server.Volumes {
			err := s.Owners.Rmdir(ctx, server.Address, tree.ExportPath(share.Name, volume, rel), root)
			switch {
			case nfs.IsStatus(err, nfsv4.NFS4ERR_NOTEMPTY):
				return nfsv4.NFS4ERR_NOTEMPTY
			case err != nil && !nfs.IsStatus(err, nfsv4.NFS4ERR_NOENT):
				s.Log.Info("an empty directory stays on an owner", "server", server.Name, "share", share.Name, "path", rel, "error", err)
			}
		}
	}
	return nfsv4.NFS4_OK
}
