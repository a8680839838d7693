package dataserver

import (
	"context"
	"maps"

	"k8s.io/apimachinery/pkg/types"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/naming"
)

// remove ends exports that are being deleted: ganesha has dropped them, so their data may go where that is asked for.
func (m *manager) remove(ctx, supervised context.Context) {
	removed := map[types.UID]bool{}
	for _, export := range m.exports {
		share := shareOf(export)
		if export.DeletionTimestamp == nil || m.lingers(share) {
			continue
		}
		if export.Spec.DataPolicy == internalv1.DataDelete {
			if err := m.discard(ctx, share); err != nil {
				m.failing[share] = &fault{v1alpha1.ReasonApplyFailed, err}
				continue
			}
			if !m.removed[export.UID] {
				m.log.Info("removed the data of a share", "share", share)
			}
		}
		removed[export.UID] = true
	}
	if !maps.Equal(removed, m.removed) || m.removed == nil {
		m.trash.empty(supervised, &m.group, m.storage, m.dataServer)
	}
	m.removed = removed
}

// discard removes the data of a share, and has the share forgotten: while the data is in the trash, which can take long, an export of
// the same id would still give it to clients that have file handles.
func (m *manager) discard(ctx context.Context, share string) error {
	if err := m.storage.Discard(ctx, m.dataServer, share, m.now()); err != nil {
		return err
	}
	next := m.memory.Clone()
	for _, shares := range next.Parts {
		delete(shares, share)
	}
	if err := m.storage.WriteIDs(ctx, next); err != nil {
		return err
	}
	m.memory = next
	return nil
}

// lingers: ganesha may still serve the share.
func (m *manager) lingers(share string) bool {
	for volume := range m.memory.Parts {
		if m.leaving[naming.ExportPseudo(share, int32(volume))] {
			return true
		}
	}
	return false
}
