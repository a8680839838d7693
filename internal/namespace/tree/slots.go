package tree

import (
	"github.com/howdah/howdah/internal/fleet"
	"github.com/howdah/howdah/internal/placement"
)

// Slots are the volumes that a new directory of a share may go to, for placement: those of
// every data server, ready where the server serves the share and may take new directories of it (internal/fleet).
func (t *Tree) Slots(share string) []placement.Slot {
	t.mu.RLock()
	defer t.mu.RUnlock()
	all := map[Slot]int{}
	for _, slots := range t.counts {
		for slot, n := range slots {
			all[slot] += n
		}
	}
	var out []placement.Slot
	var ignored []string
	if s := t.shares[share]; s != nil {
		ignored = s.IgnoreDataOn
	}
	for _, server := range t.servers {
		seen := fleet.Server{Name: server.Name, Leaving: server.RefusesNewDirectories, Serves: server.Address != "" && server.Serves[share] && server.SilentFor == ""}
		ready := fleet.MayTake(seen, ignored) == fleet.None
		for volume := range server.Volumes {
			slot := Slot{server.Name, volume}
			out = append(out, placement.Slot{
				Owner:      placement.Owner{Server: server.Name, Volume: volume},
				Ready:      ready,
				TotalBytes: server.Usage[volume].Total, UsedBytes: server.Usage[volume].Used,
				Tight: server.Usage[volume].Tight, Full: server.Usage[volume].Full,
				ShareDirectories: t.counts[share][slot], Directories: all[slot],
			})
		}
	}
	return out
}

// Space sums up the volumes of all data servers, in bytes. What they share counts once.
func (t *Tree) Space() Usage {
	t.mu.RLock()
	defer t.mu.RUnlock()
	var sum Usage
	seen := map[string]bool{}
	for _, server := range t.servers {
		for volume, u := range server.Usage {
			if server.SharedStorage {
				return Usage{Total: u.Total, Used: u.Used}
			}
			if id := server.FileSystems[volume]; id != "" {
				if seen[id] {
					continue
				}
				seen[id] = true
			}
			sum.Total += u.Total
			sum.Used += u.Used
		}
	}
	return sum
}
