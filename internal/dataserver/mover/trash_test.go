package mover

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// putIntoTrash puts directories into the trash of a volume, an hour of them, each with an inode of its own.
func putIntoTrash(t *testing.T, root string, number, shares int) []*journal {
	t.Helper()
	var all []*journal
	for i := range number {
		share := "share-" + strconv.Itoa(i%shares)
		must(t, os.MkdirAll(filepath.Join(root, "0", share), 0o755))
		j := &journal{ID: fmt.Sprintf("move-%04d", i), Share: share, Path: "d" + strconv.Itoa(i), Stage: stageLeft, Left: time.Unix(int64(i), 0), KeepSeconds: 1 << 20}
		where := placeOf(root, j)
		must(t, where.write(j))
		must(t, where.writeInodes([]uint64{uint64(i + 100)}))
		all = append(all, j)
	}
	return all
}

// refusedInodes are the inodes that a list has ganesha refuse, by export. It takes the list as ganesha does.
func refusedInodes(t *testing.T, list string) map[string][]uint64 {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(list), "\n")
	if len(lines) > mostLines || !strings.HasPrefix(lines[len(lines)-1], "end ") {
		t.Fatalf("the list has %d lines, and ends with %q", len(lines), lines[len(lines)-1])
	}
	found := map[string][]uint64{}
	for _, line := range lines[:len(lines)-1] {
		words := strings.Split(line, " ")
		if words[4] == none {
			continue
		}
		export, err := hex.DecodeString(words[1])
		must(t, err)
		file, err := hex.DecodeString(words[4])
		must(t, err)
		text, err := os.ReadFile(string(file))
		must(t, err)
		for ; len(text) > 0; text = text[8:] {
			found[filepath.Base(string(export))] = append(found[filepath.Base(string(export))], binary.NativeEndian.Uint64(text))
		}
	}
	return found
}

// A data server that is emptied gives thousands of directories away within a day. Ganesha takes a list of some length only, and does not start with a
// longer one.
func TestThousandsOfDirectoriesInTheTrashFitTheList(t *testing.T) {
	patch, err := os.ReadFile("../../ganesha/build/patches/0432-directories-move.patch")
	must(t, err)
	if !strings.Contains(string(patch), fmt.Sprintf("#define MOVES_MAX %d\n", mostLines)) {
		t.Errorf("ganesha does not take %d lines", mostLines)
	}
	for _, number := range []int{1, 127, 128, 600} {
		t.Run(strconv.Itoa(number), func(t *testing.T) {
			root, run := t.TempDir(), t.TempDir()
			listFile := filepath.Join(run, "moving")
			putIntoTrash(t, root, number, 3)
			must(t, os.MkdirAll(filepath.Join(root, "0", "share-0", "f"), 0o755))
			must(t, placeOf(root, &journal{ID: "frozen-1", Share: "share-0", Path: "f"}).write(&journal{ID: "frozen-1", Share: "share-0", Path: "f", Stage: stageFrozen}))
			must(t, BeforeStart(root, listFile))
			text, err := os.ReadFile(listFile)
			must(t, err)
			refused := refusedInodes(t, string(text))
			for i := range number {
				if share := "share-" + strconv.Itoa(i%3); !slices.Contains(refused[share], uint64(i+100)) {
					t.Fatalf("inode %d of %s is not refused", i+100, share)
				}
			}
			if !strings.Contains(string(text), encode(hiddenPrefix+"frozen-1")) || !strings.Contains(string(text), encode(hiddenPrefix+fmt.Sprintf("move-%04d", number-1))) {
				t.Error("what is frozen, or has left last, has no line of its own")
			}
		})
	}
}

func TestFilesOfAnOlderListAreRemovedWhenGaneshaHasTheNext(t *testing.T) {
	root, run := t.TempDir(), t.TempDir()
	listFile := filepath.Join(run, "moving")
	all := putIntoTrash(t, root, 300, 2)
	files := func() []string {
		found, err := filepath.Glob(listFile + trashPrefix + "*")
		must(t, err)
		return found
	}
	must(t, BeforeStart(root, listFile))
	before := files()
	must(t, placeOf(root, all[0]).forget(t.Context()))
	must(t, BeforeStart(root, listFile))
	both := files()
	long := time.Now().Add(-time.Hour)
	for _, file := range both {
		must(t, os.Chtimes(file, long, long))
	}
	forgetTrash(listFile)
	after := files()
	if len(before) != 2 || len(both) != 3 || len(after) != 2 || slices.Contains(after, "") {
		t.Fatalf("files %q, then %q, in the end %q", before, both, after)
	}
	text, err := os.ReadFile(listFile)
	must(t, err)
	refusedInodes(t, string(text))
}

// Each share with something in the trash takes a line. What does not fit is not moved.
func TestADirectoryStaysIfTheTrashHasTooManyShares(t *testing.T) {
	root := t.TempDir()
	all := putIntoTrash(t, root, mostExports, mostExports)
	if err := hasRoomFor(all, exportOf{share: "share-7"}); err != nil {
		t.Errorf("one of a share that has something there: %v", err)
	}
	if err := hasRoomFor(all, exportOf{share: "another"}); err == nil || !strings.Contains(err.Error(), "trashSeconds") {
		t.Errorf("one of another share: %v", err)
	}
	must(t, BeforeStart(root, filepath.Join(t.TempDir(), "moving")))
}
