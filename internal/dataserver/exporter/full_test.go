package exporter

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/internal/dataserver/backend"
	"github.com/howdah/howdah/internal/dataserver/dataservertest"
	"github.com/howdah/howdah/internal/dataserver/exportids"
	"github.com/howdah/howdah/internal/dataserver/kubeapi"
	"github.com/howdah/howdah/internal/dataserver/server"
	"github.com/howdah/howdah/internal/dataserver/supervisor"
	"github.com/howdah/howdah/internal/dataserver/volumes"
	"github.com/howdah/howdah/internal/fill"
)

// fullStorage is a volume that takes no more writes once it is full.
type fullStorage struct {
	*volumes.Backend
	full bool
}

func (s *fullStorage) WriteIDs(ctx context.Context, table *exportids.Table) error {
	if known, err := s.ReadIDs(ctx, dataservertest.DataServer(1)); s.full && (err != nil || fmt.Sprint(known) != fmt.Sprint(table)) {
		return fmt.Errorf("writing the Export_Ids: %w", syscall.ENOSPC)
	}
	return s.Backend.WriteIDs(ctx, table)
}

// Shares that are served go on when a volume has no room for the records of a new one, which alone is refused.
func TestAFullVolumeRefusesNewSharesOnly(t *testing.T) {
	storage := &fullStorage{Backend: volumes.New(dataservertest.EmptyVolume(t), quiet)}
	m := &Exporter{
		Config:  Config{Log: quiet, Expected: &server.Expectation{}, Nodes: server.NewNodes(nil)},
		storage: storage, dataServer: dataservertest.DataServer(1), serving: map[string]server.FileSystem{}, now: time.Now,
	}
	m.Ganesha = &supervisor.Supervisor{Config: supervisor.Config{RoundsFile: filepath.Join(t.TempDir(), "rounds")}}
	mustWork(t, "claim", storage.Claim(t.Context(), m.dataServer))
	var err error
	m.memory, err = storage.ReadIDs(t.Context(), m.dataServer)
	mustWork(t, "read", err)
	prepare := func() (ready []string) {
		t.Helper()
		m.failing = map[string]*kubeapi.Fault{}
		exports, err := m.allocate(t.Context())
		mustWork(t, "allocate", err)
		exports, err = m.prepareRoots(t.Context(), exports)
		mustWork(t, "prepare roots", err)
		for _, export := range exports {
			ready = append(ready, kubeapi.ShareOf(export))
		}
		return ready
	}
	m.exports = []*internalv1.ShareExport{dataservertest.NewExport(dataservertest.ShareSpec("old"))}
	if got := prepare(); len(got) != 1 {
		t.Fatalf("with room %v are exported", got)
	}
	id := m.memory.IDs("old")
	storage.full = true
	m.exports = append(m.exports, dataservertest.NewExport(dataservertest.ShareSpec("new")))
	if got := prepare(); fmt.Sprint(got) != "[old]" || fmt.Sprint(m.memory.IDs("old")) != fmt.Sprint(id) {
		t.Errorf("without room %v are exported", got)
	}
	if fault := m.failing["new"]; len(m.failing) != 1 || fault == nil || fault.Reason != internalv1.ReasonVolumeFull || !strings.Contains(fault.Error(), makeRoom) {
		t.Errorf("failing: %v", m.failing)
	}
	storage.full = false
	if got := prepare(); fmt.Sprint(got) != "[old new]" || len(m.failing) != 0 {
		t.Errorf("with room again %v are exported, and %v fail", got, m.failing)
	}
	// Attributes that can't be recorded as given are given all the same.
	storage.full = true
	m.exports[0].Spec.Mode = "0700"
	if got := prepare(); fmt.Sprint(got) != "[old new]" || len(m.failing) != 0 {
		t.Errorf("with new attributes %v are exported, and %v fail", got, m.failing)
	}
}

