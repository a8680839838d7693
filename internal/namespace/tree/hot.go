package tree

import "github.com/howdah/howdah/internal/hotdirectories"

// Hot are the targets of a junction that several data servers serve, the owner's first; nil if only its owner does. Each data server
// exports each share, and where they share their storage all have the same directories. Those that new directories go elsewhere than are
// left out: they are to be idle.
func (t *Tree) Hot(e *Entry) []*Target {
	if e.Share == nil || e.Directory == nil || e.Directory.Server == "" {
		return nil
	}
	n := e.Share.Hot.Servers(e.Directory.Path)
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
