package directories

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/internal/namespace/operations"
	"github.com/howdah/howdah/internal/namespace/tree"
	nfs "github.com/howdah/howdah/internal/nfs4/client"
	"github.com/howdah/howdah/internal/placement"
)

const (
	// settleFor is how long a mkdir waits for another mkdir of the same name, so that the client can look up the
	// directory when it gets NFS4ERR_EXIST.
	settleFor = 5 * time.Second
	// settlePause is the time between looks.
	settlePause = 25 * time.Millisecond
	// finishTries is how often the last write of a mkdir is tried; then the Leader does it.
	finishTries = 5
	finishPause = 200 * time.Millisecond
	// ownerTries is how often an owner is asked that does not answer; then the client must try again.
	ownerTries = 3
	ownerPause = 300 * time.Millisecond
)

// Mkdir implements operations.Mutator. At the share's depth the directory gets an owner by placement. Above the depth
// it is only a ShareDirectory.
func (s *Service) Mkdir(ctx context.Context, req operations.MkdirRequest) (tree.Entry, nfsv4.Nfsstat4) {
	ctx, done, ok := s.begin(ctx)
	if !ok {
		return tree.Entry{}, nfsv4.NFS4ERR_DELAY
	}
	defer done()
	began := s.Clock.Now()
	entry, status := s.mkdir(ctx, req)
	if s.Observe != nil {
		s.Observe(status, s.Clock.Since(began))
	}
	return entry, status
}

func (s *Service) mkdir(ctx context.Context, req operations.MkdirRequest) (tree.Entry, nfsv4.Nfsstat4) {
	share := req.Parent.Share
	rel := strings.TrimPrefix(req.Parent.Rel+"/"+req.Name, "/")
	spec := s.newSpec(req)
	var status nfsv4.Nfsstat4
	if isTooLong(rel) {
		return tree.Entry{}, nfsv4.NFS4ERR_NAMETOOLONG
	}
	if !share.Inventoried {
		return tree.Entry{}, nfsv4.NFS4ERR_DELAY // A data server may have a directory of this name.
	}
	if s.leaving(share, req.Parent.Rel) {
		return tree.Entry{}, nfsv4.NFS4ERR_DELAY
	}
	if status := s.hasRoom(ctx, share, rel); status != nfsv4.NFS4_OK {
		return tree.Entry{}, status
	}
	if tree.Depth(rel) < share.Depth {
		var directory *internalv1.ShareDirectory
		if directory, status = s.claim(ctx, share, rel, spec); status == nfsv4.NFS4_OK {
			status = s.settleInPlace(ctx, share, directory)
		}
	} else {
		status = s.mkdirOnOwner(ctx, req, rel, spec)
	}
	if status != nfsv4.NFS4_OK {
		return tree.Entry{}, status
	}
	entry, ok := s.Tree.Lookup(req.Parent.ID, req.Name)
	if !ok { // removed at once by another client
		return tree.Entry{}, nfsv4.NFS4ERR_STALE
	}
	return entry, nfsv4.NFS4_OK
}

// leaving reports whether a directory above the depth is being removed or renamed, so that nothing may be made in it.
func (s *Service) leaving(share *tree.Share, rel string) bool {
	r, ok := s.Tree.Directory(share.Name, rel)
	return ok && r.State == internalv1.DirectoryRemoving
}

// newSpec has the attributes that the directory will have.
func (s *Service) newSpec(req operations.MkdirRequest) internalv1.ShareDirectorySpec {
	group, mode := req.Parent.NewAttributes(req.Caller, req.Mode)
	spec := internalv1.ShareDirectorySpec{
		UID: ptr.To(int64(req.Caller.UID)), GID: ptr.To(int64(group)), Mode: tree.FormatMode(mode),
	}
	if req.Owner != nil {
		spec.UID = ptr.To(int64(*req.Owner))
	}
	if req.Group != nil {
		spec.GID = ptr.To(int64(*req.Group))
	}
	return spec
}

