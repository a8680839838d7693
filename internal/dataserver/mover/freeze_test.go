package mover

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
)

// short are limits that tests wait for.
var short = limits{release: 3 * time.Second, closing: 300 * time.Millisecond, orphan: 300 * time.Millisecond, tidy: 100 * time.Millisecond, inform: time.Hour, pass: 20 * time.Millisecond, short: testLimit, stale: 100 * time.Millisecond}

// shortWorld is a world whose servers have short limits.
func shortWorld(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	for _, s := range []*server{w.source, w.target} {
		s.end()
		s.limits = short
		s.start()
	}
	return w
}

func (s *server) stage() stage {
	j, err := place{root: s.root, id: moveID}.read()
	if err != nil || j == nil {
		return ""
	}
	return j.Stage
}

func (w *world) await(what string, is func() bool) {
	w.t.Helper()
	for deadline := time.Now().Add(testLimit); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			w.t.Fatalf("%s: never; the source is %q, the target %q", what, w.source.stage(), w.target.stage())
		}
	}
}

func TestADirectoryIsNotFrozenWhileFilesAreOpen(t *testing.T) {
	for _, open := range []string{"2", inGrace} {
		t.Run(open, func(t *testing.T) {
			t.Parallel()
			w := shortWorld(t)
			fill(t, w.shown(w.source))
			want := contents(t, w.shown(w.source))
			w.source.open.Store(&open)
			w.watch = func() bool {
				if s := w.source.stage(); s == stageFreezing || s == stageFrozen {
					t.Errorf("it is %s with open files", s)
				}
				report := w.source.report()
				return report != nil && report.State == internalv1.MoveStateInUse && strings.Contains(report.Message, "open")
			}
			w.run()
			w.await("clients go on", func() bool {
				list, _ := os.ReadFile(w.source.mover.ListFile)
				return strings.HasPrefix(string(list), "end ") && w.source.stage() == ""
			})
			none := "0"
			w.source.open.Store(&none)
			w.watch = nil
			w.move.Step, w.move.Sequence = internalv1.MoveThawing, w.move.Sequence+1
			w.run()
			w.mustHaveMoved(want)
		})
	}
}

func TestAMoveMayInterruptOpenFiles(t *testing.T) {
	w := shortWorld(t)
	w.openFiles = internalv1.MoveOpenFilesInterrupt
	fill(t, w.shown(w.source))
	want := contents(t, w.shown(w.source))
	open := "2"
	w.source.open.Store(&open)
	w.run()
	w.mustHaveMoved(want)
}

// The operator is away: the source lets clients go on by itself. What they write then is there after the move, though the copy had been verified.
func TestAFreezeEndsIfTheOperatorIsAway(t *testing.T) {
	w := shortWorld(t)
	fill(t, w.shown(w.source))
	w.watch = func() bool { return w.target.stage() == stageVerified }
	w.run()
	w.source.away.Store(true)
	w.await("the freeze ends", func() bool { return w.source.stage() == stageReleased })
	w.await("clients go on", func() bool {
		list, _ := os.ReadFile(w.source.mover.ListFile)
		return strings.HasPrefix(string(list), "end ")
	})
	must(t, os.WriteFile(filepath.Join(w.shown(w.source), "written meanwhile"), []byte("data"), 0o600))
	want := contents(t, w.shown(w.source))
	// A supervisor that starts again does not freeze it again for the same task.
	w.source.end()
	w.source.start()
	w.source.set(w.task(internalv1.MoveSource))
	time.Sleep(300 * time.Millisecond)
	if s := w.source.stage(); s != stageReleased {
		t.Fatalf("it is %s again", s)
	}
	// The operator comes back with what it knew: the copy is verified, and the source frozen.
	w.source.away.Store(false)
	w.move.Step, w.move.Sequence = internalv1.MovePlacing, w.move.Sequence+1
	released := false
	w.watch = func() bool {
		report := w.target.report()
		released = released || report != nil && report.State == internalv1.MoveStateReleased
		return false
	}
	w.run()
	if !released {
		t.Error("the target did not find out")
	}
	w.mustHaveMoved(want)
}

func TestAFreezeThatWasPromisedDoesNotEndByItself(t *testing.T) {
	w := shortWorld(t)
	fill(t, w.shown(w.source))
	want := contents(t, w.shown(w.source))
	w.watch = func() bool { return w.target.stage() == stagePlaced }
	w.run()
	w.source.away.Store(true)
	time.Sleep(short.release + time.Second)
	w.source.away.Store(false)
	if s := w.source.stage(); s != stagePromised {
		t.Fatalf("it is %s", s)
	}
	w.watch = nil
	w.run()
	w.mustHaveMoved(want)
}

// All objects are lost before any of the changes: in the end one of the data servers shows the directory, with all that is in it, and not both.
func TestOneServerHasTheDirectoryWhenAllObjectsAreLost(t *testing.T) {
	counting := newWorld(t)
	fill(t, counting.shown(counting.source))
	counting.run()
	for _, atSource := range []bool{true, false} {
		most := counting.target.changes.Load()
		if atSource {
			most = counting.source.changes.Load()
		}
		for n := int64(1); n <= most; n++ {
			t.Run(fmt.Sprintf("the source: %v, change %d", atSource, n), func(t *testing.T) {
				t.Parallel()
				w := shortWorld(t)
				fill(t, w.shown(w.source))
				want := contents(t, w.shown(w.source))
				s := w.target
				if atSource {
					s = w.source
				}
				s.crashAt.Store(s.changes.Load() + n)
				w.watch = func() bool { return s.crashAt.Load() == 0 }
				w.run()
				w.source.set()
				w.target.set()
				has := func(s *server) bool {
					there, _ := exists(w.shown(s))
					return there
				}
				settled := 0
				w.await("one has it", func() bool {
					if has(w.source) && has(w.target) {
						t.Fatalf("both have it; the source is %q, the target %q", w.source.stage(), w.target.stage())
					}
					if !has(w.source) && !has(w.target) {
						settled = 0
					}
					settled++
					return settled > 200
				})
				at := w.source
				if has(w.target) {
					at = w.target
				}
				if got := contents(t, w.shown(at)); got != want {
					t.Errorf("%s has\n%s\ninstead of\n%s", at.name, got, want)
				}
			})
		}
	}
}

func TestCountsOfOpenFiles(t *testing.T) {
	for taken, want := range map[string]string{
		"":                         "map[]",
		"17":                       "map[]",
		"17 3 0\n":                 "map[a:3]",
		"17 3 0 " + inGrace + " 0": "map[a:3 b:" + inGrace + "]",
	} {
		if got := fmt.Sprint(countsOf(taken, []string{"a", "b"})); got != want {
			t.Errorf("%s: %s instead of %s", strconv.Quote(taken), got, want)
		}
	}
}
