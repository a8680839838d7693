package mover

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/internal/moving"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// fill makes files of every type that clients can make without rights of their own.
func fill(t *testing.T, directory string) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Join(directory, "deep", "er"), 0o750))
	for i, size := range []int{0, 1, 4096, 1 << 20} {
		data := make([]byte, size)
		_, _ = rand.Read(data)
		must(t, os.WriteFile(filepath.Join(directory, "file"+strconv.Itoa(i)), data, 0o640))
	}
	must(t, os.WriteFile(filepath.Join(directory, "deep", "a\nname \xff"), []byte("text"), 0o600))
	must(t, os.Symlink("../file1", filepath.Join(directory, "deep", "link")))
	must(t, os.Link(filepath.Join(directory, "file2"), filepath.Join(directory, "deep", "er", "same")))
	sparse, err := os.Create(filepath.Join(directory, "sparse"))
	must(t, err)
	_, err = sparse.WriteAt([]byte("end"), 8<<20)
	must(t, errors.Join(err, sparse.Close()))
	must(t, os.Chtimes(filepath.Join(directory, "file3"), time.Unix(1, 5), time.Unix(1, 7)))
}

// contents describes a tree, to be compared.
func contents(t *testing.T, directory string) string {
	t.Helper()
	var text bytes.Buffer
	must(t, writeManifest(&text, directory, time.Time{}))
	lines := strings.Split(text.String(), "\n")
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

func paths(t *testing.T, directory string) (found []string) {
	t.Helper()
	must(t, filepath.WalkDir(directory, func(path string, _ fs.DirEntry, err error) error {
		if relative, _ := filepath.Rel(directory, path); relative != "." {
			found = append(found, relative)
		}
		if path != directory && errors.Is(err, fs.ErrNotExist) {
			return nil // It is removed meanwhile.
		}
		return err
	}))
	slices.Sort(found)
	return found
}

func (w *world) shown(s *server) string { return filepath.Join(s.root, "0", share, movePath) }

// mustHaveMoved fails unless the target has what the directory had, and the source has it in the trash.
func (w *world) mustHaveMoved(want string) {
	w.t.Helper()
	if w.outcome != moving.Done || !w.flipped {
		w.t.Fatalf("the move ended with %d", w.outcome)
	}
	if got := contents(w.t, w.shown(w.target)); got != want {
		w.t.Errorf("the target has\n%s\ninstead of\n%s", got, want)
	}
	if there, _ := exists(w.shown(w.source)); there {
		w.t.Error("the source still has the directory")
	}
	if trash := contents(w.t, filepath.Join(movesIn(w.source.root, 0), moveID, dataDir)); trash != want {
		w.t.Errorf("the trash has\n%s\ninstead of\n%s", trash, want)
	}
	for _, s := range []*server{w.source, w.target} {
		for _, path := range paths(w.t, filepath.Join(s.root, "0", share)) {
			if strings.Contains(path, hiddenPrefix) {
				w.t.Errorf("%s keeps %s", s.name, path)
			}
		}
	}
}

func TestADirectoryMoves(t *testing.T) {
	w := newWorld(t)
	directory := w.shown(w.source)
	fill(t, directory)
	must(t, os.Chmod(filepath.Dir(directory), 0o711))
	w.meanwhile = func(round int) {
		// Files are made, changed, renamed and removed while they are copied.
		must(t, os.WriteFile(filepath.Join(directory, "busy"+strconv.Itoa(round%5)), []byte(strconv.Itoa(round)), 0o644))
		_ = os.Remove(filepath.Join(directory, "busy"+strconv.Itoa((round+2)%5)))
	}
	var before string
	w.run()
	before = contents(t, filepath.Join(movesIn(w.source.root, 0), moveID, dataDir))
	w.mustHaveMoved(before)
	if info, err := os.Stat(filepath.Dir(w.shown(w.target))); err != nil || info.Mode().Perm() != 0o711 {
		t.Errorf("the directory above is %v, %v", info, err)
	}
	if list, _ := os.ReadFile(w.source.mover.ListFile); !strings.HasPrefix(string(list), "stale ") {
		t.Errorf("the list is %q", list)
	}
}

// Before each change that the two supervisors make on their volumes one of them ends, and goes on from what is on the volumes.
func TestAMoveSurvivesTheEndOfItsServersAtEveryStep(t *testing.T) {
	steps := map[bool]int64{}
	for _, atSource := range []bool{true, false} {
		w := newWorld(t)
		fill(t, w.shown(w.source))
		want := contents(t, w.shown(w.source))
		w.run()
		w.mustHaveMoved(want)
		steps[atSource] = w.target.changes.Load()
		if atSource {
			steps[atSource] = w.source.changes.Load()
		}
	}
	if steps[true] < 6 || steps[false] < 6 {
		t.Fatalf("a move makes %d changes at the source and %d at the target", steps[true], steps[false])
	}
	for _, atSource := range []bool{true, false} {
		for n := int64(1); n <= steps[atSource]; n++ {
			t.Run(fmt.Sprintf("the source: %v, change %d", atSource, n), func(t *testing.T) {
				t.Parallel()
				w := newWorld(t)
				fill(t, w.shown(w.source))
				want := contents(t, w.shown(w.source))
				crashing := w.target
				if atSource {
					crashing = w.source
				}
				crashing.crashAt.Store(n)
				w.run()
				w.mustHaveMoved(want)
				// The last one can come after the move is over.
				w.await(fmt.Sprintf("it makes %d changes", n), func() bool { return crashing.changes.Load() >= n })
			})
		}
	}
}

func TestACancelledMoveLeavesTheSourceAsItWas(t *testing.T) {
	for name, when := range map[string]func(w *world) bool{
		"while it is copied": func(w *world) bool { return w.target.report() != nil && w.target.report().Passes > 0 },
		"while it is frozen": func(w *world) bool { return w.move.Step == internalv1.MoveFreezing },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			fill(t, w.shown(w.source))
			want := contents(t, w.shown(w.source))
			w.watch = func() bool {
				w.wanted = w.wanted && !when(w)
				return false
			}
			w.run()
			if w.outcome != moving.Cancelled {
				t.Fatalf("the move ended with %d", w.outcome)
			}
			if got := contents(t, w.shown(w.source)); got != want {
				t.Errorf("the source has\n%s\ninstead of\n%s", got, want)
			}
			for deadline := time.Now().Add(testLimit); ; time.Sleep(5 * time.Millisecond) {
				left := append(paths(t, movesIn(w.source.root, 0)), paths(t, movesIn(w.target.root, 0))...)
				if len(left) == 0 {
					break
				}
				if time.Now().After(deadline) {
					t.Fatalf("left: %q", left)
				}
			}
			if there, _ := exists(w.shown(w.target)); there {
				t.Error("the target has the directory")
			}
		})
	}
}

// A directory goes back to the data server that it has just left.
func TestADirectoryComesBackAtOnce(t *testing.T) {
	w := newWorld(t)
	fill(t, w.shown(w.source))
	want := contents(t, w.shown(w.source))
	w.run()
	w.mustHaveMoved(want)
	w.source, w.target, w.back = w.target, w.source, true
	w.move.ID, w.move.Step, w.move.Sequence, w.move.Attempt = "move-back", internalv1.MoveCopying, 1, 0
	w.ended, w.flipped = false, false
	w.run()
	if w.outcome != moving.Done {
		t.Fatalf("it ended with %d", w.outcome)
	}
	if got := contents(t, w.shown(w.target)); got != want {
		t.Errorf("it has\n%s\ninstead of\n%s", got, want)
	}
	list, err := os.ReadFile(w.target.mover.ListFile)
	must(t, err)
	if refused := " " + encode(filepath.Base(movePath)) + " "; strings.Contains(string(list), refused) {
		t.Errorf("its name is refused where it is: %s", list)
	}
}
