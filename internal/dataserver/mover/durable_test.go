package mover

import (
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"
)

// The volume of the target could not write a part of the copy. The kernel reports that once. The copy in memory is still right, so it is not what the
// target may trust: all of it is copied again, also if the target ends before it came to that.
func TestACopyThatCouldNotBeWrittenIsMadeAgain(t *testing.T) {
	for _, ends := range []bool{false, true} {
		t.Run(fmt.Sprintf("the target ends: %v", ends), func(t *testing.T) {
			t.Parallel()
			w := shortWorld(t)
			fill(t, w.shown(w.source))
			want := contents(t, w.shown(w.source))
			copied := place{root: w.target.root, id: moveID, share: share, path: movePath}
			var lost atomic.Uint64
			w.target.mover.sync = func(string) error {
				if lost.Load() != 0 {
					return nil
				}
				inode, err := inodeOf(copied.data() + "/file3")
				lost.Store(inode)
				if ends {
					w.target.crashAt.Store(w.target.changes.Load() + 1)
				}
				// Its inode is not used again as long as it is open.
				kept, opening := os.Open(copied.data() + "/file3")
				t.Cleanup(func() { _ = kept.Close() })
				return errors.Join(err, opening, unix.EIO)
			}
			w.run()
			w.mustHaveMoved(want)
			inode, err := inodeOf(w.shown(w.target) + "/file3")
			must(t, err)
			if lost.Load() == 0 || inode == lost.Load() {
				t.Errorf("the copy is the one that could not be written: inode %d", inode)
			}
		})
	}
}
