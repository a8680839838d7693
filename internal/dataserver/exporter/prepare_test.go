package exporter

import (
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/internal/dataserver/dataservertest"
	"github.com/howdah/howdah/internal/dataserver/exportids"
	"github.com/howdah/howdah/internal/dataserver/kubeapi"
	"github.com/howdah/howdah/internal/dataserver/server"
	"github.com/howdah/howdah/internal/dataserver/supervisor"
	"github.com/howdah/howdah/internal/dataserver/volumes"
	"github.com/howdah/howdah/internal/naming"
)

// If all ids are those of exports that are served, these go on, and only the newest share is refused.
func TestOnlyTheNewestShareIsRefusedWhenIDsEnd(t *testing.T) {
	storage := volumes.New(dataservertest.EmptyVolume(t), quiet)
	m := &Exporter{
		Config: Config{
			Log:      quiet,
			Expected: &server.Expectation{},
			Nodes:    server.NewNodes(nil),
		},
		storage:    storage,
		dataServer: dataservertest.DataServer(1),
		failing:    map[string]*kubeapi.Fault{},
		serving:    map[string]server.FileSystem{},
	}
	m.Ganesha = &supervisor.Supervisor{
		Config: supervisor.Config{
			RoundsFile: filepath.Join(t.TempDir(), "rounds"),
		},
	}
	mustWork(t, "claim", storage.Claim(t.Context(), m.dataServer))
	served := map[string]exportids.Entry{}
	for number := exportids.Number(1); number <= exportids.MaxID-2; number++ {
		share := fmt.Sprintf("served-%d", number)
		served[share] = exportids.Entry{ExportID: number}
		m.serving[naming.ExportPseudo(share, 0)] = server.FileSystem{}
	}
	m.memory = &exportids.Table{HighWater: exportids.MaxID - 2, Parts: []map[string]exportids.Entry{served}}
	for _, name := range []string{"oldest", "older", "newest"} {
		m.exports = append(m.exports, dataservertest.NewExport(dataservertest.ShareSpec(name)))
	}
	exports, err := m.allocate(t.Context())
	mustWork(t, "allocate", err)
	if len(exports) != 2 || kubeapi.ShareOf(exports[0]) != "oldest" || kubeapi.ShareOf(exports[1]) != "older" {
		t.Errorf("%v are exported", exports)
	}
	if failure := m.failing["newest"]; len(m.failing) != 1 || failure == nil || failure.Reason != internalv1.ReasonExportIDsExhausted ||
		!errors.Is(failure.Err, exportids.ErrExhausted) {
		t.Errorf("failing: %v", m.failing)
	}
}
