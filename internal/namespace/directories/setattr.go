package directories

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/internal/namespace/tree"
	nfs "github.com/howdah/howdah/internal/nfs4/client"
	"github.com/howdah/howdah/internal/sameobject"
)

// SetAttributes implements operations.Mutator. Owner, group and mode of a directory above the depth are in its
// ShareDirectory's spec, times in its status. Data servers with directories below it have a copy of the directory,
// whose permissions they check; they get the same attributes. The ShareDirectory is written first, so that the leader
// can update data servers that can't be reached now.
func (s *Service) SetAttributes(ctx context.Context, entry tree.Entry, settings tree.Settings, caller tree.Credentials) nfsv4.Nfsstat4 {
	ctx, done, ok := s.begin(ctx)
	if !ok {
		return nfsv4.NFS4ERR_DELAY
	}
	defer done()
	now, ok := s.Tree.Get(entry.ID)
	if !ok {
		return nfsv4.NFS4ERR_STALE
	}
	if now.Junction() {
		return s.setOnOwner(ctx, now, settings, caller)
	}
	directory, status := s.directoryOf(ctx, &now)
	if status != nfsv4.NFS4_OK {
		return status
	}
	// The caller's permissions were checked with the entry's earlier attributes.
	now, ok = s.Tree.Get(entry.ID)
	switch {
	case !ok:
		return nfsv4.NFS4ERR_STALE
	case now.Owner != entry.Owner || now.Group != entry.Group || now.Mode != entry.Mode:
		return nfsv4.NFS4ERR_DELAY
	}
	began := s.Clock.Now()
	copies, err := s.setBefore(ctx, &now, directory, settings)
	if err == nil {
		err = s.setTimes(ctx, entry.ID, directory, copies, s.timesSet(settings, began))
	}
	if err != nil {
		return s.status("set attributes of "+entry.Path, err)
	}
	return nfsv4.NFS4_OK
}

// setBefore sets owner, group and mode. copies is the generation of the ShareDirectory that all copies have; nil if it is not known.
//
// Unless the client sets the time of modification, it writes something in any case, and waits until the watch has delivered that. From then on the tree has what
// others made in the directory before. They have modified it, and would not count beside the time of this change.
func (s *Service) setBefore(ctx context.Context, entry *tree.Entry, directory *internalv1.ShareDirectory, settings tree.Settings) (copies *int64, err error) {
	before, heard := directory.ResourceVersion, s.listen(directory.UID)
	if settings.Permissions() {
		copies, err = s.setPermissions(ctx, entry, directory, settings)
	}
	if err == nil && settings.Modify == nil && directory.ResourceVersion == before {
		err = s.mark(ctx, directory, tree.TouchedAnnotation)
	}
	if err != nil || settings.Modify != nil {
		s.unlisten(heard, directory.UID)
	} else if !s.await(ctx, heard, directory) {
		s.Log.Info("a directory's time of modification may be too early: the watch is late", "path", entry.Path)
	}
	return copies, err
}

// directoryOf is the ShareDirectory of a directory above the depth. It is created if there is none.
func (s *Service) directoryOf(ctx context.Context, entry *tree.Entry) (*internalv1.ShareDirectory, nfsv4.Nfsstat4) {
	rel := entry.Rel
	if rel == "" {
		rel = tree.RootPath
	}
	directory, err := s.get(ctx, entry.Share.Name, rel)
	if apierrors.IsNotFound(err) && entry.Directory != nil && (rel != tree.RootPath || entry.Distributed()) {
		s.Tree.DeleteDirectory(entry.Share.Name, entry.Directory.Path, entry.Directory.UID)
		return nil, nfsv4.NFS4ERR_STALE
	}
	if apierrors.IsNotFound(err) {
		spec := internalv1.ShareDirectorySpec{UID: ptr.To(int64(entry.Owner)), GID: ptr.To(int64(entry.Group)), Mode: tree.FormatMode(entry.Mode)}
		if rel == tree.RootPath {
			spec.ShareAttributes = shareAttributes(entry.Share)
		}
		var status nfsv4.Nfsstat4
		if directory, status = s.claim(ctx, entry.Share, rel, spec); status != nfsv4.NFS4_OK {
			return nil, nfsv4.NFS4ERR_DELAY
		}
		if rel != tree.RootPath {
			// The ShareDirectory changes the directory's handle, so the client must look it up again.
			return nil, nfsv4.NFS4ERR_DELAY
		}
		return directory, nfsv4.NFS4_OK
	}
	switch {
	case err != nil:
		return nil, s.status("read the ShareDirectory of "+entry.Path, err)
	case directory.State() != internalv1.DirectoryReady:
		return nil, nfsv4.NFS4ERR_DELAY
	}
	return directory, nfsv4.NFS4_OK
}

