package exporter

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/howdah/howdah/internal/dataserver/dataservertest"
	"github.com/howdah/howdah/internal/dataserver/kubeapi"
	"github.com/howdah/howdah/internal/dataserver/server"
	"github.com/howdah/howdah/internal/dataserver/supervisor"
	"github.com/howdah/howdah/internal/dataserver/volumes"
)

// idsFile is the export ID table of volume 0.
func idsFile(root string) string { return filepath.Join(root, "0", volumes.MetaDir, "exports.json") }

// The volumes are those of an hour ago: shares have come, and one has gone, that they don't know of.
func TestNoIDComesBackWithAnOlderCopyOfTheVolumes(t *testing.T) {
	root, dataServer := dataservertest.EmptyVolume(t), dataservertest.DataServer(1)
	storage := volumes.New(root, quiet)
	mustWork(t, "claim", storage.Claim(t.Context(), dataServer))
	m := &Exporter{
		Config: Config{
			Log: quiet,
			Ganesha: &supervisor.Supervisor{
				Config: supervisor.Config{
					RoundsFile: filepath.Join(t.TempDir(), "rounds"),
				},
			},
			Reporter: &dataservertest.Statuses{},
			Expected: &server.Expectation{},
			Nodes:    server.NewNodes(nil),
		},
		storage:    storage,
		dataServer: dataServer,
	}
	export := func(names ...string) {
		t.Helper()
		memory, err := storage.ReadIDs(t.Context(), dataServer)
		mustWork(t, "read", err)
		m.memory, m.failing, m.exports = memory, map[string]*kubeapi.Fault{}, nil
		for _, name := range names {
			m.exports = append(m.exports, dataservertest.NewExport(dataservertest.ShareSpec(name)))
		}
		_, err = m.allocate(t.Context())
		mustWork(t, "allocate", err)
		mustWork(t, "report", m.reportShares(t.Context()))
		m.dataServer.Status = m.Reporter.(*dataservertest.Statuses).Status
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
