package exporter

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/dataserver/kubeapi"
	"github.com/howdah/howdah/internal/ganesha"
)

// refuse makes sure that nothing is exported, and gives every export the reason as its fault. If ganesha runs, because the storage was allowed
// before, it gets a configuration without exports.
func (m *Exporter) refuse(ctx, supervised context.Context, failure *kubeapi.Fault) *kubeapi.Fault {
	m.Expected.SetGeneration(0) // Not ready, whatever was served before.
	m.failing, m.removed = map[string]*kubeapi.Fault{}, map[types.UID]bool{}
	if m.started {
		if unfinished := m.withdraw(ctx, supervised); unfinished != nil {
			failure = kubeapi.NewFault(failure.Reason, fmt.Errorf("its exports are still being removed: %w. %w", unfinished.Err, failure.Err))
		}
	}
	for _, export := range m.exports {
		share := kubeapi.ShareOf(export)
		if export.DeletionTimestamp != nil && !m.exportsAnything() && !m.mustDiscard(ctx, export) {
			m.removed[export.UID] = true
			continue
		}
		m.failing[share] = failure
	}
	return failure
}

// withdraw makes ganesha serve nothing. Clients wait.
func (m *Exporter) withdraw(ctx, supervised context.Context) *kubeapi.Fault {
	config, err := desiredConfig(m.dataServer, nil, m.awaited(nil), m.memory, m.storage, m.Own, m.MemoryLimit)
	if err != nil {
		return kubeapi.NewFault(v1alpha1.ReasonInvalidSpec, err)
	}
	text, err := ganesha.Render(m.withPorts(config))
	if err != nil {
		return kubeapi.NewFault(v1alpha1.ReasonInvalidSpec, err)
	}
	if err := m.configure(config, text); err != nil {
		return kubeapi.NewFault(v1alpha1.ReasonApplyFailed, err)
	}
	if failure := m.load(ctx, supervised, text); failure != nil {
		return failure
	}
	return m.verify(ctx, config)
}

// exportsAnything tells whether ganesha serves anything, or may.
func (m *Exporter) exportsAnything() bool {
	return m.started && (len(m.serving) > 0 || len(m.leaving) > 0)
}

// mustDiscard tells whether an export that is being deleted has data that is to go with it. Refused storage is not written to.
func (m *Exporter) mustDiscard(ctx context.Context, export *internalv1.ShareExport) bool {
	return export.Spec.DataPolicy == internalv1.DataDelete && m.storage.HasData(ctx, m.dataServer, kubeapi.ShareOf(export))
}
