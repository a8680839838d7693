package directories

import (
	"fmt"
	"slices"

	"github.com/howdah/howdah/internal/namespace/tree"
	"github.com/howdah/howdah/internal/placement"
)

// place chooses the owner of a new directory. The choice counts until it is released, so that directories that are made
// at the same time are spread.
func (s *Service) place(share, rel string) (placement.Owner, func(), error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if owner, ok := s.ownerOfLost(share, rel); ok {
		return owner, func() {}, nil
	}
	slots := s.onlyAnswering(s.Tree.Slots(share))
	for i := range slots {
		slot := tree.Slot{Server: slots[i].Server, Volume: slots[i].Volume}
		slots[i].ShareDirectories += s.inflight[share][slot]
		for _, others := range s.inflight {
			slots[i].Directories += others[slot]
		}
	}
	owner, err := placement.Choose(slots)
	if err != nil {
		return placement.Owner{}, nil, fmt.Errorf("place a directory of share %s: %w", share, err)
	}
	slot := tree.Slot{Server: owner.Server, Volume: owner.Volume}
	if s.inflight[share] == nil {
		s.inflight[share] = map[tree.Slot]int{}
	}
	s.inflight[share][slot]++
	released := false
	return owner, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if released {
			return
		}
		released = true
		if s.inflight[share][slot]--; s.inflight[share][slot] == 0 {
			delete(s.inflight[share], slot)
		}
		if len(s.inflight[share]) == 0 {
			delete(s.inflight, share)
		}
	}, nil
}

// onlyAnswering takes data servers that do not answer for not ready. A mkdir waits for the data server it was placed on, and
// its client's kernel holds the lock of the level above meanwhile. So one that missed a single probe, which may only be slow, gets
// a directory only if no other can have it.
func (s *Service) onlyAnswering(slots []placement.Slot) []placement.Slot {
	answering := readyIf(slots, s.Answers)
	if slices.ContainsFunc(answering, func(slot placement.Slot) bool { return slot.Ready && !slot.Full }) {
		return answering
	}
	return readyIf(slots, s.Reachable)
}

// readyIf takes the slots of servers for which answers is false for not ready. nil: all answer.
func readyIf(slots []placement.Slot, answers func(server string) bool) []placement.Slot {
	slots = slices.Clone(slots)
	for i := range slots {
		slots[i].Ready = slots[i].Ready && (answers == nil || answers(slots[i].Server))
	}
	return slots
}
