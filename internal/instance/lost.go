package instance

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/internal/naming"
	"github.com/howdah/howdah/internal/nfs4/client"
)

// An export can be lost while ganesha runs: a client of Ceph that was shut out never comes back by itself, and answers
// NFS4ERR_SERVERFAULT from then on, while ganesha as a whole is well. Who looks sees it. Taken away by one reload and brought back by
// the next, the export has a new client; the others notice nothing.

// errLost is what is said of a share that was lost, until it serves again.
var errLost = errors.New("ganesha lost its storage (NFS4ERR_SERVERFAULT), so it is exported anew; if it comes back to this, the log of ganesha and of Ceph's monitors tell who shuts it out")

// isLost tells whether an export will not serve again by itself.
func isLost(err error) bool { return client.IsStatus(err, nfsv4.NFS4ERR_SERVERFAULT) }

// lookForLost looks at the exports that serve, when it is time.
func (m *manager) lookForLost(ctx context.Context) {
	every := m.storage.LookEvery()
	if every == 0 || m.now().Sub(m.lookedAt) < every {
		return
	}
	m.lookedAt = m.now()
	paths := slices.Sorted(maps.Keys(m.serving))
	sights, err := m.prober.look(ctx, paths)
	if err != nil {
		m.log.Warn("the exports were not looked at", "err", err) // What ganesha is, liveness tells.
		return
	}
	for i, path := range paths {
		if m.noteLost(path, sights[i].err) {
			m.fail(path, errLost)
			m.verified, m.loaded = "", "" // The next pass takes it away.
		}
	}
}

// noteLost notes that the share of an export is to be taken away, if what was seen says so.
func (m *manager) noteLost(pseudo string, seen error) bool {
	if m.storage.LookEvery() == 0 || !isLost(seen) {
		return false
	}
	if m.lost == nil {
		m.lost = map[string]bool{}
	}
	m.lost[naming.ShareOfExport(pseudo)] = true
	m.log.Error("an export is lost, and is made anew", "path", pseudo, "err", seen)
	return true
}

// withoutLost are the exports that are to be served now.
func (m *manager) withoutLost(exports []*internalv1.ShareExport) []*internalv1.ShareExport {
	return slices.DeleteFunc(exports, func(export *internalv1.ShareExport) bool {
		share := shareOf(export)
		if m.lost[share] && m.failing[share] == nil {
			m.failing[share] = &fault{internalv1.ReasonExportsFailing, errLost}
		}
		return m.lost[share]
	})
}

// bringBackLost has the next pass export what was taken away and is gone.
func (m *manager) bringBackLost(wanted map[string]fileSystem) {
	maps.DeleteFunc(m.lost, func(share string, _ bool) bool {
		for part := range m.memory.Parts {
			pseudo := naming.ExportPseudo(share, int32(part))
			if _, exported := wanted[pseudo]; exported || m.leaving[pseudo] {
				return false
			}
		}
		return true
	})
}
