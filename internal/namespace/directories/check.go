package directories

import (
	"context"
	"time"

	"github.com/howdah/howdah/internal/namespace/tree"
)

const (
	// checkEvery is how often the Leader compares ShareDirectories with what is on the data servers, at the most. A look lists directories
	// and asks for none by itself, and it is made at a pace of its own: many directories make the rounds longer, and not the load higher.
	checkEvery = 30 * time.Second
	// checkPause is the pause between two data servers. No client waits for a check.
	checkPause = 100 * time.Millisecond
	// checkPausePerDirectory and checkPauseShared are added for each directory that was listed: 1,000 in a second, and 200 where one server
	// of metadata answers for all data servers.
	checkPausePerDirectory = time.Millisecond
	checkPauseShared       = 5 * time.Millisecond
)

// checkSteadily compares ShareDirectories with the data servers' directories, one data server after the other, until the context
// ends. What is on them and has no ShareDirectory gets one. A directory that is not there any more (an older snapshot of the volume, a power
// failure, changes on the data server) is called Missing, until it is found again or the user gives it up.
func (k *Leader) checkSteadily(ctx context.Context) {
	ticker := k.Clock.NewTicker(checkEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
			k.checkAll(ctx)
		}
	}
}

func (k *Leader) checkAll(ctx context.Context) {
	for _, share := range k.Tree.Shares() {
		for _, server := range k.Tree.Servers() {
			if server.Address == "" || !server.Serves[share.Name] || k.Reachable != nil && !k.Reachable(server.Name) {
				continue // it is looked at when it serves the share
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

// pauseAfter is the pause after a look at a data server that owns some of all directories of a share.
func pauseAfter(shared bool, owned, all int) time.Duration {
	if shared {
		return checkPause + time.Duration(all)*checkPauseShared // One look lists them all.
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
