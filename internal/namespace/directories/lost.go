package directories

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
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
	slot tree.Slot
	// missing: it was not on its owner, so it may be anywhere.
	missing bool
	since   time.Time
}

// rememberLost records where a directory was whose ShareDirectory was deleted without a removal: its name must not be given to one elsewhere.
func (s *Service) rememberLost(r *tree.Directory) {
	if r.Server == "" {
		return // It exists for what is below it, which is remembered.
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.Clock.Now()
	if len(s.lost) >= maxLost {
		maps.DeleteFunc(s.lost, func(_ lostPath, known lostDirectory) bool { return now.Sub(known.since) >= lostFor })
	}
	if len(s.lost) < maxLost {
		s.lost[lostPath{r.Share, r.Path}] = lostDirectory{tree.Slot{Server: r.Server, Volume: r.Volume}, r.State == internalv1.DirectoryMissing, now}
	}
}

// notLost forgets a directory that was removed.
func (s *Service) notLost(share, path string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.lost, lostPath{share, path})
}

// knownLost returns what is known of a directory whose ShareDirectory was lost. s.mu is held.
func (s *Service) knownLost(share, path string) (lostDirectory, bool) {
	known, ok := s.lost[lostPath{share, path}]
	return known, ok && s.Clock.Since(known.since) < lostFor
}

// ownerOfLost is the owner of a directory before its ShareDirectory was lost. s.mu is held.
func (s *Service) ownerOfLost(share, path string) (placement.Owner, bool) {
	known, ok := s.knownLost(share, path)
	if !ok || known.missing {
		return placement.Owner{}, false
	}
	return placement.Owner{Server: known.slot.Server, Volume: known.slot.Volume}, true
}

// lookIfLost looks for a directory whose ShareDirectory was lost, before its name is given to one on a volume. If it is on another, the leader writes its
// ShareDirectory again. A data server from which it moves has it under another name, and says so when it is asked for the name, but makes an empty
// directory in its place.
func (s *Service) lookIfLost(ctx context.Context, share *tree.Share, path string, on tree.Slot) error {
	s.mu.Lock()
	known, lost := s.knownLost(share.Name, path)
	s.mu.Unlock()
	if !lost {
		return nil
	}
	places := []tree.Slot{on}
	if server, ok := s.Tree.Server(on.Server); !ok || !server.SharedStorage {
		others := placesOfLost(known, s.Tree.Servers(), share.IgnoreDataOn)
		places = append(places, slices.DeleteFunc(others, func(slot tree.Slot) bool { return slot == on })...)
	}
	for _, slot := range places {
		switch there, err := s.stillThere(ctx, share.Name, path, slot); {
		case err != nil:
			return err
		case there && slot != on:
			return fmt.Errorf("%s, whose ShareDirectory was lost, is on volume %d of data server %s: its ShareDirectory is written again", path, slot.Volume, slot.Server)
		}
	}
	return nil
}

// stillThere reports whether a data server has a directory whose ShareDirectory was lost. One that has left it may be on another one: that is an error.
func (s *Service) stillThere(ctx context.Context, share, path string, slot tree.Slot) (bool, error) {
	if server, ok := s.Tree.Server(slot.Server); !ok || !server.Serves[share] {
		return false, fmt.Errorf("look for %s, whose ShareDirectory was lost: data server %s does not serve share %s", path, slot.Server, share)
	}
	switch err := s.look(ctx, slot.Server, slot.Volume, share, path); {
	case nfs.IsStatus(err, nfsv4.NFS4ERR_NOENT):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("look for %s, whose ShareDirectory was lost: %w", path, err)
	}
	return true, nil
}

// placesOfLost returns the volumes where a directory may be whose ShareDirectory was lost, of those where the share's data counts. What all data servers
// have is looked at once.
func placesOfLost(known lostDirectory, servers []*tree.Server, ignored []string) []tree.Slot {
	var places []tree.Slot
	for _, server := range servers {
		if slices.Contains(ignored, server.Name) {
			continue
		}
		for volume := range server.Volumes {
			slot := tree.Slot{Server: server.Name, Volume: volume}
			switch {
			case slot == known.slot && server.SharedStorage:
				return []tree.Slot{slot}
			case slot == known.slot, known.missing && !server.SharedStorage:
				places = append(places, slot)
			case server.SharedStorage && len(places) == 0:
				places = append(places, slot) // Its data server may be gone.
			}
		}
	}
	return places
}
