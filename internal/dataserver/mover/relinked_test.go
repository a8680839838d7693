package mover

import (
	"bufio"
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"
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

// Rsync has made four names one file, of which the source has two and two. A list of the source's files has them in any order, which is that of its file system:
// whatever it is, no two that are not one file at the source stay together. Otherwise rsync would make them one again, and the move would not end.
func TestNamesOfAFileThatIsTooManyPartInAnyOrder(t *testing.T) {
	source := t.TempDir()
	pairs := map[string]string{"c": "f", "f": "c", "d": "e", "e": "d"}
	for _, pair := range [][2]string{{"c", "f"}, {"d", "e"}} {
		must(t, os.WriteFile(filepath.Join(source, pair[0]), []byte("one"), 0o644))
		must(t, os.Link(filepath.Join(source, pair[0]), filepath.Join(source, pair[1])))
	}
	for _, order := range permutations([]string{"c", "d", "e", "f"}) {
		var manifest bytes.Buffer
		writer := bufio.NewWriter(&manifest)
		for _, name := range order {
			found, err := describe(source, name, func(time.Time) bool { return false })
			must(t, err)
			must(t, writeLine(writer, found))
		}
		must(t, writeLine(writer, entry{Path: endOfManifest}))
		must(t, writeLine(writer, last{Entries: 5}))
		must(t, writer.Flush())
		copied := t.TempDir()
		must(t, os.WriteFile(filepath.Join(copied, "c"), []byte("one"), 0o644))
		for _, name := range []string{"d", "e", "f"} {
			must(t, os.Link(filepath.Join(copied, "c"), filepath.Join(copied, name)))
		}
		if err := compareManifest(bufio.NewReader(&manifest), copied); err == nil {
			t.Errorf("%v: no difference was found", order)
		}
		names := map[uint64][]string{}
		for _, name := range order {
			if inode, err := inodeOf(filepath.Join(copied, name)); err == nil {
				names[inode] = append(names[inode], name)
			}
		}
		for _, same := range names {
			if len(same) > 2 || len(same) == 2 && pairs[same[0]] != same[1] {
				t.Errorf("%v: %v are still one file", order, same)
			}
		}
	}
}

func permutations(all []string) (orders [][]string) {
	if len(all) < 2 {
		return [][]string{all}
	}
	for i, first := range all {
		rest := append(append([]string{}, all[:i]...), all[i+1:]...)
		for _, order := range permutations(rest) {
			orders = append(orders, append([]string{first}, order...))
		}
	}
	return orders
}
