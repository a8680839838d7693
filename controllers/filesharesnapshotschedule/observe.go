package filesharesnapshotschedule

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/controllers/backend"
	"github.com/howdah/howdah/controllers/conditions"
	"github.com/howdah/howdah/controllers/index"
	"github.com/howdah/howdah/controllers/lookup"
	"github.com/howdah/howdah/controllers/servertime"
	"github.com/howdah/howdah/internal/naming"
)

// observed is all that a pass knows.
type observed struct {
	// now is the API server's time, own that of the operator's machine.
	now, own time.Time
	// pause is how long no snapshot may be deleted; 0 if some may.
	pause    time.Duration
	schedule *v1alpha1.FileShareSnapshotSchedule
	// share is nil if it does not exist.
	share *v1alpha1.FileShare
	// refusal is why the share can't have snapshots; "" if it can, or if that is not known.
	refusal string
	// snapshots has the schedule's snapshots that are not being deleted.
	snapshots []*v1alpha1.FileShareSnapshot
}

func (r *Reconciler) observe(ctx context.Context, schedule *v1alpha1.FileShareSnapshotSchedule) (*observed, error) {
	at := servertime.Read(r.Clock)
	o := &observed{now: at.Server, own: at.Own, pause: r.removals.pause(schedule.UID), schedule: schedule}
	var list v1alpha1.FileShareSnapshotList
	if err := r.Client.List(ctx, &list, client.InNamespace(schedule.Namespace), index.OfSchedule(schedule.Name)); err != nil {
		return nil, fmt.Errorf("listing FileShareSnapshots: %w", err)
	}
	for i := range list.Items {
		if snapshot := &list.Items[i]; isOurs(schedule, snapshot) && snapshot.DeletionTimestamp == nil {
			o.snapshots = append(o.snapshots, snapshot)
		}
	}
	share := &v1alpha1.FileShare{}
	found, err := lookup.Object(ctx, r.Client, types.NamespacedName{Namespace: schedule.Namespace, Name: schedule.Spec.FileShareRef.Name}, share)
	if err != nil || !found {
		return o, err
	}
	o.share = share
	// A share must not learn about a FileServer of another namespace that does not allow it.
	server := naming.ServerNamespace(share)
	if conditions.IsStalled(share.Status.Conditions) || len(r.WatchNamespaces) > 0 && !slices.Contains(r.WatchNamespaces, server) {
		return o, nil
	}
	fileServer := &v1alpha1.FileServer{}
	found, err = lookup.Object(ctx, r.Client, types.NamespacedName{Namespace: server, Name: share.Spec.FileServerRef.Name}, fileServer)
	if found {
		o.refusal = backend.Of(fileServer).SnapshotRefusal(fileServer)
	}
	return o, err
}

// isOurs reports whether a schedule of this name made the snapshot, of the same share.
func isOurs(schedule *v1alpha1.FileShareSnapshotSchedule, snapshot *v1alpha1.FileShareSnapshot) bool {
	return snapshot.Labels[v1alpha1.SnapshotScheduleLabel] == schedule.Name && snapshot.Spec.FileShareRef == schedule.Spec.FileShareRef
}
