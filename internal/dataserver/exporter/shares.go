package exporter

import (
	"context"

	"k8s.io/utils/ptr"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/internal/dataserver/kubeapi"
	"github.com/howdah/howdah/internal/naming"
)

// reportShares reports which shares the storage has, before clients can write to a new one: while this server is away, its last report is the
// only source. The same holds for the last number of an export, if the storage is restored from an older copy, and for the identities of the
// volumes, if one is replaced.
func (m *Exporter) reportShares(ctx context.Context) error {
	names, known, err := m.storage.Shares(ctx, m.dataServer)
	if err != nil {
		return err
	}
	m.shares = nil
	if digest, ok := naming.DigestNames(names); known && ok { // Without a digest there are too many.
		m.shares = &digest
	}
	held, last, volumeIDs := m.shares, int64(m.memory.HighWater), m.storage.Identities()
	return m.Reporter.Report(ctx, func(earlier internalv1.DataServerStatus) internalv1.DataServerStatus {
		earlier.Shares = held
		earlier.VolumeIDs = kubeapi.ReportVolumeIDs(earlier.VolumeIDs, volumeIDs)
		if last > ptr.Deref(earlier.LastExportNumber, 0) {
			earlier.LastExportNumber = &last
		}
		return earlier
	})
}
