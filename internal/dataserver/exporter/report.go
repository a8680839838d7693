package exporter

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/internal/dataserver/backend"
	"github.com/howdah/howdah/internal/dataserver/kubeapi"
)

// nodeAddresses are those of Config.
func (m *Exporter) nodeAddresses() (addresses []string, missing string) {
	if m.NodeAddresses == nil {
		return nil, ""
	}
	return m.NodeAddresses()
}

// ReportExports writes what is known of each export after a pass that looked at all of them.
func (m *Exporter) ReportExports(ctx context.Context) error {
	now := metav1.NewTime(m.now().Truncate(time.Second))
	wanted := map[types.UID]*internalv1.ShareExport{}
	for _, export := range m.exports {
		wanted[export.UID] = export
	}
	return m.Reporter.ReportExports(ctx, func(export *internalv1.ShareExport) internalv1.ShareExportStatus {
		known := wanted[export.UID]
		if known == nil || known.Generation != export.Generation {
			return export.Status // Newer than this pass; the next pass reports it.
		}
		share, data := kubeapi.ShareOf(known), internalv1.DataRetain
		if known.DeletionTimestamp != nil && m.takesData(known) {
			data = internalv1.DataDelete
		}
		return kubeapi.ExportStatusFrom(export.Status, kubeapi.ExportObservation{
			Generation: known.Generation, Deleting: known.DeletionTimestamp != nil, Data: data,
			IDs: m.memory.IDs(share), RootIDs: m.rootIDs(share), Serves: m.servesShare(share), Removed: m.removed[known.UID], Fault: m.failing[share],
		}, now)
	})
}

// Observe tells what is known without a look at the verdict.
func (m *Exporter) Observe() kubeapi.Observation {
	seen := kubeapi.Observation{NodeName: m.NodeName, PodIP: m.PodIP, PodUID: m.PodUID, FirstPort: m.FirstPort, Generation: m.dataServer.Generation, Usage: m.usage}
	seen.NetworkAddresses, _ = m.nodeAddresses()
	state := m.Ganesha.State()
	seen.Up, seen.InGrace = state.Initialized, state.InGrace
	seen.VolumeIDs = m.storage.Identities()
	if m.memory == nil {
		return seen
	}
	seen.Connections, seen.Failing = m.connections, len(m.failing)
	seen.Held = m.shares
	seen.MaxConnections = state.ConnectionsAllowed()
	for _, export := range m.active() {
		if m.servesShare(kubeapi.ShareOf(export)) {
			seen.Shares++
		}
	}
	return seen
}

// reportHealth writes what the storage reports about itself. It does not wait for a pass: that may be waiting for the storage.
func (m *Exporter) reportHealth(ctx context.Context, health backend.Health) error {
	m.noteHealth(health)
	m.Log.Info("the health of the storage changed", "failing", health.Failing, "degraded", health.Degraded)
	return m.Reporter.Report(ctx, func(status internalv1.DataServerStatus) internalv1.DataServerStatus {
		return kubeapi.WithHealth(status, health, metav1.NewTime(m.now().Truncate(time.Second)))
	})
}

func (m *Exporter) write(ctx context.Context, seen kubeapi.Observation) error {
	m.ends.observe(m.Ganesha.State(), seen.Ready, m.now())
	seen.LastEnd = m.ends.last
	return m.Reporter.Report(ctx, func(earlier internalv1.DataServerStatus) internalv1.DataServerStatus {
		return kubeapi.StatusFrom(earlier, seen, metav1.NewTime(m.now().Truncate(time.Second)))
	})
}
