package mover

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
)

// A ShareDirectory is deleted, or restored from a backup of before its move, between the source's promise and the target's ownership. The target has the
// directory then, and nothing else can tell the source: its clients would wait for good, the inventory of the share for the hidden directory, and a later
// move back for its name.
func TestAPromiseEndsWhenNoTaskIsLeft(t *testing.T) {
	for name, is := range map[string]func(w *world) bool{
		"the source has promised":  func(w *world) bool { return w.source.stage() == stagePromised },
		"the target has placed it": func(w *world) bool { return w.target.stage() == stagePlaced },
		"the target owns it":       func(w *world) bool { return w.move.Step == internalv1.MoveLeaving },
	} {
		for order, first := range map[string]bool{"the source's task ends first": true, "the target's task ends first": false} {
			t.Run(name+", "+order, func(t *testing.T) {
				t.Parallel()
				w := shortWorld(t)
				fill(t, w.shown(w.source))
				want := contents(t, w.shown(w.source))
				w.watch = func() bool { return is(w) }
				w.run()
				if first {
					w.source.set()
					w.target.set()
				} else {
					w.target.set()
					w.await("the target has no task", func() bool { return w.target.mover.task(moveID) == nil })
					w.source.set()
				}
				w.await("the source leaves", func() bool { return w.source.stage() == stageLeft })
				w.await("the target forgets the move", func() bool { return w.target.stage() == "" })
				if got := contents(t, w.shown(w.target)); got != want {
					t.Errorf("the target has\n%s\ninstead of\n%s", got, want)
				}
				for _, path := range paths(t, filepath.Join(w.source.root, "0", share)) {
					if strings.Contains(path, hiddenPrefix) {
						t.Errorf("the source keeps %s", path)
					}
				}
			})
		}
	}
}

// The target's volume is lost and given up right after the source's promise. The source has all data, and clients go on with it.
func TestAPromiseEndsWhenTheTargetHasLostItsVolume(t *testing.T) {
	w := shortWorld(t)
	fill(t, w.shown(w.source))
	want := contents(t, w.shown(w.source))
	w.watch = func() bool { return w.target.stage() == stagePlaced }
	w.run()
	if w.move.Step != internalv1.MovePlacing {
		t.Fatalf("the operator is at step %s", w.move.Step)
	}
	w.target.end()
	must(t, os.RemoveAll(filepath.Join(w.target.root, "0")))
	must(t, os.MkdirAll(filepath.Join(w.target.root, "0", share), 0o755))
	must(t, os.MkdirAll(movesIn(w.target.root, 0), 0o755))
	w.target.mutex.Lock()
	w.target.reports = nil
	w.target.mutex.Unlock()
	w.target.start()
	w.watch = nil
	w.run()
	w.mustHaveMoved(want)
}

// The target forgets what it has placed when the source knows it, and in the end also where the source never answers.
func TestATargetKeepsItsRecordUntilTheSourceKnows(t *testing.T) {
	w := shortWorld(t)
	fill(t, w.shown(w.source))
	w.watch = func() bool { return w.target.stage() == stagePlaced }
	w.run()
	w.source.end()
	w.target.end()
	w.target.limits.inform = 3 * short.orphan
	w.target.start()
	w.target.set()
	w.await("the target has no task", func() bool { return w.target.mover.task(moveID) == nil })
	if s := w.target.stage(); s != stagePlaced {
		t.Errorf("the target is %q, and the source does not know it", s)
	}
	w.await("the target forgets the move", func() bool { return w.target.stage() == "" })
	w.source.start()
	if s := w.source.stage(); s != stagePromised {
		t.Errorf("the source is %q", s)
	}
}
