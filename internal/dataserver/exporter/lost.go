package exporter

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/internal/dataserver/backend"
	"github.com/howdah/howdah/internal/dataserver/kubeapi"
	"github.com/howdah/howdah/internal/naming"
	"github.com/howdah/howdah/internal/nfs4/client"
)

// An export can be lost while ganesha runs: a client of Ceph that was shut out never comes back by itself, and answers
// NFS4ERR_SERVERFAULT from then on, while ganesha as a whole is well. Who looks sees it. Taken away by one reload and brought back by
// the next, the export has a new client; the others notice nothing.

// errLost is what is said of a share that was lost, until it serves again.
var errLost = errors.New("ganesha lost its storage (NFS4ERR_SERVERFAULT), so it is exported anew; if it comes back to this, the log of ganesha and of Ceph's monitors tell who shuts it out")

// lostShare is one that is kept from ganesha.
type lostShare struct {
	// why is what was seen of it last.
	why error
	// tried is when the storage was asked whether it can be exported again.
	tried time.Time
}

// tryPatience is how long that may take. It takes 0.1 s; a user without rights to any metadata server waits for ever.
const tryPatience = 5 * time.Second

// Clients are shut out while the storage is away, and notice when it is back: the exports are looked at soon and often then. Each look is a few
// small writes of recovery records in Ceph.
const (
	watchful = time.Minute
	lookSoon = 3 * time.Second
)

// lookEvery is how often exports that serve are looked at now; 0 is never.
func (m *Exporter) lookEvery() time.Duration {
	every := m.storage.LookEvery()
	if back := m.storageBack.Load(); back != nil && m.now().Sub(*back) < watchful {
		return min(every, lookSoon)
	}
	return every
}

// noteHealth has the exports looked at when the storage is back. It belongs to the goroutine that watches the storage's health.
func (m *Exporter) noteHealth(health backend.Health) {
	if m.storageAway && health.Failing == "" {
		now := m.now()
		m.storageBack.Store(&now)
		m.Wake()
	}
	m.storageAway = health.Failing != ""
}

// isLost tells whether an export will not serve again by itself.
func isLost(err error) bool { return client.IsStatus(err, nfsv4.NFS4ERR_SERVERFAULT) }

// lookForLost looks at the exports that serve, when it is time.
func (m *Exporter) lookForLost(ctx context.Context) {
	every := m.lookEvery()
	if every == 0 || m.now().Sub(m.lookedAt) < every {
		return
	}
	m.lookedAt = m.now()
	paths := slices.Sorted(maps.Keys(m.serving))
	sights, err := m.Prober.Look(ctx, paths)
	if err != nil {
		m.Log.Warn("the exports were not looked at", "err", err) // What ganesha is, liveness tells.
		return
	}
	for i, path := range paths {
		if m.noteLost(path, sights[i].Err) {
			m.fail(path, errLost)
			m.verified, m.loaded = "", "" // The next pass takes it away.
		}
	}
}

// noteLost notes that the share of an export is to be taken away, if what was seen says so.
func (m *Exporter) noteLost(pseudo string, seen error) bool {
	if m.storage.LookEvery() == 0 || !isLost(seen) {
		return false
	}
	m.lose(naming.ShareOfExport(pseudo), &lostShare{why: errLost})
	m.Log.Error("an export is lost, and is made anew", "path", pseudo, "err", seen)
	return true
}

func (m *Exporter) lose(share string, lost *lostShare) {
	if m.lost == nil {
		m.lost = map[string]*lostShare{}
	}
	m.lost[share] = lost
}

// withoutLost are the exports that are to be served now.
func (m *Exporter) withoutLost(exports []*internalv1.ShareExport) []*internalv1.ShareExport {
	return slices.DeleteFunc(exports, func(export *internalv1.ShareExport) bool {
		share := kubeapi.ShareOf(export)
		lost := m.lost[share]
		if lost != nil && m.failing[share] == nil {
			m.failing[share] = kubeapi.NewFault(internalv1.ReasonExportsFailing, lost.why)
		}
		return lost != nil
	})
}

// bringBackLost has the next pass export what was taken away and is gone, if the storage finds nothing amiss: ganesha would wait for a user
// that may use nothing for ever, and with it everything that a reload is to change.
func (m *Exporter) bringBackLost(ctx context.Context, isExported func(pseudo string) bool) {
	failed := 0
	maps.DeleteFunc(m.lost, func(share string, lost *lostShare) bool {
		for part := range m.memory.Parts {
			if pseudo := naming.ExportPseudo(share, int32(part)); isExported(pseudo) || m.leaving[pseudo] {
				return false
			}
		}
		if !m.isWanted(share) {
			return true
		}
		// Where the storage is away it is so for all. Maps have another order each time, so all have their turn.
		if failed >= maxDiagnosed || !lost.tried.IsZero() && m.now().Sub(lost.tried) < m.storage.LookEvery() {
			return false
		}
		lost.tried = m.now()
		limited, cancel := context.WithTimeout(ctx, tryPatience)
		defer cancel()
		why := m.storage.Diagnose(limited, share)
		if why != nil {
			failed++
			lost.why = why
			m.failing[share] = kubeapi.NewFault(internalv1.ReasonExportsFailing, why)
		}
		return why == nil
	})
}

// isWanted tells whether a share is to be exported.
func (m *Exporter) isWanted(share string) bool {
	return slices.ContainsFunc(m.active(), func(export *internalv1.ShareExport) bool { return kubeapi.ShareOf(export) == share })
}
