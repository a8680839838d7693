package directories

import (
	"context"
	"strings"
	"time"

	"github.com/howdah/howdah/internal/namespace/tree"
)

// After a restore of the API from a backup, directories that are newer have no ShareDirectory until the leader has found them on the volumes. A client that
// looks for one then must not learn that it does not exist: Linux drops the mount of what has no name, and a program that lists a directory goes on without
// what is left out. So it is asked for on its data server, and the client waits if that has it, or does not answer.

const (
	// lookLimit bounds the looks for one question of a client. Linux holds the lock of the directory above meanwhile.
	lookLimit = time.Second
	// maxLooking is the number of clients' questions for which data servers are looked at, at a time. The others are put off at once.
	maxLooking = 16
)

// MayBeAwaited reports whether a name that the tree does not have, or for "" any in a directory, is remembered as one that lost its ShareDirectory.
func (s *Service) MayBeAwaited(parent tree.Entry, name string) bool {
	return len(s.lostIn(parent, name)) > 0
}

// Awaited reports whether a client has to wait for a name that the tree does not have, or for "" for any in a directory: the directory lost its ShareDirectory,
// and exists, or its data server does not tell. What no data server has is forgotten.
func (s *Service) Awaited(ctx context.Context, parent tree.Entry, name string) bool {
	lost := s.lostIn(parent, name)
	if len(lost) == 0 {
		return false
	}
	select {
	case s.looking <- struct{}{}:
		defer func() { <-s.looking }()
	default:
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, lookLimit)
	defer cancel()
	for path, known := range lost {
		if s.isAwaited(ctx, path, known) {
			s.Log.Debug("a client waits for a directory whose ShareDirectory was lost", "share", path.share, "path", path.path, "server", known.slot.Server)
			return true
		}
		s.forgetLost(path, known)
	}
	return false
}

// isAwaited reports whether a directory whose ShareDirectory was lost may exist.
func (s *Service) isAwaited(ctx context.Context, at lostPath, known lostDirectory) bool {
	share, ok := s.Tree.Share(at.share)
	if !ok {
		return false
	}
	for _, slot := range placesOfLost(known, s.Tree.Servers(), share.IgnoreDataOn) {
		if s.Reachable != nil && !s.Reachable(slot.Server) {
			return true // It would cost the whole limit.
		}
		if there, err := s.stillThere(ctx, at.share, at.path, slot); there || err != nil {
			return true
		}
	}
	return false
}

// lostIn returns what is remembered as lost at a name in a directory and below it, or for "" anywhere in the directory.
func (s *Service) lostIn(parent tree.Entry, name string) map[lostPath]lostDirectory {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.lost) == 0 {
		return nil
	}
	share, path, ok := s.Tree.Place(parent.ID, name)
	if !ok {
		return nil
	}
	found := map[lostPath]lostDirectory{}
	add := func(at lostPath) {
		if known, lost := s.knownLost(at.share, at.path); !lost {
			return
		} else if _, back := s.Tree.Directory(at.share, at.path); !back {
			found[at] = known
		}
	}
	if name != "" && (path == tree.RootPath || tree.Depth(path) == share.Depth) {
		add(lostPath{share.Name, path})
		return found
	}
	for at := range s.lost {
		if at.share == share.Name && (path == "" || at.path == path || strings.HasPrefix(at.path, strings.TrimSuffix(path, "/")+"/")) {
			add(at)
		}
	}
	return found
}

// forgetLost forgets a directory that exists nowhere, unless it was lost again meanwhile.
func (s *Service) forgetLost(at lostPath, known lostDirectory) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lost[at] == known {
		delete(s.lost, at)
	}
}
