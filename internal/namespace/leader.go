package namespace

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/howdah/howdah/internal/naming"
)

// A leader that is gone is replaced within leaseDuration; one that stops cleanly, at
// once. What two leaders do at a time by mistake is harmless: each step is checked by the API or by the owner.
const (
	leaseDuration = 4 * time.Second
	renewDeadline = 3 * time.Second
	retryPeriod   = time.Second
)

// elect runs keep whenever this namespace server is the elected one, until the context ends.
func elect(ctx context.Context, config *rest.Config, o *Options, m *serverMetrics, keep func(context.Context)) error {
	leases, err := coordination.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("prepare the election of the leader: %w", err)
	}
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Namespace: o.KubeNamespace, Name: naming.NamespaceServers(o.FileServer)},
			Client:     leases,
			LockConfig: resourcelock.ResourceLockConfig{Identity: o.Replica},
		},
		LeaseDuration:   leaseDuration,
		RenewDeadline:   renewDeadline,
		RetryPeriod:     retryPeriod,
		ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(ctx context.Context) {
				o.Log.Info("this namespace server is the leader now")
				m.becameLeader()
				keep(ctx)
			},
			OnStoppedLeading: func() { m.leader.Set(0) },
		},
		Name: naming.NamespaceServers(o.FileServer),
	})
	if err != nil {
		return fmt.Errorf("prepare the election of the leader: %w", err)
	}
	for ctx.Err() == nil {
		// Run returns when leadership is lost: then it is sought again.
		elector.Run(ctx)
	}
	return nil
}
