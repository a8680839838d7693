package directories

import (
	"context"
	"strings"
	"time"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/howdah/howdah/internal/namespace/tree"
)

// logFullEvery is how often it is logged that a share may have no more directories. NFS sends no reason with "Disk
// quota exceeded".
const logFullEvery = time.Minute

// hasRoom is NFS4ERR_DQUOT for a directory for which there is no room. One that exists, or that is being made, counts already: a client that
// makes it, too, learns that it exists, and one that asks again gets its answer. The limit protects the API and is not exact:
// directories that are being made now can exceed it.
func (s *Service) hasRoom(ctx context.Context, share *tree.Share, rel string) nfsv4.Nfsstat4 {
	if s.Tree.Full(share) == tree.FullNot {
		return nfsv4.NFS4_OK
	}
	_, err := s.get(ctx, share.Name, rel)
	switch {
	case err == nil:
		return nfsv4.NFS4_OK
	case !apierrors.IsNotFound(err):
		return s.status("look at "+rel, err)
	case s.full(share):
		return nfsv4.NFS4ERR_DQUOT
	}
	return nfsv4.NFS4_OK
}

// full reports whether a share has reached a limit of directories, and logs the limit now and then.
func (s *Service) full(share *tree.Share) bool {
	full := s.Tree.Full(share)
	if full == tree.FullNot {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := s.Clock.Now(); now.Sub(s.loggedFull) >= logFullEvery {
		s.loggedFull = now
		s.Log.Warn("a client's mkdir is refused (disk quota exceeded), because there are as many directories as the limit allows: raise it, or remove some",
			"share", share.Name, "limit", string(full))
	}
	return true
}

// isOverQuota reports whether the API refuses an object because of a ResourceQuota of its Kubernetes namespace. It says so in words only.
func isOverQuota(err error) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "exceeded quota")
}