// shareAttributes are the attributes of the root in a share's spec.
func shareAttributes(share *tree.Share) internalv1.ShareAttributes {
	return internalv1.ShareAttributes{
		UID: ptr.To(int64(share.Owner)), GID: ptr.To(int64(share.Group)), Mode: tree.FormatMode(share.Mode),
	}
}

// setPermissions writes owner, group and mode, and updates the data servers. It returns the generation of the
// ShareDirectory that all of them have; nil if some could not be reached.
func (s *Service) setPermissions(ctx context.Context, entry *tree.Entry, directory *internalv1.ShareDirectory, settings tree.Settings) (*int64, error) {
	next := directory.DeepCopy()
	next.Spec.UID, next.Spec.GID = ptr.To(int64(ptr.Deref(settings.Owner, entry.Owner))), ptr.To(int64(ptr.Deref(settings.Group, entry.Group)))
	next.Spec.Mode = tree.FormatMode(ptr.Deref(settings.Mode, entry.Mode))
	if next.Spec.Path == tree.RootPath {
		next.Spec.ShareAttributes = shareAttributes(entry.Share)
	}
	if err := s.Client.Update(ctx, next); err != nil {
		return nil, fmt.Errorf("set owner and mode of %s: %w", entry.Path, err)
	}
	*directory = *next
	s.Tree.SetDirectory(directory)
	all, err := s.updateCopies(ctx, entry.Share, directory)
	if err != nil {
		s.Log.Info("owner and mode of a directory are not set on all data servers; the leader does it later", "path", entry.Path, "error", err)
	}
	if err != nil || !all {
		return nil, nil
	}
	return ptr.To(directory.Generation), nil
}

// times are the fields of a ShareDirectory's status that are to be written, by what the directory is now; nil: none.
type times func(now *tree.Entry) map[string]any

// timesSet are those that a client sets at a moment, and the time of the change. That time never goes back, even if clocks do.
func (s *Service) timesSet(settings tree.Settings, at time.Time) times {
	return func(now *tree.Entry) map[string]any {
		changed, modified := latest(at, now.Changed), now.Modified
		if settings.Modify == nil {
			// A client may have made or renamed a directory whose ShareDirectory is not Ready yet (finishBehind, endRename).
			modified = latest(modified, s.Tree.NewestUnfinished(now))
		}
		set := map[string]any{"changedTime": tree.FormatTime(changed), "modifiedTime": timeOf(settings.Modify, changed, modified)}
		if settings.Access != nil {
			set["accessedTime"] = timeOf(settings.Access, changed, now.Accessed)
		}
		return set
	}
}

// timesLeft are those of a directory from which something is removed at a moment. They are written at most once a second unless a time would go back.
func timesLeft(gone *tree.Entry, at time.Time) times {
	return func(now *tree.Entry) map[string]any {
		written := now.Directory != nil && !now.Directory.Modified.Before(at.Truncate(time.Second))
		older := gone.Directory != nil && gone.Directory.Created.Before(now.Modified)
		if written && older {
			return nil
		}
		changed, modified := latest(at, now.Changed), now.Modified
		if modified.Before(at) {
			modified = changed
		}
		return map[string]any{"changedTime": tree.FormatTime(changed), "modifiedTime": tree.FormatTime(modified)}
	}
}

// timeOf is a time that a client sets, as a ShareDirectory has it.
func timeOf(set *tree.TimeSetting, now, otherwise time.Time) string {
	switch {
	case set == nil:
		return tree.FormatTime(otherwise)
	case set.Now:
		return tree.FormatTime(now)
	}
	return tree.FormatTime(set.Time)
}

// timesTries is how often times are written that others change at the same moment. Then the client must try again.
const timesTries = 8

// setTimes writes times to the ShareDirectory as it was read. If another server has written to it since, that counts, so that no time goes back: it is read and
// written again. copies is the generation that all data servers have, nil if it is not known. They may have got what another server wrote to the ShareDirectory
// before this one's: then the leader sets them.
func (s *Service) setTimes(ctx context.Context, id tree.ID, directory *internalv1.ShareDirectory, copies *int64, what times) error {
	for try := 1; ; try++ {
		now, ok := s.Tree.Get(id)
		if !ok {
			return errChanged
		}
		set := what(&now)
		if set == nil {
			return nil
		}
		if copies != nil {
			set["observedGeneration"] = *copies
		}
		err := s.patchStatusAsRead(ctx, directory, set)
		if !apierrors.IsConflict(err) || try == timesTries {
			return err
		}
		other, readErr := s.get(ctx, directory.Spec.FileShareRef.Name, directory.Spec.Path)
		switch {
		case readErr != nil:
			return readErr
		case other.UID != directory.UID:
			return err
		}
		if try == 1 && copies != nil {
			copies = ptr.To(*copies - 1)
		}
		*directory = *other
	}
}

func latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// patchStatus sets fields of a directory's status, whatever else others write at the same time. If the directory was removed and made again
// meanwhile, the error is a conflict.
func (s *Service) patchStatus(ctx context.Context, directory *internalv1.ShareDirectory, set map[string]any) error {
	return s.patch(ctx, directory, func() error { return sameobject.PatchStatus(ctx, s.Client, directory, directory.UID, set) })
}

// patchStatusAsRead is patchStatus for a directory as it was read: if others wrote to its ShareDirectory since, the error is a conflict.
func (s *Service) patchStatusAsRead(ctx context.Context, directory *internalv1.ShareDirectory, set map[string]any) error {
	return s.patch(ctx, directory, func() error { return sameobject.PatchStatusAsRead(ctx, s.Client, directory, set) })
}

func (s *Service) patch(ctx context.Context, directory *internalv1.ShareDirectory, write func() error) error {
	if equality.Semantic.DeepEqual(directory.Status, internalv1.ShareDirectoryStatus{}) {
		// It was written by others, who can't write its status: what it is in has to be there first.
		if err := s.setState(ctx, directory, directory.State()); err != nil {
			return err
		}
	}
	if err := write(); err != nil {
		return fmt.Errorf("write the status of %s of share %s: %w", directory.Spec.Path, directory.Spec.FileShareRef.Name, err)
	}
	s.Tree.SetDirectory(directory)
	return nil
}

// emptying records in a directory that something is removed from it. Otherwise its modification time could go back, if
// the newest directory in it is removed. It is written before the removal.
func (s *Service) emptying(ctx context.Context, gone *tree.Entry) {
	dir, ok := s.Tree.Parent(gone.ID)
	if !ok || dir.Share == nil || dir.Directory == nil && dir.Rel != "" {
		return // it has no ShareDirectory, or is removed with its last entry
	}
	left := timesLeft(gone, s.Clock.Now())
	if left(&dir) == nil {
		return
	}
	directory, status := s.directoryOf(ctx, &dir)
	err := errors.New("it is being changed")
	if status == nfsv4.NFS4_OK {
		err = s.setTimes(ctx, dir.ID, directory, nil, left)
	}
	if err != nil {
		s.Log.Info("the time of a directory was not kept", "path", dir.Path, "error", err)
	}
}

// emptyingOf is emptying for the directory of a ShareDirectory.
func (s *Service) emptyingOf(ctx context.Context, share *tree.Share, r *tree.Directory) {
	if gone, ok := s.Tree.At(share.Path + "/" + r.Path); ok {
		s.emptying(ctx, &gone)
	}
}

// setOnOwner sets attributes of a distributed directory on its owner, with the caller's credentials. The ShareDirectory
// is updated too, because the client that made the directory sees its attributes until it enters the directory.
func (s *Service) setOnOwner(ctx context.Context, entry tree.Entry, settings tree.Settings, caller tree.Credentials) nfsv4.Nfsstat4 {
	if entry.Target.Address == "" {
		return nfsv4.NFS4ERR_DELAY
	}
	moment := func(t *tree.TimeSetting) *nfs.TimeSetting {
		if t == nil {
			return nil
		}
		return &nfs.TimeSetting{Now: t.Now, Time: t.Time}
	}
	err := s.Owners.SetAttributes(ctx, entry.Target.Address, entry.Target.Path, credentials(caller), nfs.Settings{
		Mode: settings.Mode, Owner: settings.Owner, Group: settings.Group, Access: moment(settings.Access), Modify: moment(settings.Modify),
	})
	if err != nil {
		return s.status("set attributes of "+entry.Path, err)
	}
	directory, status := s.directoryOf(ctx, &entry)
	if status == nfsv4.NFS4_OK && settings.Permissions() {
		s.adopt(ctx, entry.Target.Address, entry.Target.Path, directory)
	}
	if status == nfsv4.NFS4_OK {
		if err := s.setTimes(ctx, entry.ID, directory, nil, s.timesSet(settings, s.Clock.Now())); err != nil {
			s.Log.Info("what was set on a directory's owner is not shown before it is entered", "path", entry.Path, "error", err)
		}
	}
	return nfsv4.NFS4_OK
}
