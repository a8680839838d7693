package directories

import (
	"maps"
	"time"

	"github.com/howdah/howdah/internal/namespace/tree"
	"github.com/howdah/howdah/internal/placement"
)

const (
	// lostFor is how long a namespace server remembers the owner of a directory whose ShareDirectory was lost. If the
	// data server answers, the leader writes another one much earlier.
	lostFor = 10 * time.Minute
	// maxLost bounds the memory for them.
	maxLost = 1 << 14
)

type lostPath struct{ share, path string }

type lostDirectory struct {
	slot  tree.Slot
	since time.Time
}

// rememberLost records the owner of a directory whose ShareDirectory was deleted without a removal: a new directory of
// this name must not get another owner.
func (s *Service) rememberLost(r *tree.Directory) {
	if r.Server == "" {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.Clock.Now()
	if len(s.lost) >= maxLost {
		maps.DeleteFunc(s.lost, func(_ lostPath, known lostDirectory) bool { return now.Sub(known.since) >= lostFor })
	}
	if len(s.lost) < maxLost {
		s.lost[lostPath{r.Share, r.Path}] = lostDirectory{tree.Slot{Server: r.Server, Volume: r.Volume}, now}
	}
}

// ownerOfLost is the owner of a directory before its ShareDirectory was lost. s.mu is held.
func (s *Service) ownerOfLost(share, path string) (placement.Owner, bool) {
	known, ok := s.lost[lostPath{share, path}]
	if !ok || s.Clock.Since(known.since) >= lostFor {
		return placement.Owner{}, false
	}
	return placement.Owner{Server: known.slot.Server, Volume: known.slot.Volume}, true
}
