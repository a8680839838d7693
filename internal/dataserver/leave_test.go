package dataserver

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
	"github.com/howdah/howdah/internal/dataserver/volumes"
	"github.com/howdah/howdah/internal/serverpod"
)

// New connections are to be led elsewhere before ganesha is gone: a client that meets a closed port waits longer than one that meets its successor.
func TestADataServerSaysThatItGoesAndServesOnUntilNobodyIsLedToIt(t *testing.T) {
	for name, tc := range map[string]struct {
		isDeleted bool
		goesOn    time.Duration
	}{
		"another pod comes in its place": {false, serverpod.LeaveAllowance},
		"nobody comes in its place":      {true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			storage := emptyVolume(t)
			run := t.TempDir()
			key := filepath.Join(run, "key")
			mustWork(t, "write a key", os.WriteFile(key, make([]byte, handleKeyBytes), 0o400))
			synctest.Test(t, func(t *testing.T) {
				supervised, stopGanesha := context.WithCancel(t.Context())
				source := &memorySource{}
				daemon := &losing{t: t, configFile: filepath.Join(run, "ganesha.conf"), shutOut: map[string]bool{}}
				m := &manager{
					storage: volumes.New(storage, quiet), dataServer: sampleServer(1), configFile: daemon.configFile,
					keys: handleKeys{current: key}, own: netip.MustParseAddr("127.1.2.3"), ganesha: daemon, prober: daemon, log: quiet, reporter: source, now: time.Now,
					metrics: newMetrics("default", "training-0"), isDeleted: func() bool { return tc.isDeleted }, leave: serverpod.LeaveAllowance,
				}
				if failure := m.apply(supervised, supervised); failure != nil {
					t.Fatal(failure)
				}
				began := time.Now()
				m.stop(t.Context(), func() {
					if on := time.Since(began); on != tc.goesOn {
						t.Errorf("ganesha was stopped after %v, want %v", on, tc.goesOn)
					}
					if !m.expected.stopping.Load() {
						t.Error("its pod was still ready when ganesha was stopped")
					}
					stopGanesha()
				})
				if ready := meta.FindStatusCondition(source.status.Conditions, v1alpha1.ConditionReady); ready == nil || ready.Reason != internalv1.ReasonStopping {
					t.Errorf("said of Ready: %+v, want the reason %s", ready, internalv1.ReasonStopping)
				}
			})
		})
	}
}
