package directories

import (
	"context"
	"time"

	"github.com/howdah/howdah/internal/namespace/tree"
)

const (
	// checkEvery is the minimum time between two comparisons of ShareDirectories with the data servers' directories. A
	// check lists directories at a limited rate: many directories make the rounds longer, not the load higher.
	checkEvery = 30 * time.Second
	// checkPause is the pause between two data servers. No client waits for a check.
	checkPause = 100 * time.Millisecond
	// checkPausePerDirectory and checkPauseShared are added for each listed directory: 1,000 a second, or 200 on shared
	// storage, where one metadata server answers for all data servers.
	checkPausePerDirectory = time.Millisecond
	checkPauseShared       = 5 * time.Millisecond
)

// checkSteadily compares ShareDirectories with the data servers' directories, one data server after the other, until
// the context ends. A directory without a ShareDirectory gets one. A directory that no longer exists (an older snapshot
// of the volume, a power failure, changes on the data server) becomes Missing, until it is found again or the user
// gives it up.
func (k *Leader) checkSteadily(ctx context.Context) {
	k.every(ctx, checkEvery, k.checkAll)
}

// every does something once in each period, until the context ends.
func (s *Service) every(ctx context.Context, period time.Duration, do func(context.Context)) {
	ticker := s.Clock.NewTicker(period)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
			do(ctx)
		}
	}
}

func (k *Leader) checkAll(ctx context.Context) {
	for _, share := range k.Tree.Shares() {
		for _, server := range k.Tree.Servers() {
			if server.Address == "" || !server.Serves[share.Name] || k.Reachable != nil && !k.Reachable(server.Name) {
				continue // it is checked when it serves the share
			}
			owned, all := k.owned(share, server.Name), k.Tree.Directories(share.Name)
			if server.SharedStorage && owned == 0 && all > 0 {
				continue // its owners are asked
			}
			if err := k.check(ctx, share, server); err != nil && ctx.Err() == nil {
				k.Log.Warn("a data server could not be compared with its ShareDirectories, and is at the next check",
					"share", share.Name, "server", server.Name, "error", err)
			}
			if !k.pause(ctx, pauseAfter(server.SharedStorage, owned, all)) {
				return
			}
		}
	}
}

// pauseAfter is the pause after the check of a data server that owns some of a share's directories.
func pauseAfter(shared bool, owned, all int) time.Duration {
	if shared {
		return checkPause + time.Duration(all)*checkPauseShared // One check lists them all.
	}
	return checkPause + time.Duration(owned)*checkPausePerDirectory
}

// owned is how many directories of a share a data server owns.
func (k *Leader) owned(share *tree.Share, server string) (number int) {
	for slot, count := range k.Tree.Counts(share.Name) {
		if slot.Server == server {
			number += count
		}
	}
	return number
}

// check compares one share's ShareDirectories with one data server.
func (k *Leader) check(ctx context.Context, share *tree.Share, server *tree.Server) error {
	ctx, cancel := context.WithTimeout(ctx, scanTimeout)
	defer cancel()
	return k.scan(ctx, task{share: share.Name, server: server.Name})
}