func TestWhatIsNearlyFullIsMeasuredOften(t *testing.T) {
	noon := time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)
	of := func(used int64, fullAt time.Time) backend.Usage {
		return backend.Usage{Usage: fill.Usage{Bytes: fill.Amount{Total: 100, Used: used, Free: 100 - used}}, FullAt: fullAt}
	}
	for name, tc := range map[string]struct {
		usage []backend.Usage
		want  time.Duration
	}{
		"nothing known":        {nil, usageEvery},
		"there is room":        {[]backend.Usage{of(50, time.Time{}), of(89, noon.Add(time.Hour))}, usageEvery},
		"one is nearly full":   {[]backend.Usage{of(50, time.Time{}), of(90, time.Time{})}, usageSoon},
		"one is soon full":     {[]backend.Usage{of(50, noon.Add(10*time.Minute)), of(50, time.Time{})}, usageSoon},
		"its forecast is past": {[]backend.Usage{of(50, noon.Add(-time.Minute))}, usageSoon},
		"a volume of no bytes": {[]backend.Usage{{}}, usageEvery},
	} {
		m := &Exporter{usage: tc.usage, now: func() time.Time { return noon }}
		if got := m.measureEvery(); got != tc.want {
			t.Errorf("%s: every %s", name, got)
		}
	}
}

// fillingStorage is full from a moment on, and says when it was measured.
type fillingStorage struct {
	*volumes.Backend
	fullFrom time.Time
	measured []time.Time
}

func (s *fillingStorage) Measure(context.Context, *internalv1.DataServer) ([]backend.Usage, error) {
	s.measured = append(s.measured, time.Now())
	free := int64(100 << 30)
	if !time.Now().Before(s.fullFrom) {
		free = 0
	}
	return []backend.Usage{{Usage: fill.Usage{Bytes: fill.Amount{Total: 100 << 30, Used: 100<<30 - free, Free: free}}}}, nil
}

// What was just found to be full is measured soon, and not when the next pass was due before that was known.
func TestStorageIsMeasuredOftenAsSoonAsItIsNearlyFull(t *testing.T) {
	root, run := dataservertest.EmptyVolume(t), t.TempDir()
	key := filepath.Join(run, "key")
	mustWork(t, "write a key", os.WriteFile(key, make([]byte, supervisor.HandleKeyBytes), 0o400))
	synctest.Test(t, func(t *testing.T) {
		daemon := &losing{t: t, configFile: filepath.Join(run, "ganesha.conf"), shutOut: map[string]bool{}}
		began := time.Now()
		storage := &fillingStorage{Backend: volumes.New(root, quiet), fullFrom: began.Add(time.Second)}
		metrics := server.NewMetrics("default", "training-0")
		m := &Exporter{
			Config: Config{
				ConfigFile: daemon.configFile, Keys: supervisor.HandleKeys{Current: key}, Own: netip.MustParseAddr("127.1.2.3"), Ganesha: daemon, Prober: daemon, Log: quiet,
				Reporter: &dataservertest.Statuses{}, Metrics: metrics, IsDeleted: func() bool { return true },
				Proxy: server.NewProxy(nil, metrics, quiet), Expected: &server.Expectation{}, Nodes: server.NewNodes(nil), Connections: func() (int32, error) { return 0, nil },
			},
			storage: storage, dataServer: dataservertest.DataServer(1), now: time.Now,
		}
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			time.Sleep(usageEvery + 3*usageSoon + time.Second)
			cancel()
		}()
		mustWork(t, "run", m.Run(ctx))
		var after []time.Duration
		for _, at := range storage.measured {
			after = append(after, at.Sub(began))
		}
		if want := []time.Duration{0, usageEvery, usageEvery + usageSoon, usageEvery + 2*usageSoon, usageEvery + 3*usageSoon}; !slices.Equal(after, want) {
			t.Errorf("it was measured after %v, want %v", after, want)
		}
	})
}
