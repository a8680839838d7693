package directories

import (
	"context"
	"strings"
	"time"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/internal/namespace/tree"
)

// The tree is as old as the watch is late: what another namespace server changed a moment ago it may not have. What clients look at may
// be old like that. A change must not be refused because of it, and must not be made in a directory that is gone.

const (
	// learnWithin is how long a change waits until the watch has delivered what the API has.
	learnWithin = 5 * time.Second
	learnPause  = 5 * time.Millisecond
	// kidsRead is how many of the directories in one are read from the API to find one that is there.
	kidsRead = 8
)

// Refresh implements operations.Mutator.
func (s *Service) Refresh(ctx context.Context, parent tree.Entry, name string) (there bool, status nfsv4.Nfsstat4) {
	ctx, done, ok := s.begin(ctx)
	if !ok {
		return false, nfsv4.NFS4ERR_DELAY
	}
	defer done()
	return s.refresh(ctx, parent.Share, strings.TrimPrefix(parent.Rel+"/"+name, "/"))
}

// Begun implements operations.Mutator.
func (s *Service) Begun(parent tree.Entry, name string) bool {
	return s.attempts.hasAny(makeKeys(parent.Share.Name, strings.TrimPrefix(parent.Rel+"/"+name, "/")))
}

// refresh reads the ShareDirectory of a path. Afterwards the tree has it, or does not have one that is gone: the watch takes that away,
// as it knows whether the deletion was a removal. The watch may first deliver another one, which was made and removed, too, so what the
// tree then has is read again. there: the directory is shown.
func (s *Service) refresh(ctx context.Context, share *tree.Share, rel string) (there bool, status nfsv4.Nfsstat4) {
	for until := s.Clock.Now().Add(learnWithin); ; {
		before, known := s.Tree.Directory(share.Name, rel)
		o, err := s.get(ctx, share.Name, rel)
		switch {
		case err == nil:
			return tree.NewDirectory(o).Shown(), nfsv4.NFS4_OK
		case !apierrors.IsNotFound(err):
			return false, s.status("look at "+rel, err)
		case !known:
			return false, nfsv4.NFS4_OK
		}
		if !s.learnsOf(ctx, before, until) {
			return false, nfsv4.NFS4ERR_DELAY
		}
	}
}

// learnsOf waits until the tree no longer has a directory that the API does not have. false: it did not learn of that in time.
func (s *Service) learnsOf(ctx context.Context, gone *tree.Directory, until time.Time) bool {
	for {
		now, ok := s.Tree.Directory(gone.Share, gone.Path)
		if !ok || now.UID != gone.UID {
			return true
		}
		if s.Clock.Now().After(until) || !s.pause(ctx, learnPause) {
			return false
		}
	}
}

// notEmpty is the answer to a removal of a directory above the depth in which the tree has directories: NFS4ERR_NOTEMPTY if the API has
// one of them, too.
func (s *Service) notEmpty(ctx context.Context, entry *tree.Entry) nfsv4.Nfsstat4 {
	var kids []tree.Entry
	s.Tree.List(entry.ID, 0, func(e *tree.Entry) bool {
		kids = append(kids, *e)
		return len(kids) < kidsRead
	})
	for i := range kids {
		if kids[i].Directory == nil {
			return nfsv4.NFS4ERR_NOTEMPTY // It is there because of what is in it.
		}
		there, status := s.refresh(ctx, entry.Share, kids[i].Rel)
		if there {
			return nfsv4.NFS4ERR_NOTEMPTY
		}
		if status != nfsv4.NFS4_OK {
			return status
		}
	}
	return nfsv4.NFS4ERR_DELAY
}

// inPlace reports whether the directory above a new ShareDirectory is there and stays. Who removes a directory first sets its state, and
// then looks for directories in it; who makes one first creates its ShareDirectory, and then looks at the directory above. So one of the
// two sees the other.
func (s *Service) inPlace(ctx context.Context, share *tree.Share, rel string) (bool, error) {
	slash := strings.LastIndexByte(rel, '/')
	if slash < 0 {
		return true, nil
	}
	above := rel[:slash]
	for try := 1; ; try++ {
		o, err := s.get(ctx, share.Name, above)
		switch {
		case err == nil:
			return o.State() != internalv1.DirectoryRemoving, nil
		case apierrors.IsNotFound(err):
			return s.implied(share, above), nil
		case try == finishTries || !s.pause(ctx, finishPause):
			return false, err
		}
	}
}

// settleInPlace is the answer to a mkdir whose ShareDirectory was created: if that is not in place it is taken back, and the client must
// try again.
func (s *Service) settleInPlace(ctx context.Context, share *tree.Share, o *internalv1.ShareDirectory) nfsv4.Nfsstat4 {
	stays, err := s.inPlace(ctx, share, o.Spec.Path)
	if stays {
		return nfsv4.NFS4_OK
	}
	if err == nil {
		err = s.drop(ctx, o)
	}
	if err != nil {
		// The client goes on with it, or the leader makes it.
		s.attempts.put(claimKey(share.Name, o.Spec.Path, &o.Spec), o.Annotations[tree.AttemptAnnotation], s.Clock.Now())
		return s.status("mkdir "+o.Spec.Path, err)
	}
	return nfsv4.NFS4ERR_DELAY
}

// implied reports whether a directory is shown although it has no ShareDirectory, because of what is in it.
func (s *Service) implied(share *tree.Share, rel string) bool {
	entry, ok := s.Tree.At(share.Path + "/" + rel)
	return ok && entry.Directory == nil
}
