package durable

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// tree is every file below a directory with its text.
func tree(t *testing.T, root string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			found[path] = "directory"
			return err
		}
		text, err := os.ReadFile(path)
		found[path] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestAFileIsReplacedAsAWhole(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	mustWork(t, "write", Write(path, []byte("one")))
	before, err := os.Stat(path)
	mustWork(t, "stat", err)
	mustWork(t, "the same text", Write(path, []byte("one")))
	if after, err := os.Stat(path); err != nil || !os.SameFile(before, after) {
		t.Errorf("the same text made another file: %v", err)
	}
	mustWork(t, "another text", Write(path, []byte("two")))
	if got := tree(t, filepath.Dir(path)); len(got) != 2 || got[path] != "two" {
		t.Errorf("%v", got)
	}
}

// After an error of the volume the new text is there as long as it is in memory: it is not durable yet.
func TestAFileThatWasNotMadeDurableIsWrittenAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	syncs, fault := 0, syscall.EIO
	before := syncOf
	defer func() { syncOf = before }()
	syncOf = func(*os.File) error {
		syncs++
		if fault != 0 {
			return fault
		}
		return nil
	}
	if err := Write(path, []byte("one")); !errors.Is(err, syscall.EIO) {
		t.Fatalf("%v", err)
	}
	if err := Write(path, []byte("one")); !errors.Is(err, syscall.EIO) {
		t.Errorf("the directory was never synced: %v", err)
	}
	fault = 0
	mustWork(t, "write", Write(path, []byte("one")))
	syncs = 0
	mustWork(t, "the same text", Write(path, []byte("one")))
	if syncs != 0 {
		t.Errorf("it was synced again")
	}
}

func mustWork(t *testing.T, what string, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}
