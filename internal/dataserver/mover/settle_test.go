package mover

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

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

// placedWithoutTasks has the target place a directory, and both data servers without a task for it; the source does not run.
func placedWithoutTasks(t *testing.T) (w *world, want string) {
	t.Helper()
	w = shortWorld(t)
	fill(t, w.shown(w.source))
	want = contents(t, w.shown(w.source))
	w.watch = func() bool { return w.target.stage() == stagePlaced }
	w.run()
	w.source.end()
	w.target.set()
	w.await("the target has no task", func() bool { return w.target.mover.task(moveID) == nil })
	w.source.set()
	return w, want
}

// Source and target do not reach each other for longer than an hour. When they do, the promise ends.
func TestAPromiseEndsAlsoAfterHours(t *testing.T) {
	t.Parallel()
	w, _ := placedWithoutTasks(t)
	w.target.end()
	w.target.limits.inform = informFor / orphanAfter * short.orphan
	w.target.start()
	w.target.set()
	time.Sleep(time.Hour/orphanAfter*short.orphan + 2*time.Second)
	if s := w.target.stage(); s != stagePlaced {
		t.Fatalf("the target is %q, and the source does not know it", s)
	}
	w.source.start()
	w.source.set()
	w.await("the source leaves", func() bool { return w.source.stage() == stageLeft })
	w.await("the target forgets the move", func() bool { return w.target.stage() == "" })
}

// All objects are written again, and the Service of the source has another address. Its name is the same.
func TestAPromiseEndsThoughTheSourceHasAnotherAddress(t *testing.T) {
	t.Parallel()
	w, _ := placedWithoutTasks(t)
	w.target.end()
	where := place{root: w.target.root, id: moveID}
	j, err := where.read()
	must(t, err)
	j.PeerAddress = "127.0.0.1:1"
	must(t, where.write(j))
	w.target.start()
	w.target.set()
	w.source.start()
	w.source.set()
	w.await("the source leaves", func() bool { return w.source.stage() == stageLeft })
}

// The target never comes back. The source says which directory it keeps, and a user who knows that the target is lost gives it back by a change of its record.
func TestAnOrphanedPromiseIsReportedAndCanBeTakenBack(t *testing.T) {
	t.Parallel()
	w, want := placedWithoutTasks(t)
	w.target.end()
	w.source.start()
	w.source.set()
	w.await("the source says so", func() bool {
		report := w.source.report()
		return report != nil && report.State == internalv1.MoveStateOrphaned && strings.Contains(report.Message, "train/7 of share unet3d") && strings.Contains(report.Message, moveID)
	})
	file := filepath.Join(place{root: w.source.root, id: moveID}.directory(), journalFile)
	text, err := os.ReadFile(file)
	must(t, err)
	must(t, os.WriteFile(file, []byte(strings.Replace(string(text), `"stage":"promised"`, `"stage":"frozen"`, 1)), 0o600)) // sed, in docs/operate/operations.md
	w.await("clients go on", func() bool { there, _ := exists(w.shown(w.source)); return there && w.source.stage() == "" })
	if got := contents(t, w.shown(w.source)); got != want {
		t.Errorf("the source has\n%s\ninstead of\n%s", got, want)
	}
	w.await("the source does not say so any more", func() bool { return w.source.report() == nil })
}
