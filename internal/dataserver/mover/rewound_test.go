package mover

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/internal/moving"
)

// moments are those of a move whose first freeze ends because files are open.
var moments = []struct {
	name string
	is   func(w *world) bool
}{
	{"it is copied", func(w *world) bool { return w.target.stage() == stageCopying }},
	{"its first freeze begins", func(w *world) bool { return w.move.Attempt == 1 && w.move.Step == internalv1.MoveFreezing }},
	{"that ends", func(w *world) bool { return w.move.Attempt == 1 && w.move.Step == internalv1.MoveThawing }},
	{"it is copied again", func(w *world) bool { return w.move.Attempt == 1 && w.move.Step == internalv1.MoveCopying }},
	{"it is frozen", func(w *world) bool { return w.source.stage() == stageFrozen }},
	{"it is verified", func(w *world) bool { return w.target.stage() == stageVerified }},
	{"it is to be placed", func(w *world) bool { return w.move.Step == internalv1.MovePlacing }},
	{"it is placed", func(w *world) bool { return w.target.stage() == stagePlaced && w.move.Step == internalv1.MovePlacing }},
	{"the target owns it", func(w *world) bool { return w.move.Step == internalv1.MoveLeaving }},
	{"it has left", func(w *world) bool { return w.source.stage() == stageLeft }},
	{"the move is over", func(w *world) bool { return w.ended }},
}

// runTo runs until a moment, and returns what the object was at an earlier one.
func (w *world) runTo(earlier, at int) internalv1.DirectoryMove {
	w.t.Helper()
	open, none := "1", "0"
	w.source.open.Store(&open)
	var backup internalv1.DirectoryMove
	for next := 0; next <= at; next++ {
		w.watch = func() bool {
			if w.move.Step == internalv1.MoveThawing {
				w.source.open.Store(&none)
			}
			return moments[next].is(w)
		}
		if !w.ended {
			w.run()
		}
		if next == earlier {
			backup = *w.move.DeepCopy()
		}
	}
	w.source.open.Store(&none)
	w.watch = nil
	return backup
}

// The objects are restored from a backup while a directory moves, or after it. The move ends as it would have, and at no time do both have the directory.
func TestAMoveEndsWhenItsObjectIsOfAnOlderBackup(t *testing.T) {
	for at := range moments {
		for earlier := range at {
			if (at/2+earlier)%2 == 1 || (at-earlier)%step != 0 {
				continue // Half of the pairs find what all find.
			}
			restarted := (at+earlier)%2 == 1 // They remember no task then.
			t.Run(fmt.Sprintf("%s, and the backup is of when %s, data servers start again: %v", moments[at].name, moments[earlier].name, restarted), func(t *testing.T) {
				t.Parallel()
				w := shortWorld(t)
				fill(t, w.shown(w.source))
				want := contents(t, w.shown(w.source))
				w.move = w.runTo(earlier, at)
				w.ended = false
				if restarted {
					for _, s := range []*server{w.source, w.target} {
						s.end()
						s.start()
					}
				}
				w.watch = func() bool {
					there, _ := exists(w.shown(w.source))
					if here, _ := exists(w.shown(w.target)); there && here {
						t.Fatalf("both have it; the source is %q, the target %q", w.source.stage(), w.target.stage())
					}
					return false
				}
				w.run()
				w.mustHaveMoved(want)
			})
		}
	}
}

// What was promised is not served by the source again, whatever the operator asks for.
func TestADirectoryThatWasPromisedIsNotThawed(t *testing.T) {
	w := shortWorld(t)
	fill(t, w.shown(w.source))
	w.watch = func() bool { return w.source.stage() == stagePromised }
	w.run()
	w.move.Step, w.move.Sequence = internalv1.MoveThawing, w.move.Sequence+100
	w.source.set(w.task(internalv1.MoveSource))
	time.Sleep(500 * time.Millisecond)
	if there, _ := exists(w.shown(w.source)); there || w.source.stage() != stagePromised {
		t.Errorf("the source serves it again, and is %q", w.source.stage())
	}
}

// The target gives its copy up, because the freeze has ended, and ends itself before that is reported.
func TestATargetThatGaveUpSaysSoAfterItsStart(t *testing.T) {
	w := shortWorld(t)
	fill(t, w.shown(w.source))
	want := contents(t, w.shown(w.source))
	w.watch = func() bool { return w.target.stage() == stageVerified }
	w.run()
	w.source.away.Store(true)
	w.await("the freeze ends", func() bool { return w.source.stage() == stageReleased })
	w.source.away.Store(false)
	w.move.Step, w.move.Sequence = internalv1.MovePlacing, w.move.Sequence+1
	where := place{root: w.target.root, id: moveID}
	j, err := where.read()
	must(t, err)
	w.target.end()
	j.Stage = stageCopying
	must(t, where.write(j))
	w.target.start()
	w.watch = nil
	w.run()
	w.mustHaveMoved(want)
}

// The trash was emptied, and then the objects are restored from a backup of before.
func TestAMoveEndsAfterTheTrashWasEmptied(t *testing.T) {
	w := shortWorld(t)
	fill(t, w.shown(w.source))
	want := contents(t, w.shown(w.source))
	w.run()
	w.mustHaveMoved(want)
	must(t, place{root: w.source.root, id: moveID}.forget(t.Context()))
	w.ended, w.outcome = false, moving.Stay
	w.run()
	if got := contents(t, w.shown(w.target)); w.outcome != moving.Done || got != want {
		t.Errorf("it ended with %d; the target has\n%s", w.outcome, got)
	}
	if left := paths(t, filepath.Join(w.source.root, "0", share)); len(left) != 1 {
		t.Errorf("the source has %q", left)
	}
}

// A target that has forgotten a move has the directory, and can't tell whether by this move. Only the source can: the object may be of an older backup, and
// the source has left. A move that is refused ends, and the object would name the source for good.
func TestATargetThatHasForgottenAMoveAsksTheSource(t *testing.T) {
	w := shortWorld(t)
	fill(t, w.shown(w.source))
	want := contents(t, w.shown(w.source))
	var backup *internalv1.DirectoryMove
	w.watch = func() bool {
		if backup == nil && w.target.stage() == stageCopying {
			backup = w.move.DeepCopy()
		}
		return false
	}
	w.run()
	w.mustHaveMoved(want)
	w.await("the target forgets the move", func() bool { return w.target.stage() == "" })
	w.move, w.ended, w.outcome, w.flipped, w.watch = *backup, false, moving.Stay, false, nil
	w.target.set(w.task(internalv1.MoveTarget)) // It gets its task first.
	time.Sleep(500 * time.Millisecond)
	if report := w.target.report(); report == nil || report.State != internalv1.MoveStateCopying {
		t.Errorf("the target reports %+v", report)
	}
	w.run()
	w.mustHaveMoved(want)
}

func TestATargetThatHasAnotherDirectoryOfTheNameRefuses(t *testing.T) {
	w := shortWorld(t)
	fill(t, w.shown(w.source))
	fill(t, w.shown(w.target))
	w.run()
	if w.outcome != moving.Refused {
		t.Errorf("it ended with %d", w.outcome)
	}
}
