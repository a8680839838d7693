package exporter

import (
	"context"
	"fmt"
	"time"

	"github.com/howdah/howdah/internal/ganesha"
)

// At its end ganesha gives nothing back that it holds in Ceph: its sessions with the metadata servers stay, for its next start to reclaim what
// clients have open (ceph_abort_conn in FSAL_CEPH). One that never starts again leaves them until Ceph takes them, and until then others wait
// for what it holds: a mkdir in a share's root took 300 s after a scale-in (less since handles/cephfs.c). An export that is taken away is unmounted in
// good order. So a data server that goes for good takes away all of its exports before its end, on whatever storage.

const (
	// goodbyeWait is how long a data server that takes nothing new looks whether it is to go for good: its object goes right after its pod was told
	// to.
	goodbyeWait = 2 * time.Second
	goodbyePoll = 50 * time.Millisecond
	// goodbyePatience bounds the reload; what is not given back by then Ceph takes by itself.
	goodbyePatience = 5 * time.Second
)

// sayGoodbye takes all exports away if the data server goes for good. A pod that starts again keeps what it holds.
func (m *Exporter) sayGoodbye(ctx context.Context) {
	if state := m.Ganesha.State(); state.PID == 0 || !state.Initialized || !m.goesForGood(ctx) {
		return
	}
	began := m.now()
	if err := m.dropExports(ctx); err != nil {
		m.Log.Warn("what the data server holds in the storage was not given back, and others may wait for it for minutes", "err", err)
		return
	}
	m.Log.Info("the data server goes for good, and has given back what it held in the storage", "took", m.now().Sub(began).String())
}

// goesForGood tells whether the DataServer is being deleted.
func (m *Exporter) goesForGood(ctx context.Context) bool {
	if m.IsDeleted() || !m.dataServer.RefusesNewDirectories() {
		return m.IsDeleted()
	}
	ctx, cancel := context.WithTimeout(ctx, goodbyeWait)
	defer cancel()
	for poll := time.NewTicker(goodbyePoll); ; {
		select {
		case <-ctx.Done():
			return false
		case <-poll.C:
			if m.IsDeleted() {
				return true
			}
		}
	}
}

func (m *Exporter) dropExports(ctx context.Context) error {
	config, err := desiredConfig(m.dataServer, nil, m.memory, m.storage, m.Own, m.MemoryLimit)
	if err != nil {
		return err
	}
	text, err := ganesha.Render(config)
	if err != nil {
		return fmt.Errorf("a configuration without exports: %w", err)
	}
	if err := m.configure(config, text); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, goodbyePatience)
	defer cancel()
	return m.Ganesha.Reload(ctx)
}
