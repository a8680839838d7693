package exporter

import (
	"context"
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/dataserver/backend"
	"github.com/howdah/howdah/internal/dataserver/kubeapi"
	"github.com/howdah/howdah/internal/naming"
)

// remove finishes the deletion of exports that ganesha has dropped. Their data is removed where that is asked for.
func (m *Exporter) remove(ctx, supervised context.Context) {
	removed, full := map[types.UID]bool{}, false
	for _, export := range m.exports {
		share := kubeapi.ShareOf(export)
		if export.DeletionTimestamp == nil || m.lingers(share) {
			continue
		}
		if m.takesData(export) {
			if err := m.discard(ctx, share); err != nil {
				m.failing[share], full = kubeapi.NewFault(v1alpha1.ReasonApplyFailed, err), full || isFull(err)
				continue
			}
			if !m.removed[export.UID] {
				m.Log.Info("removed the data of a share", "share", share)
			}
		}
		removed[export.UID] = true
	}
	// On a full volume the removal is complete only after the trash has made room.
	if !maps.Equal(removed, m.removed) || m.removed == nil || full {
		m.trash.empty(supervised, &m.group, m.storage, m.dataServer)
	}
	m.removed = removed
}

// takesData tells whether the share's data goes with an export. Not if the directory is another than the export was served from: an API that was
// restored from a backup can show the end of an earlier share of this name once more.
func (m *Exporter) takesData(export *internalv1.ShareExport) bool {
	if export.Spec.DataPolicy != internalv1.DataDelete {
		return false
	}
	share := kubeapi.ShareOf(export)
	for part, now := range m.rootIDs(share) {
		if part < len(export.Status.RootIDs) && export.Status.RootIDs[part] != "" && now != "" && now != export.Status.RootIDs[part] {
			m.Log.Warn("the data of a later share of this name stays", "share", share)
			return false
		}
	}
	return true
}

// discard removes the data of a share, and the share's entry in the table. The data can be in the trash for long; meanwhile an export with the
// same ID would still give it to clients that have file handles.
func (m *Exporter) discard(ctx context.Context, share string) error {
	if err := m.storage.Discard(ctx, m.dataServer, share, m.now()); err != nil {
		return err
	}
	next := m.memory.Clone()
	for _, shares := range next.Parts {
		delete(shares, share)
	}
	if err := m.writeIDs(ctx, next); err != nil {
		return err
	}
	m.memory = next
	return nil
}

// lingers tells whether ganesha may still serve the share.
func (m *Exporter) lingers(share string) bool {
	for volume := range m.memory.Parts {
		if m.leaving[naming.ExportPseudo(share, int32(volume))] {
			return true
		}
	}
	return false
}

// trashRetry is the wait before what could not be deleted is tried again.
const trashRetry = time.Minute

// trashCan empties the trash in the background, one goroutine at a time.
type trashCan struct {
	request chan struct{}
}

// empty asks for a round of EmptyTrash, and returns at once.
func (t *trashCan) empty(ctx context.Context, group *sync.WaitGroup, storage backend.Backend, server *internalv1.DataServer) {
	if t.request == nil {
		t.request = make(chan struct{}, 1)
		group.Add(1)
		go func() {
			defer group.Done()
			t.work(ctx, storage, server)
		}()
	}
	select {
	case t.request <- struct{}{}:
	default: // A round is asked for already.
	}
}

func (t *trashCan) work(ctx context.Context, storage backend.Backend, server *internalv1.DataServer) {
	retry := time.NewTimer(trashRetry)
	retry.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.request:
		case <-retry.C:
		}
		if storage.EmptyTrash(ctx, server) {
			retry.Reset(trashRetry)
		}
	}
}
