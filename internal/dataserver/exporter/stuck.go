package exporter

import (
	"context"
	"errors"
	"time"

	"github.com/howdah/howdah/internal/dataserver/kubeapi"
	"github.com/howdah/howdah/internal/dataserver/supervisor"
)

// Ganesha makes one export after the other. A client of Ceph that may use no metadata server waits for one without end (start_reclaim of
// libcephfs 18.2.7 has no timeout). So one share whose user lost its rights would block a start, or a reload, for every other share. A hang
// looks the same as a slow start, but the storage can be asked about each share in another process.

const (
	// startTimeout is how long a start may take before the storage is asked for the cause; a share takes up to a second.
	startTimeout = 30 * time.Second
	// askAgain is the time after which it is asked again.
	askAgain = 5 * time.Minute
	// maxSilent is how many reloads in a row may have no answer, whatever the storage says.
	maxSilent = 8
)

// unstickStart ends a start of ganesha that hangs in an export, and starts it without that export. It asks nothing while no ganesha runs: a share
// in Ceph may not answer then because of sessions that the pod before left, which only the start itself shuts out.
func (m *Exporter) unstickStart(ctx context.Context, state supervisor.State) {
	if state.PID == 0 {
		return
	}
	if m.storage.LookEvery() == 0 || m.now().Sub(state.Since) < startTimeout || m.askedStart == state.Starts && m.now().Sub(m.askedAt) < askAgain {
		return
	}
	m.askedStart, m.askedAt = state.Starts, m.now()
	m.hangs = m.loseUnusable(ctx)
}

// unstickReload ends a ganesha that hangs in a reload. Its clients wait for some seconds and reclaim their state.
func (m *Exporter) unstickReload(ctx context.Context, err error) {
	if !errors.Is(err, supervisor.ErrNoAnswer) {
		m.silent = 0
		return
	}
	if m.storage.LookEvery() == 0 {
		return
	}
	if m.silent++; m.loseUnusable(ctx) || m.silent >= maxSilent {
		m.silent, m.hangs = 0, true
	}
}

// endHanging kills a ganesha that hangs. Its configuration no longer has the export in which it hangs.
func (m *Exporter) endHanging() {
	if m.hangs {
		m.hangs = false
		m.Ganesha.Kill()
	}
}

// loseUnusable removes shares that don't serve and that, by the storage's diagnosis, can't be exported. It returns true if it found any.
func (m *Exporter) loseUnusable(ctx context.Context) bool {
	found := 0
	for _, export := range m.active() {
		share := kubeapi.ShareOf(export)
		if m.lost[share] != nil || m.servesShare(share) || found >= maxDiagnosed {
			continue
		}
		limited, cancel := context.WithTimeout(ctx, diagnoseTimeout)
		why := m.storage.Diagnose(limited, share)
		cancel()
		if why == nil {
			continue
		}
		found++
		m.Log.Error("ganesha hangs; leaving out a share that can't be exported", "share", share, "err", why)
		m.lose(share, &lostShare{why: why, tried: m.now()})
	}
	return found > 0
}
