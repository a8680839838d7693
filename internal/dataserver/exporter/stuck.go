package exporter

import (
	"context"
	"errors"
	"time"

	"github.com/howdah/howdah/internal/dataserver/kubeapi"
	"github.com/howdah/howdah/internal/dataserver/supervisor"
)

// Ganesha makes one export after the other, and a client of Ceph that may use no metadata server waits for one without an end (start_reclaim of
// libcephfs 18.2.7 has no time-out). So one share whose user lost its rights would keep a start, or all that a reload is to change, from every
// other share. What hangs can't be told from what takes long, but the storage can be asked about each share in another process.

const (
	// startPatience is how long a start may take before anybody asks; a share takes up to a second.
	startPatience = 30 * time.Second
	// askAgain is how long after that it is asked again.
	askAgain = 5 * time.Minute
	// maxSilent is how many reloads in a row may have no answer, whatever the storage says.
	maxSilent = 8
)

// unstickStart ends a start of ganesha that hangs in an export, and has it start without. Before there is one nothing hangs: a share in
// Ceph may have no answer then because of what the pod before left, which only the start itself shuts out.
func (m *Exporter) unstickStart(ctx context.Context, state supervisor.State) {
	if state.PID == 0 {
		return
	}
	if m.storage.LookEvery() == 0 || m.now().Sub(state.Since) < startPatience || m.askedStart == state.Starts && m.now().Sub(m.askedAt) < askAgain {
		return
	}
	m.askedStart, m.askedAt = state.Starts, m.now()
	m.hangs = m.loseUnusable(ctx)
}

// unstickReload ends a ganesha that hangs in a reload. Its clients wait for some seconds, and reclaim what they have.
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

// endHanging ends a ganesha that was seen to hang, now that its configuration is without what it hangs in.
func (m *Exporter) endHanging() {
	if m.hangs {
		m.hangs = false
		m.Ganesha.Kill()
	}
}

// loseUnusable takes away what does not serve and can't be exported, as far as the storage can tell, and tells if there is something.
func (m *Exporter) loseUnusable(ctx context.Context) bool {
	found := 0
	for _, export := range m.active() {
		share := kubeapi.ShareOf(export)
		if m.lost[share] != nil || m.servesShare(share) || found >= maxDiagnosed {
			continue
		}
		limited, cancel := context.WithTimeout(ctx, tryPatience)
		why := m.storage.Diagnose(limited, share)
		cancel()
		if why == nil {
			continue
		}
		found++
		m.Log.Error("ganesha hangs, and a share can't be exported: it is left out", "share", share, "err", why)
		m.lose(share, &lostShare{why: why, tried: m.now()})
	}
	return found > 0
}
