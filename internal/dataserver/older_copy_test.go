package dataserver

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/howdah/howdah/internal/dataserver/volumes"
)

var quiet = slog.New(slog.DiscardHandler)

// emptyVolume is a directory with one fresh volume.
func emptyVolume(t *testing.T) (root string) {
	t.Helper()
	root = t.TempDir()
	mustWork(t, "make a volume", os.Mkdir(filepath.Join(root, "0"), 0o755))
	return root
}

// idsFile is the export ID table of volume 0.
func idsFile(root string) string { return filepath.Join(root, "0", volumes.MetaDir, "exports.json") }

// The volumes are those of an hour ago: shares have come, and one has gone, that they don't know of.
func TestNoIDComesBackWithAnOlderCopyOfTheVolumes(t *testing.T) {
	root, server := emptyVolume(t), sampleServer(1)
	storage := volumes.New(root, quiet)
	mustWork(t, "claim", storage.Claim(t.Context(), server))
	m := &manager{storage: storage, dataServer: server, log: quiet, ganesha: &supervisor{roundsFile: filepath.Join(t.TempDir(), "rounds")}, reporter: &memorySource{}}
	export := func(names ...string) {
		t.Helper()
		memory, err := storage.ReadIDs(t.Context(), server)
		mustWork(t, "read", err)
		m.memory, m.failing, m.exports = memory, map[string]*fault{}, nil
		for _, name := range names {
			m.exports = append(m.exports, newExport(shareSpec(name)))
		}
		_, err = m.allocate(t.Context())
		mustWork(t, "allocate", err)
		mustWork(t, "tell", m.tellShares(t.Context()))
		m.dataServer.Status = m.reporter.(*memorySource).status
	}
	export("a", "b")
	older, err := os.ReadFile(idsFile(root))
	mustWork(t, "keep a copy", err)
	export("a", "b", "gone")
	gone := m.memory.IDs("gone")[0]
	export("a", "b")
	mustWork(t, "restore the copy", os.WriteFile(idsFile(root), older, 0o600))
	export("a", "b", "new")
	if id := m.memory.IDs("new")[0]; id <= gone {
		t.Errorf("a share that is gone had id %d, and a new one has %d", gone, id)
	}
}