// mkdirOnOwner makes a distributed directory: it creates the ShareDirectory and makes the directory. The client does not wait until the
// ShareDirectory is set to Ready (behind.go).
func (s *Service) mkdirOnOwner(ctx context.Context, req operations.MkdirRequest, rel string, spec internalv1.ShareDirectorySpec) nfsv4.Nfsstat4 {
	share := req.Parent.Share
	owner, release, err := s.place(share.Name, rel)
	if err != nil {
		return s.status("mkdir "+rel, err)
	}
	defer release()
	address, err := s.address(owner.Server)
	if err != nil {
		return s.status("mkdir "+rel, err)
	}
	if err := s.lookIfLost(ctx, share, rel, tree.Slot{Server: owner.Server, Volume: owner.Volume}); err != nil {
		return s.status("mkdir "+rel, err)
	}
	spec.DataServerRef.Name, spec.Volume = owner.Server, ptr.To(owner.Volume)
	key := claimKey(share.Name, rel, &spec)
	directory, resumed, status := s.claimOrResume(ctx, share, rel, spec)
	if status != nfsv4.NFS4_OK {
		return status
	}
	release()
	if directory.State() != internalv1.DirectoryCreating {
		return nfsv4.NFS4_OK // The leader has finished the earlier try.
	}
	if status := s.settleInPlace(ctx, share, directory); status != nfsv4.NFS4_OK {
		return status
	}
	if resumed { // it may have another owner then
		owner = placement.Owner{Server: directory.Spec.DataServerRef.Name, Volume: ptr.Deref(directory.Spec.Volume, 0)}
		if address, err = s.address(owner.Server); err != nil {
			s.attempts.put(key, directory.Annotations[tree.AttemptAnnotation], s.Clock.Now())
			return s.status("mkdir "+rel, err)
		}
	}
	path := tree.ExportPath(share.Name, owner.Volume, rel)
	err = s.untilAnswered(ctx, resumed, func() error {
		return s.makeWithParents(ctx, address, share, owner.Volume, rel, credentials(req.Caller),
			nfs.MkdirOptions{Mode: req.Mode, Owner: req.Owner, Group: req.Group})
	})
	switch {
	case err != nil && !answered(err):
		// It is not known whether it was made. The client repeats the request, or the leader checks.
		s.attempts.put(key, directory.Annotations[tree.AttemptAnnotation], s.Clock.Now())
		return s.status("mkdir "+rel, err)
	case nfs.IsStatus(err, nfsv4.NFS4ERR_EXIST):
		// It existed without a ShareDirectory: adopt it as it is. The client gets NFS4ERR_EXIST.
		s.adopt(ctx, address, path, directory)
		if err := s.finish(ctx, directory); err != nil {
			return s.status("adopt "+rel, err)
		}
		return nfsv4.NFS4ERR_EXIST
	case err != nil:
		status := s.status("mkdir "+rel, err)
		if err := s.drop(ctx, directory); err != nil {
			// The leader would make what the client was refused.
			s.attempts.put(key, directory.Annotations[tree.AttemptAnnotation], s.Clock.Now())
			return s.status("take back "+rel, err)
		}
		return status
	}
	if s.finishBehind(directory) {
		return nfsv4.NFS4_OK
	}
	if err := s.finish(ctx, directory); err != nil {
		s.attempts.put(key, directory.Annotations[tree.AttemptAnnotation], s.Clock.Now())
		return s.status("mkdir "+rel, err)
	}
	return nfsv4.NFS4_OK
}

// claim creates the ShareDirectory, which is the lock on the path. If it exists, claim returns NFS4ERR_EXIST when the
// other directory can be looked up. For a rename (which looks at it again) it does so, too, when the other one is not finished in time.
func (s *Service) claim(ctx context.Context, share *tree.Share, rel string, spec internalv1.ShareDirectorySpec) (*internalv1.ShareDirectory, nfsv4.Nfsstat4) {
	directory, _, status := s.claimOrResume(ctx, share, rel, spec)
	return directory, status
}

// claimOrResume is claim. resumed: the ShareDirectory is that of an earlier, unfinished attempt.
func (s *Service) claimOrResume(ctx context.Context, share *tree.Share, rel string, spec internalv1.ShareDirectorySpec) (o *internalv1.ShareDirectory, resumed bool, status nfsv4.Nfsstat4) {
	until := s.Clock.Now().Add(settleFor)
	key := claimKey(share.Name, rel, &spec)
	mark := s.attempts.take(key)
	resumed = mark != ""
	if !resumed {
		mark = newMark()
	}
	for {
		directory := s.newDirectory(share, rel, mark, spec)
		err := s.Client.Create(ctx, directory)
		if err == nil {
			s.show(directory)
			return directory, resumed, nfsv4.NFS4_OK
		}
		pause := finishPause
		if apierrors.IsAlreadyExists(err) {
			var other *internalv1.ShareDirectory
			other, err = s.get(ctx, share.Name, rel)
			switch {
			case err == nil && other.Annotations[tree.AttemptAnnotation] == mark && other.State() == internalv1.DirectoryRemoving:
				resumed, pause = false, settlePause // The earlier try was finished, and another client removes it. It is made again.
			case err == nil && other.Annotations[tree.AttemptAnnotation] == mark:
				s.show(other)
				if resumed && other.State() == internalv1.DirectoryRenaming {
					err = s.hold(ctx, other)
				}
				if err != nil {
					return nil, false, s.status("rename to "+rel, err)
				}
				return other, resumed, nfsv4.NFS4_OK
			case err == nil && (other.State() == internalv1.DirectoryReady || spec.RenamedFrom != "" && s.Clock.Now().After(until)):
				return nil, false, nfsv4.NFS4ERR_EXIST
			case err == nil, apierrors.IsNotFound(err): // it may be taken back, or was removed: make it, unless the time is over
				pause = settlePause
			}
		} else if refusedByAPI(err) {
			if resumed {
				s.attempts.put(key, mark, s.Clock.Now())
			}
			return nil, false, s.status("create ShareDirectory "+directory.Name, err)
		}
		if s.Clock.Now().After(until) || !s.pause(ctx, pause) {
			s.attempts.put(key, mark, s.Clock.Now())
			if err != nil {
				return nil, false, s.status("create ShareDirectory "+directory.Name, err)
			}
			return nil, false, nfsv4.NFS4ERR_DELAY
		}
	}
}

