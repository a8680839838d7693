package dataserver

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"syscall"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/internal/ganesha"
)

// errForgeryTaken tells that ganesha took a file handle that it did not make.
var errForgeryTaken = errors.New("ganesha took a file handle with a flipped bit")

// refuseForgeries makes sure, once after each start of ganesha, that it takes no handle but its own: the pod is
// not ready before. One that does is killed, because clients could leave their shares.
func (m *manager) refuseForgeries(ctx context.Context, config ganesha.Config) *fault {
	// Any export that serves will do; one that does not must not keep the others from being proven.
	served := slices.IndexFunc(config.Exports, func(e ganesha.Export) bool {
		_, serves := m.serving[e.Pseudo]
		return serves
	})
	if served >= 0 && m.proven != m.starts {
		err := m.prober.forge(ctx, config.Exports[served].Pseudo)
		if errors.Is(err, errForgeryTaken) {
			if pid := m.ganesha.state().PID; pid != 0 {
				_ = syscall.Kill(pid, syscall.SIGKILL) // Fails only if it has just ended.
			}
			return &fault{internalv1.ReasonUnsignedHandleAccepted, fmt.Errorf("%w: it is stopped, for its clients could leave their shares; "+
				"is the image one that was built with internal/ganesha/build?", err)}
		}
		if err != nil {
			return &fault{internalv1.ReasonExportsFailing, fmt.Errorf("trying a forged file handle: %w", err)}
		}
		m.proven = m.starts
	}
	m.expected.clearedStart.Store(int64(m.starts))
	return nil
}
