package realtest

import (
	"os"
	"path/filepath"
	"sync"
	"testing"
)

func TestFoldersOfKilledTestsAreRemoved(t *testing.T) {
	in := t.TempDir()
	used, lock, err := newScratch(in)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = lock.Close() }()
	left, ended, err := newScratch(in)
	if err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(in, "another")
	for _, folder := range []string{filepath.Join(left, "volumes"), other} {
		if err := os.Mkdir(folder, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	_ = ended.Close() // As the end of its process does.
	if _, next, err := newScratch(in); err != nil {
		t.Fatal(err)
	} else {
		defer func() { _ = next.Close() }()
	}
	for folder, want := range map[string]bool{used: true, left: false, other: true} {
		if _, err := os.Stat(folder); (err == nil) != want {
			t.Errorf("%s: %v; it is to be there: %v", folder, err, want)
		}
	}
}

// Tests that begin at the same moment remove no folder of each other.
func TestTestsThatBeginTogetherHaveTheirFolders(t *testing.T) {
	in := t.TempDir()
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			folder, lock, err := newScratch(in)
			if err != nil {
				t.Error(err)
				return
			}
			defer func() { _ = lock.Close() }()
			if err := os.WriteFile(filepath.Join(folder, "file"), nil, 0o600); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}
