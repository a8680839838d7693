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

// An export can be lost while ganesha runs: if Ceph evicts or blocks its client, the client does not recover, and the export answers
// NFS4ERR_SERVERFAULT from then on. Ganesha as a whole is healthy, so only a look at the export shows it. One reload removes the export, the
// next one adds it again with a new client. Other exports are not affected.

// errLost is the fault of a share whose export was lost, until it serves again.
var errLost = errors.New("ganesha lost its storage (NFS4ERR_SERVERFAULT), so it is being exported again; if this repeats, look in the logs of ganesha and of Ceph's monitors for what evicts or blocks its client")

// lostShare is a share that ganesha must not export for now.
type lostShare struct {
	// why is the last fault that was seen.
	why error
	// tried is when the storage was last asked whether the share can be exported again.
	tried time.Time
}

// diagnoseTimeout bounds that question. The answer takes 0.1 s; for a user without rights to any metadata server it never comes.
const diagnoseTimeout = 5 * time.Second

// Ceph blocks clients while the storage is away, and they notice when it is back. So the exports are checked soon and often then. Each check
// costs a few small writes of recovery records in Ceph.
const (
	watchful = time.Minute
	lookSoon = 3 * time.Second
)

// lookEvery is how often exports that serve are checked now; 0 means never.
func (m *Exporter) lookEvery() time.Duration {
	every := m.storage.LookEvery()
	if back := m.storageBack.Load(); back != nil && m.now().Sub(*back) < watchful {
		return min(every, lookSoon)
	}
	return every
}

// noteHealth starts a check of the exports when the storage is back. It belongs to the goroutine that watches the storage's health.
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

// lookForLost checks the exports that serve, when it is time.
func (m *Exporter) lookForLost(ctx context.Context) {
	every := m.lookEvery()
	if every == 0 || m.now().Sub(m.lookedAt) < every {
		return
	}
	m.lookedAt = m.now()
	paths := slices.Sorted(maps.Keys(m.serving))
	sights, err := m.Prober.Look(ctx, paths)
	if err != nil {
		m.Log.Warn("checking the exports failed", "err", err) // The liveness probe notices a ganesha that does not answer.
		return
	}
	for i, path := range paths {
		if m.noteLost(path, sights[i].Err) {
			m.fail(path, errLost)
			m.verified, m.loaded = "", "" // The next pass removes it.
		}
	}
}

// noteLost notes that the share of an export must be removed, if the error that was seen means that the export is lost.
func (m *Exporter) noteLost(pseudo string, seen error) bool {
	if m.storage.LookEvery() == 0 || !isLost(seen) {
		return false
	}
	m.lose(naming.ShareOfExport(pseudo), &lostShare{why: errLost})
	m.Log.Error("an export lost its storage; exporting it again", "path", pseudo, "err", seen)
	return true
}

func (m *Exporter) lose(share string, lost *lostShare) {
	if m.lost == nil {
		m.lost = map[string]*lostShare{}
	}
	m.lost[share] = lost
}

// withoutLost are the exports without those of lost shares, which get a fault.
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

// bringBackLost lets the next pass export again what was removed, if the storage finds no fault: with a user that has no rights ganesha
// would wait without end, and every change that a reload brings would wait with it.
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
		// If the storage is away, it is away for all shares. A map's order differs each time, so every share gets its turn.
		if failed >= maxDiagnosed || !lost.tried.IsZero() && m.now().Sub(lost.tried) < m.storage.LookEvery() {
			return false
		}
		lost.tried = m.now()
		limited, cancel := context.WithTimeout(ctx, diagnoseTimeout)
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
