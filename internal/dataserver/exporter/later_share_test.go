package exporter

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/internal/dataserver/dataservertest"
	"github.com/howdah/howdah/internal/dataserver/exportids"
	"github.com/howdah/howdah/internal/dataserver/kubeapi"
	"github.com/howdah/howdah/internal/dataserver/server"
	"github.com/howdah/howdah/internal/dataserver/volumes"
)

// An API that was restored from a backup of an hour ago shows the deletion of a share of then. Meanwhile another share of its name was made.
func TestTheEndOfAnEarlierShareLeavesTheDataOfALaterOne(t *testing.T) {
	for name, tc := range map[string]struct {
		served []string
		now    string
		stays  bool
	}{
		"the directory is the one that it was served from": {[]string{"one"}, "one", false},
		"it is another one":                 {[]string{"one"}, "two", true},
		"the export was never served":       {nil, "two", false},
		"the directory has no identity":     {[]string{"one"}, "", false},
		"the export is of an older version": {[]string{""}, "two", false},
	} {
		t.Run(name, func(t *testing.T) {
			root, dataServer := dataservertest.EmptyVolume(t), dataservertest.DataServer(1)
			storage := volumes.New(root, quiet)
			mustWork(t, "claim", storage.Claim(t.Context(), dataServer))
			data := filepath.Join(root, "0", "s", "file")
			mustWork(t, "make", os.MkdirAll(filepath.Dir(data), 0o755))
			mustWork(t, "write", os.WriteFile(data, []byte("data"), 0o644))
			export := dataservertest.NewExport(dataservertest.ShareSpec("s"))
			export.DeletionTimestamp, export.Spec.DataPolicy, export.Status.RootIDs = &metav1.Time{Time: time.Now()}, internalv1.DataDelete, tc.served
			supervised, stop := context.WithCancel(t.Context())
			m := &Exporter{
				Config:     Config{Log: quiet, Expected: &server.Expectation{}, Nodes: server.NewNodes(nil)},
				storage:    storage,
				dataServer: dataServer,
				exports:    []*internalv1.ShareExport{export},
				now:        time.Now,
				failing:    map[string]*kubeapi.Fault{},
				serving:    map[string]server.FileSystem{},
				leaving:    map[string]bool{},
			}
			defer m.group.Wait()
			defer stop()
			memory, err := storage.ReadIDs(t.Context(), dataServer)
			mustWork(t, "read", err)
			memory.HighWater, memory.Parts[0]["s"] = 1, exportids.Entry{ExportID: 1, RootID: tc.now}
			m.memory = memory
			m.remove(t.Context(), supervised)
			if _, err := os.Stat(data); (err == nil) != tc.stays {
				t.Errorf("the data stays: %v", err == nil)
			}
			if !m.removed[export.UID] || len(m.failing) > 0 {
				t.Errorf("the export stays: %v", m.failing)
			}
		})
	}
}
