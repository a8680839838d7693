package durable

import (
	"io/fs"
	"os"
	"path/filepath"
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

func mustWork(t *testing.T, what string, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}
