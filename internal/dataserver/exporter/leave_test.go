package exporter

import (
	"context"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/dataserver/dataservertest"
	"github.com/howdah/howdah/internal/dataserver/server"
	"github.com/howdah/howdah/internal/dataserver/supervisor"
	"github.com/howdah/howdah/internal/dataserver/volumes"
	"github.com/howdah/howdah/internal/serverpod"
)

// New connections are to be led elsewhere before ganesha is gone: a client that meets a closed port waits longer than one that meets its successor.
func TestADataServerReportsThatItLeavesAndServesUntilNoReferralLeadsToIt(t *testing.T) {
	for name, tc := range map[string]struct {
		isDeleted bool
		goesOn    time.Duration
	}{
		"another pod comes in its place": {false, serverpod.LeaveAllowance},
		"no pod comes in its place":      {true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			storage := dataservertest.EmptyVolume(t)
			run := t.TempDir()
			key := filepath.Join(run, "key")
			mustWork(t, "write a key", os.WriteFile(key, make([]byte, supervisor.HandleKeyBytes), 0o400))
			synctest.Test(t, func(t *testing.T) {
				supervised, stopGanesha := context.WithCancel(t.Context())
				source := &dataservertest.Statuses{}
				daemon := &losing{t: t, configFile: filepath.Join(run, "ganesha.conf"), shutOut: map[string]bool{}}
				m := &Exporter{
					Config: Config{
						ConfigFile: daemon.configFile,
						Keys:       supervisor.HandleKeys{Current: key},
						Own:        netip.MustParseAddr("127.1.2.3"),
						Ganesha:    daemon,
						Prober:     daemon,
						Log:        quiet,
						Reporter:   source,
						Metrics:    server.NewMetrics("default", "training-0"),
						IsDeleted:  func() bool { return tc.isDeleted },
						Leave:      serverpod.LeaveAllowance,
						Expected:   &server.Expectation{},
						Nodes:      server.NewNodes(nil),
					},
					storage:    volumes.New(storage, quiet),
					dataServer: dataservertest.DataServer(1),
					now:        time.Now,
				}
				if failure := m.apply(supervised, supervised); failure != nil {
					t.Fatal(failure)
				}
				began := time.Now()
				m.stop(t.Context(), func() {
					if on := time.Since(began); on != tc.goesOn {
						t.Errorf("ganesha was stopped after %v, want %v", on, tc.goesOn)
					}
					if !m.Expected.IsStopping() {
						t.Error("its pod was still ready when ganesha was stopped")
					}
					stopGanesha()
				})
				if ready := meta.FindStatusCondition(source.Status.Conditions, v1alpha1.ConditionReady); ready == nil || ready.Reason != internalv1.ReasonStopping {
					t.Errorf("the Ready condition is %+v, want the reason %s", ready, internalv1.ReasonStopping)
				}
			})
		})
	}
}
