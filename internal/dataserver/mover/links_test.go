package mover

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestNoLinkLeadsAMoveOutOfAVolume plants symbolic links where an attacker who took ganesha over can, and does all that a move does on a volume by
// itself. Nothing outside may change.
func TestNoLinkLeadsAMoveOutOfAVolume(t *testing.T) {
	for name, at := range map[string]func(p place) (path, target string){
		"Howdah's directory":     func(p place) (string, string) { return filepath.Dir(movesIn(p.root, p.volume)), "own" },
		"the directory of moves": func(p place) (string, string) { return movesIn(p.root, p.volume), "own/moves" },
		"a move's directory":     func(p place) (string, string) { return p.directory(), "own/moves/" + moveID },
		"its journal": func(p place) (string, string) {
			return filepath.Join(p.directory(), journalFile), "own/moves/" + moveID + "/" + journalFile
		},
		"its inodes": func(p place) (string, string) { return p.inodes(), "own/moves/" + moveID + "/" + inodesFile },
		"the copy":   func(p place) (string, string) { return p.data(), "own/moves/" + moveID + "/" + dataDir },
		"the share":  func(p place) (string, string) { return p.export(), "share" },
	} {
		t.Run(name, func(t *testing.T) {
			outside := t.TempDir()
			p := place{root: t.TempDir(), id: moveID, share: share, path: movePath}
			must(t, os.MkdirAll(p.export(), 0o755))
			must(t, p.write(&journal{ID: moveID, Share: share, Path: movePath, Stage: stageCopying}))
			must(t, p.makeData())
			for _, file := range []string{journalFile, inodesFile, dataDir + "/file"} {
				path := filepath.Join(outside, "own/moves", moveID, file)
				must(t, os.MkdirAll(filepath.Dir(path), 0o755))
				must(t, os.WriteFile(path, []byte("of the node"), 0o600))
			}
			must(t, os.MkdirAll(filepath.Join(outside, "share"), 0o755))
			path, target := at(p)
			must(t, os.RemoveAll(path))
			must(t, os.Symlink(filepath.Join(outside, target), path))
			before := paths(t, outside)

			if found, _ := journals(p.root); len(found) > 0 && name != "the copy" && name != "its inodes" && name != "the share" {
				t.Errorf("it reads a journal outside of the volume: %+v", found[0])
			}
			_ = p.write(&journal{ID: moveID, Share: share, Path: movePath, Stage: stageFreezing})
			_ = p.writeInodes([]uint64{1})
			_ = p.makeData()
			_ = p.rename(p.data(), p.hidden())
			_ = p.rename(p.hidden(), p.data())
			_ = syncBoth(p)
			_ = p.remove(t.Context(), p.inodes())
			_ = p.forget(t.Context())

			if diff := cmp.Diff(before, paths(t, outside)); diff != "" {
				t.Errorf("it changed outside of the volume: %s", diff)
			}
			for _, file := range []string{journalFile, inodesFile, dataDir + "/file"} {
				text, err := os.ReadFile(filepath.Join(outside, "own/moves", moveID, file))
				if err != nil || string(text) != "of the node" {
					t.Errorf("%s outside has %q: %v", file, text, err)
				}
			}
		})
	}
}
