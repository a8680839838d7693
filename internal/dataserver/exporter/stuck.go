package exporter

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"syscall"
	"time"

	"github.com/howdah/howdah/internal/dataserver/kubeapi"
	"github.com/howdah/howdah/internal/dataserver/supervisor"
)

// Ganesha makes one export after the other. A client of Ceph that may use no metadata server waits for one without end (start_reclaim of
// libcephfs 18.2.7 has no timeout). So one share whose user lost its rights would block a start, or a reload, for every other share. A hang
// looks the same as a slow start, but the storage can be asked about each share in another process. That can have no answer, too, because the
// storage is slow: a share is left out only when it had none twice.

const (
	// startTimeout is how long a start may take before the storage is asked for the cause; a share takes up to a second.
	startTimeout = 30 * time.Second
	// askAgain is the time after which it is asked again; startTimeout if a share had no answer.
	askAgain = 5 * time.Minute
	// maxSilent is how many reloads in a row may have no answer, whatever the storage says.
	maxSilent = 8
)

// slowStart is a start of ganesha that took so long that the storage was asked for the cause.
type slowStart struct {
	// number is that of the start (supervisor.State.Starts).
	number  int
	askedAt time.Time
	// why no share can be exported; nil: one can, or it is not known.
	why error
	// unanswered are the shares about which it had no answer when it was asked last, here or in a reload.
	unanswered map[string]bool
}

// unstickStart ends a start of ganesha that hangs in an export, and starts it without that export. It asks nothing while no ganesha runs: a share
// in Ceph may not answer then because of sessions that the pod before left, which only the start itself shuts out.
func (m *Exporter) unstickStart(ctx context.Context, state supervisor.State) {
	if state.PID == 0 {
		return
	}
	if m.storage.LookEvery() == 0 || m.now().Sub(state.Since) < startTimeout {
		return
	}
	pause := askAgain
	if m.slowStart.why != nil || len(m.slowStart.unanswered) > 0 {
		pause = startTimeout
	}
	if m.slowStart.number == state.Starts && m.now().Sub(m.slowStart.askedAt) < pause {
		return
	}
	unusable, usable := m.diagnose(ctx)
	m.slowStart.number, m.slowStart.askedAt, m.slowStart.why = state.Starts, m.now(), nil
	switch now := m.Ganesha.State(); {
	case now.Initialized || now.Starts != state.Starts:
		// It was slow, as the answers were. Ending it now would cost its clients their state.
	case len(unusable) > 0 && !usable:
		// The storage is slow for all, or no share is left that would be served without the others. Clients of a share that is left out
		// can't reclaim what they had once grace is over, so ganesha goes on trying.
		m.slowStart.why = fmt.Errorf("share %s: %w", unusable[0].share, unusable[0].why)
	default:
		m.hangs = m.leaveOutCertain(unusable)
	}
}

// describeStart tells what the start of ganesha waits for, as far as that is known.
func (m *Exporter) describeStart(state supervisor.State) error {
	if m.slowStart.number == state.Starts && m.slowStart.why != nil {
		return fmt.Errorf("ganesha is starting, and no share can be exported: %w", m.slowStart.why)
	}
	return errors.New("ganesha is starting")
}

// unstickReload ends a ganesha that hangs in a reload. Its clients wait for some seconds and reclaim their state.
func (m *Exporter) unstickReload(ctx context.Context, err error) {
	if !errors.Is(err, supervisor.ErrNoAnswer) {
		m.silent, m.slowStart.unanswered = 0, nil
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
	unusable, _ := m.diagnose(ctx)
	return m.leaveOutCertain(unusable)
}

// unusableShare is a share that can't be exported, and why.
type unusableShare struct {
	share string
	why   error
}

// diagnose asks the storage about shares that don't serve. It finds some that can't be exported, and tells whether one can be.
func (m *Exporter) diagnose(ctx context.Context) (unusable []unusableShare, usable bool) {
	shares := map[string]bool{}
	for _, export := range m.active() {
		if share := kubeapi.ShareOf(export); m.lost[share] == nil && !m.servesShare(share) {
			shares[share] = true
		}
	}
	// A map's order differs each time, so every share gets its turn. Those that had no answer are asked about first.
	var ordered []string
	for share := range shares {
		if m.slowStart.unanswered[share] {
			ordered = slices.Insert(ordered, 0, share)
		} else {
			ordered = append(ordered, share)
		}
	}
	for _, share := range ordered {
		if found := len(unusable); found >= maxDiagnosed && (usable || found >= 2*maxDiagnosed) {
			break
		}
		limited, cancel := context.WithTimeout(ctx, diagnoseTimeout)
		why := m.storage.Diagnose(limited, share)
		cancel()
		if why == nil {
			usable = true
			continue
		}
		unusable = append(unusable, unusableShare{share, why})
	}
	return unusable, usable
}

// leaveOutCertain has the next pass start or reload ganesha without the shares that certainly can't be exported. It returns true if there are any.
func (m *Exporter) leaveOutCertain(unusable []unusableShare) bool {
	var certain []unusableShare
	certain, m.slowStart.unanswered = certainly(unusable, m.slowStart.unanswered)
	for _, found := range certain {
		m.Log.Error("ganesha hangs; leaving out a share that can't be exported", "share", found.share, "err", found.why)
		m.lose(found.share, &lostShare{why: found.why, tried: m.now()})
	}
	return len(certain) > 0
}

// certainly are the shares of which the storage says what is wrong, or about which it has no answer for the second time in a row. before are those
// without an answer the last time, and unanswered those to ask about once more.
func certainly(unusable []unusableShare, before map[string]bool) (certain []unusableShare, unanswered map[string]bool) {
	unanswered = map[string]bool{}
	for _, found := range unusable {
		noAnswer := errors.Is(found.why, context.DeadlineExceeded) || errors.Is(found.why, syscall.ETIMEDOUT)
		if noAnswer && !before[found.share] {
			unanswered[found.share] = true
			continue
		}
		certain = append(certain, found)
	}
	return certain, unanswered
}
