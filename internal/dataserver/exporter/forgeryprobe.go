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

// refuseForgeries checks, once after each start of ganesha, that it accepts only file handles that it signed. The pod is not ready before. A
// ganesha that accepts others is killed, because clients could reach files outside their shares.
func (m *Exporter) refuseForgeries(ctx context.Context, config ganesha.Config) *kubeapi.Fault {
	// Any export that serves is enough. One that does not serve must not block the check.
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
			return kubeapi.NewFault(internalv1.ReasonUnsignedHandleAccepted, fmt.Errorf("%w: ganesha is stopped, because clients could reach files outside their shares; "+
				"use an image that was built with internal/ganesha/build", err))
		}
		if err != nil {
			return kubeapi.NewFault(internalv1.ReasonExportsFailing, fmt.Errorf("trying a forged file handle: %w", err))
		}
		m.proven = m.starts
	}
	m.Expected.ClearStart(m.starts)
	return nil
}
