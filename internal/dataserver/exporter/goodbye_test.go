package exporter

import (
	"context"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/internal/dataserver/dataservertest"
	"github.com/howdah/howdah/internal/dataserver/server"
	"github.com/howdah/howdah/internal/dataserver/supervisor"
	"github.com/howdah/howdah/internal/dataserver/volumes"
)

func TestADataServerThatGoesForGoodGivesBackItsExportsAndNoOtherDoes(t *testing.T) {
	soon := func() func() bool { // after the third look
		looks := 0
		return func() bool {
			looks++
			return looks > 3
		}
	}
	for name, tc := range map[string]struct {
		takesNone bool
		isDeleted func() bool
		exports   int
	}{
		"its pod starts again":          {false, func() bool { return false }, 1},
		"it is in maintenance":          {true, func() bool { return false }, 1},
		"its object is gone":            {false, func() bool { return true }, 0},
		"its object goes after its pod": {true, soon(), 0},
		"it is not announced":           {false, soon(), 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run := t.TempDir()
			key := filepath.Join(run, "key")
			mustWork(t, "write a key", os.WriteFile(key, make([]byte, supervisor.HandleKeyBytes), 0o400))
			supervised, stopGanesha := context.WithCancel(t.Context())
			daemon := &losing{t: t, configFile: filepath.Join(run, "ganesha.conf"), shutOut: map[string]bool{}}
			m := &Exporter{
				Config: Config{
					ConfigFile: daemon.configFile,
					Keys:       supervisor.HandleKeys{Current: key},
					Own:        netip.MustParseAddr("127.1.2.3"),
					Ganesha:    daemon,
					Prober:     daemon,
					Log:        quiet,
					Reporter:   &dataservertest.Statuses{},
					Metrics:    server.NewMetrics("default", "training-0"),
					IsDeleted:  tc.isDeleted,
					Expected:   &server.Expectation{},
					Nodes:      server.NewNodes(nil),
				},
				storage:    volumes.New(dataservertest.EmptyVolume(t), quiet),
				dataServer: dataservertest.DataServer(1),
				exports:    []*internalv1.ShareExport{dataservertest.NewExport(dataservertest.ShareSpec("a"))},
				now:        time.Now,
			}
			if tc.takesNone {
				m.dataServer.Spec.NewDirectories = internalv1.NewDirectoriesForbid
			}
			for range 3 {
				if failure := m.apply(t.Context(), supervised); failure != nil {
					t.Fatal(failure)
				}
			}
			if len(daemon.exports) != 1 {
				t.Fatalf("exported: %v", daemon.exports)
			}
			m.stop(t.Context(), stopGanesha)
			if len(daemon.exports) != tc.exports {
				t.Errorf("exported in the end: %v, want %d", daemon.exports, tc.exports)
			}
		})
	}
}
