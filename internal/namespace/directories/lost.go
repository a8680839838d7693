package directories

import (
	"context"
	"fmt"
	"maps"
	"time"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"

	"github.com/howdah/howdah/internal/namespace/tree"
	nfs "github.com/howdah/howdah/internal/nfs4/client"
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

// lookIfLost looks for a directory whose ShareDirectory was lost, before a mkdir. A data server from which it moves has it under another name, and says so
// when it is asked for the name, but makes an empty directory in its place.
func (s *Service) lookIfLost(ctx context.Context, share, path, address string, volume int32) error {
	s.mu.Lock()
	_, lost := s.ownerOfLost(share, path)
	s.mu.Unlock()
	if !lost {
		return nil
	}
	if _, err := s.Owners.Stat(ctx, address, tree.ExportPath(share, volume, path), root); err != nil && !nfs.IsStatus(err, nfsv4.NFS4ERR_NOENT) {
		return fmt.Errorf("look for %s, whose ShareDirectory was lost: %w", path, err)
	}
	return nil
}
