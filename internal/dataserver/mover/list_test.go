package mover

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
)

// Ganesha ends after a list was written for it and before it takes that. The next one gets a list of its own at its start, of another number.
func TestAGaneshaThatStartsAgainTakesTheNewestList(t *testing.T) {
	run := t.TempDir()
	m := New(Config{Root: t.TempDir(), ListFile: filepath.Join(run, "moving"), TakenFile: filepath.Join(run, "taken"), Now: time.Now})
	taken := make(chan error, 1)
	go func() {
		_, err := m.tell(t.Context())
		taken <- err
	}()
	number := func() string {
		text, _ := os.ReadFile(m.ListFile)
		_, number, _ := strings.Cut(string(text), "end ")
		return strings.TrimSpace(number)
	}
	for number() == "" {
		time.Sleep(time.Millisecond)
	}
	must(t, BeforeStart(m.Root, m.ListFile))
	for {
		must(t, os.WriteFile(m.TakenFile, []byte(number()), 0o600))
		select {
		case err := <-taken:
			must(t, err)
			return
		case <-time.After(time.Millisecond):
		}
	}
}

// What clients remove while ganesha learns which inodes it refuses frees its inode. A new file of another directory gets it, and must be served.
func TestInodesThatAreFreeAreNotRefused(t *testing.T) {
	w := newWorld(t)
	fill(t, w.shown(w.source))
	removed := filepath.Join(w.shown(w.source), "removed")
	must(t, os.WriteFile(removed, nil, 0o600))
	inode, err := inodeOf(removed)
	must(t, err)
	w.source.mover.Before = func(change string) {
		if change == "refuse" {
			_ = os.Remove(removed)
		}
	}
	w.openFiles = internalv1.MoveOpenFilesInterrupt
	w.watch = func() bool { return w.source.stage() == stageFrozen }
	w.run()
	list, err := os.ReadFile(place{root: w.source.root, id: moveID}.inodes())
	must(t, err)
	var refused []uint64
	for ; len(list) > 0; list = list[8:] {
		refused = append(refused, binary.NativeEndian.Uint64(list))
	}
	if len(refused) == 0 || slices.Contains(refused, inode) {
		t.Errorf("%d inodes are refused, that of a file that was removed is %d: %d", len(refused), inode, refused)
	}
}
