package tree

import (
	"time"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/internal/hotdirectories"
)

// Hot are the targets of a junction that several data servers serve, the owner's first; nil if only its owner does. Each data server
// exports each share, and where they share their storage all have the same directories. Those that new directories go elsewhere than are
// left out: they are to be idle.
func (t *Tree) Hot(e *Entry) []*Target {
	if e.Share == nil || e.Directory == nil || e.Directory.Server == "" {
		return nil
	}
	n := e.Share.Hot.Servers(e.Directory.Path)
	if n < 2 && !e.Directory.Hot.IsZero() {
		n = e.Share.Search.Servers
	}
	if n < 2 {
		return nil
	}
	t.mu.RLock()
	defer t.mu.RUnlock()
	owner := t.servers[e.Directory.Server]
	if owner == nil || !owner.SharedStorage {
		return nil
	}
	var others []string
	for name, server := range t.servers {
		if name != owner.Name && server.SharedStorage && !server.RefusesNewDirectories {
			others = append(others, name)
		}
	}
	var targets []*Target
	for _, name := range hotdirectories.Serving(string(e.ID[:]), owner.Name, others, n) {
		targets = append(targets, t.targetOn(e.Share, e.Directory, name))
	}
	return targets
}

// Search is when a directory is found to be hot, and when that was recorded last, zero if it is not. The Search is zero if the directory is not
// looked at: it is named in its share's hotDirectories, or its storage is not shared.
func (t *Tree) Search(e *Entry) (search hotdirectories.Search, hot time.Time) {
	if e.Share == nil || e.Directory == nil || !e.Share.Search.IsOn() || e.Share.Hot.Servers(e.Directory.Path) > 1 || e.Directory.State != internalv1.DirectoryReady {
		return search, hot
	}
	t.mu.RLock()
	defer t.mu.RUnlock()
	if owner := t.servers[e.Directory.Server]; owner == nil || !owner.SharedStorage {
		return search, hot
	}
	return e.Share.Search, e.Directory.Hot
}

// Found are the directories of a share that are hot because they were found.
func (t *Tree) Found(share string) (found []*Directory) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	for _, r := range t.directories[share] {
		if !r.Hot.IsZero() {
			found = append(found, r)
		}
	}
	return found
}
