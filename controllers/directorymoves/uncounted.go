package directorymoves

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// Uncounted are the directories that have moved and are in no status yet, for each FileServer. A pass that moves one may fail to write its
// status, and the next pass does not see that move any more. What a restarted operator forgets is missing in the count alone.
type Uncounted struct {
	mu    sync.Mutex
	moved map[types.NamespacedName]int64
}

// Add keeps what a pass has moved, and returns all that the next status counts.
func (u *Uncounted) Add(fileServer types.NamespacedName, moved int64) int64 {
	u.mu.Lock()
	defer u.mu.Unlock()
	if moved > 0 {
		if u.moved == nil {
			u.moved = map[types.NamespacedName]int64{}
		}
		u.moved[fileServer] += moved
	}
	return u.moved[fileServer]
}

// Forget drops them: they are in the status, or the FileServer is gone.
func (u *Uncounted) Forget(fileServer types.NamespacedName) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.moved, fileServer)
}
