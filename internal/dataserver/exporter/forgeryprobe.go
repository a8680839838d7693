package exporter

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"syscall"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/internal/dataserver/kubeapi"
	"github.com/howdah/howdah/internal/dataserver/server"
	"github.com/howdah/howdah/internal/ganesha"
)

// refuseForgeries makes sure, once after each start of ganesha, that it takes no handle but its own: the pod is
// not ready before. One that does is killed, because clients could leave their shares.
func (m *Exporter) refuseForgeries(ctx context.Context, config ganesha.Config) *kubeapi.Fault {
	// Any export that serves will do; one that does not must not keep the others from being proven.
	served := slices.IndexFunc(config.Exports, func(e ganesha.Export) bool {
		_, serves := m.serving[e.Pseudo]
		return serves
	})
	if served >= 0 && m.proven != m.starts {
		err := m.Prober.Forge(ctx, config.Exports[served].Pseudo)
		if errors.Is(err, server.ErrForgeryTaken) {
			if pid := m.Ganesha.State().PID; pid != 0 {
				_ = syscall.Kill(pid, syscall.SIGKILL) // Fails only if it has just ended.
			}
			return kubeapi.NewFault(internalv1.ReasonUnsignedHandleAccepted, fmt.Errorf("%w: it is stopped, for its clients could leave their shares; "+
				"is the image one that was built with internal/ganesha/build?", err))
		}
		if err != nil {
			return kubeapi.NewFault(internalv1.ReasonExportsFailing, fmt.Errorf("trying a forged file handle: %w", err))
		}
		m.proven = m.starts
	}
	m.Expected.ClearStart(m.starts)
	return nil
}
