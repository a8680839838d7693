package exporter

import (
	"context"
	"fmt"
	"time"

	"github.com/howdah/howdah/internal/ganesha"
)

// When ganesha stops, it releases nothing that it holds in Ceph: its sessions with the metadata servers stay, so that its next start can reclaim
// what clients have open (ceph_abort_conn in FSAL_CEPH). If it never starts again, the sessions stay until Ceph evicts them. Until then other
// clients of Ceph wait for what it holds: a mkdir in a share's root took 300 s after a scale-in (less since handles/cephfs.c). An export that is
// removed is unmounted cleanly. So a data server that is deleted removes all its exports before it stops, with any storage.

const (
	// goodbyeWait is how long a data server that takes no new directories waits for the deletion of its object. The operator deletes the object right
	// after the pod.
	goodbyeWait = 2 * time.Second
	goodbyePoll = 50 * time.Millisecond
	// goodbyeTimeout bounds the reload. What is not released by then, Ceph takes back itself.
	goodbyeTimeout = 5 * time.Second
)

// sayGoodbye removes all exports if the data server is deleted. A pod that starts again keeps what it holds.
func (m *Exporter) sayGoodbye(ctx context.Context) {
	if state := m.Ganesha.State(); state.PID == 0 || !state.Initialized || !m.isForGood(ctx) {
		return
	}
	began := m.now()
	if err := m.dropExports(ctx); err != nil {
		m.Log.Warn("releasing what the data server holds in the storage failed; other clients of the storage may wait for it for minutes", "err", err)
		return
	}
	m.Log.Info("the data server is being deleted; it released what it held in the storage", "took", m.now().Sub(began).String())
}

// isForGood tells whether the pod stops because the DataServer is deleted. It waits up to goodbyeWait for the deletion.
func (m *Exporter) isForGood(ctx context.Context) bool {
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
	config, err := desiredConfig(m.dataServer, nil, nil, m.memory, m.storage, m.Own, m.MemoryLimit)
	if err != nil {
		return err
	}
	text, err := ganesha.Render(m.withPorts(config))
	if err != nil {
		return fmt.Errorf("a configuration without exports: %w", err)
	}
	if err := m.configure(config, text); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, goodbyeTimeout)
	defer cancel()
	return m.Ganesha.Reload(ctx)
}
