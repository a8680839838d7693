package mover

import (
	"os"
	"path/filepath"
	"testing"
)

// Two names of one file become two files, and names change their partners, while the directory is copied. Rsync, which writes in place, leaves the copy's names
// together.
func TestNamesThatWereOneFileAreTwoInTheCopy(t *testing.T) {
	w := shortWorld(t)
	directory := w.shown(w.source)
	fill(t, directory)
	for _, pair := range [][2]string{{"a", "b"}, {"c", "d"}, {"e", "f"}} {
		must(t, os.WriteFile(filepath.Join(directory, pair[0]), []byte("one"), 0o644))
		must(t, os.Link(filepath.Join(directory, pair[0]), filepath.Join(directory, pair[1])))
	}
	once := false
	w.meanwhile = func(int) {
		if report := w.target.report(); once || report == nil || report.Passes == 0 {
			return
		}
		once = true
		replace := func(name string, make func(at string) error) {
			must(t, make(filepath.Join(directory, "new")))
			must(t, os.Rename(filepath.Join(directory, "new"), filepath.Join(directory, name)))
		}
		replace("b", func(at string) error { return os.WriteFile(at, []byte("two"), 0o644) })
		replace("d", func(at string) error { return os.Link(filepath.Join(directory, "e"), at) })
		replace("f", func(at string) error { return os.Link(filepath.Join(directory, "c"), at) })
	}
	w.run()
	w.mustHaveMoved(contents(t, filepath.Join(movesIn(w.source.root, 0), moveID, dataDir)))
	for name, same := range map[[2]string]bool{{"a", "b"}: false, {"c", "f"}: true, {"e", "d"}: true, {"c", "d"}: false} {
		one, err := inodeOf(filepath.Join(w.shown(w.target), name[0]))
		must(t, err)
		other, err := inodeOf(filepath.Join(w.shown(w.target), name[1]))
		must(t, err)
		if (one == other) != same {
			t.Errorf("%s and %s are one file: %v", name[0], name[1], one == other)
		}
	}
}
