package directories

import (
	"time"

	"github.com/howdah/howdah/internal/namespace/tree"
)

// logFullEvery is how often it is logged that a share may have no more directories. NFS sends no reason with "Disk
// quota exceeded".
const logFullEvery = time.Minute

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
