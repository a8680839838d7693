package mover

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/internal/moving"
)

// backup is what the API has of a move.
type backup struct {
	move           internalv1.DirectoryMove
	source, target []internalv1.MoveReport
}

// finish runs a move to its end, and returns what the API had while it was copied.
func (w *world) finish() backup {
	w.t.Helper()
	fill(w.t, w.shown(w.source))
	want := contents(w.t, w.shown(w.source))
	var then backup
	w.watch = func() bool {
		if len(then.source) == 0 && w.target.stage() == stageCopying && w.source.report() != nil && w.target.report() != nil {
			then = backup{*w.move.DeepCopy(), []internalv1.MoveReport{*w.source.report()}, []internalv1.MoveReport{*w.target.report()}}
		}
		return false
	}
	w.run()
	w.mustHaveMoved(want)
	w.await("the target forgets the move", func() bool { return w.target.stage() == "" })
	w.watch = nil
	return then
}

// restore brings objects of a backup back: the move, and what the data servers reported then.
func (w *world) restore(then backup) {
	w.move, w.ended, w.outcome, w.flipped = then.move, false, moving.Stay, false
	for server, reports := range map[*server][]internalv1.MoveReport{w.source: then.source, w.target: then.target} {
		server.mutex.Lock()
		server.reports = reports
		server.mutex.Unlock()
	}
}

// Objects are restored from a backup of when a directory was copied, and the move is not wanted any more. What the API has says that the source serves the directory, and
// the source has left. The move does not end before the source was asked: the object would name it for good.
func TestAMoveThatIsCancelledAfterARestoreEndsWhereTheDirectoryIs(t *testing.T) {
	for name, emptied := range map[string]bool{"the source has it in its trash": false, "the trash was emptied": true} {
		for name2, wanted := range map[string]bool{"cancelled": false, "wanted": true} {
			t.Run(name+", "+name2, func(t *testing.T) {
				t.Parallel()
				w := shortWorld(t)
				then := w.finish()
				want := contents(t, w.shown(w.target))
				if emptied {
					must(t, place{root: w.source.root, id: moveID}.forget(t.Context()))
				}
				w.restore(then)
				w.wanted = wanted
				w.run()
				if got := contents(t, w.shown(w.target)); w.outcome != moving.Done || !w.flipped || got != want {
					t.Errorf("it ended with %d, flipped %v; the target has\n%s", w.outcome, w.flipped, got)
				}
				if left := paths(t, filepath.Join(w.source.root, "0", share)); len(left) != 1 {
					t.Errorf("the source has %q", left)
				}
			})
		}
	}
}

// Where the source has the directory, a cancelled move ends there.
func TestAMoveThatIsCancelledEndsOnTheSource(t *testing.T) {
	w := shortWorld(t)
	fill(t, w.shown(w.source))
	want := contents(t, w.shown(w.source))
	w.watch = func() bool { return w.target.stage() == stageCopying }
	w.run()
	w.watch, w.wanted = nil, false
	w.run()
	if got := contents(t, w.shown(w.source)); w.outcome != moving.Cancelled || got != want {
		t.Errorf("it ended with %d; the source has\n%s", w.outcome, got)
	}
	w.await("the copy is removed", func() bool { return w.target.stage() == "" })
	if there, _ := exists(w.shown(w.target)); there {
		t.Error("the target shows the directory")
	}
}

// A directory that neither has is lost, or was removed. The move does not end as if the source served it, and its message says so.
func TestAMoveWhoseDirectoryIsNowhereSaysSo(t *testing.T) {
	w := shortWorld(t)
	fill(t, w.shown(w.source))
	w.watch = func() bool { return w.target.stage() == stageCopying }
	w.run()
	must(t, os.RemoveAll(w.shown(w.source)))
	w.wanted = false
	w.watch = func() bool {
		report := w.source.report()
		return w.ended || report != nil && strings.Contains(report.Message, "is not on volume 0")
	}
	w.run()
	if w.ended {
		t.Errorf("it ended with %d", w.outcome)
	}
}