// untilAnswered repeats a mkdir whose answer was lost. If a later try finds the directory, an earlier one has made it,
// because only this server has the ShareDirectory. resumed: there were earlier tries.
func (s *Service) untilAnswered(ctx context.Context, resumed bool, mkdir func() error) error {
	err := ownDoing(mkdir())
	if resumed && nfs.IsStatus(err, nfsv4.NFS4ERR_EXIST) {
		return nil
	}
	for try := 1; try < ownerTries && err != nil && !answered(err); try++ {
		if !s.pause(ctx, ownerPause) {
			return err
		}
		if err = mkdir(); nfs.IsStatus(err, nfsv4.NFS4ERR_EXIST) {
			return nil
		}
	}
	return err
}

// ownDoing is no error for NFS4ERR_EXIST to a repeated mkdir.
func ownDoing(err error) error {
	var status *nfs.StatusError
	if errors.As(err, &status) && status.Retried && status.Status == nfsv4.NFS4ERR_EXIST {
		return nil
	}
	return err
}

// answered reports whether an error is an answer of an owner.
func answered(err error) bool {
	var status *nfs.StatusError
	return errors.As(err, &status)
}

// makeWithParents makes a directory on its owner. Directories above the share's depth exist there only if something is
// below them. They are made with the first one, by root, with their owner and mode in the namespace.
func (s *Service) makeWithParents(ctx context.Context, address string, share *tree.Share, volume int32, rel string, creds nfs.Credentials, opts nfs.MkdirOptions) error {
	path := tree.ExportPath(share.Name, volume, rel)
	err := s.Owners.Mkdir(ctx, address, path, creds, opts)
	slash := strings.LastIndexByte(rel, '/')
	switch {
	case slash < 0:
		return err
	case nfs.IsStatus(err, nfsv4.NFS4ERR_ACCESS):
		// The namespace permits it. A copy may be that of an earlier directory.
		if err := s.bringCopies(ctx, address, share, volume, rel[:slash]); err != nil {
			return err
		}
	case nfs.IsStatus(err, nfsv4.NFS4ERR_NOENT):
		if err := s.makeParents(ctx, address, share, volume, rel[:slash]); err != nil {
			return err
		}
	default:
		return err
	}
	return s.Owners.Mkdir(ctx, address, path, creds, opts)
}

// makeParents makes a directory above the share's depth on an owner.
func (s *Service) makeParents(ctx context.Context, address string, share *tree.Share, volume int32, rel string) error {
	opts := nfs.MkdirOptions{Mode: share.Mode, Owner: ptr.To(share.Owner), Group: ptr.To(share.Group)}
	if r, ok := s.Tree.Directory(share.Name, rel); ok {
		opts = nfs.MkdirOptions{Mode: r.Mode, Owner: ptr.To(r.Owner), Group: ptr.To(r.Group)}
	}
	err := s.makeWithParents(ctx, address, share, volume, rel, root, opts)
	if nfs.IsStatus(err, nfsv4.NFS4ERR_EXIST) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("make %s above the directory: %w", rel, err)
	}
	// A client may have changed them before they existed on this data server, through another namespace server, too: that one writes to the API
	// first, and then sets them on data servers that have the directory.
	return s.bringCopy(ctx, address, share, volume, rel, opts.Mode, *opts.Owner, *opts.Group)
}

// adopt takes over owner, group and mode of a directory that was on the owner already.
func (s *Service) adopt(ctx context.Context, address, path string, directory *internalv1.ShareDirectory) {
	a, err := s.Owners.Stat(ctx, address, path, root)
	if err != nil {
		s.Log.Info("an existing directory could not be looked at", "path", path, "error", err)
		return
	}
	next := directory.DeepCopy()
	next.Spec.UID, next.Spec.GID = ptr.To(int64(a.Owner)), ptr.To(int64(a.Group))
	next.Spec.Mode = tree.FormatMode(a.Mode)
	if err := s.Client.Update(ctx, next); err != nil {
		s.Log.Info("owner and mode of an existing directory could not be kept", "path", path, "error", err)
		return
	}
	*directory = *next
}

// finish sets a ShareDirectory to Ready. It tries a few times, because the directory exists.
func (s *Service) finish(ctx context.Context, directory *internalv1.ShareDirectory) error {
	var err error
	for range finishTries {
		if err = s.setState(ctx, directory, internalv1.DirectoryReady); err == nil {
			return nil
		}
		if apierrors.IsConflict(err) {
			// The leader was faster.
			now, getErr := s.get(ctx, directory.Spec.FileShareRef.Name, directory.Spec.Path)
			if getErr == nil && now.State() == internalv1.DirectoryReady {
				*directory = *now
				return nil
			}
		}
		if apierrors.IsNotFound(err) || !s.pause(ctx, finishPause) {
			break
		}
	}
	return err
}
