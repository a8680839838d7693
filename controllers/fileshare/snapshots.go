package fileshare

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/controllers/conditions"
	"github.com/howdah/howdah/controllers/index"
	"github.com/howdah/howdah/internal/naming"
)

// waitForSnapshots returns the snapshots that the removal of a share's data waits for. A snapshot is removed only by
// its own deletion. Retained data keeps its snapshots.
func (r *Reconciler) waitForSnapshots(ctx context.Context, o *observed) (string, error) {
	if o.unwatched || o.fileServer == nil || !removesData(o) {
		return "", nil
	}
	var list internalv1.ShareSnapshotList
	if err := r.Client.List(ctx, &list, client.InNamespace(o.namespace()), index.OfFileShare(o.key()), client.UnsafeDisableDeepCopy); err != nil {
		return "", fmt.Errorf("listing ShareSnapshots: %w", err)
	}
	var names []string
	for i := range list.Items {
		if list.Items[i].Spec.FileServerRef.Name == o.fileServer.Name {
			names = append(names, list.Items[i].Spec.SnapshotName)
		}
	}
	if len(names) == 0 {
		return "", nil
	}
	slices.Sort(names)
	return fmt.Sprintf("reclaimPolicy is Delete, and %s of the share are there, which go by their own deletion only: kubectl -n %s delete filesharesnapshots NAME, for %s; "+
		"or set reclaimPolicy to %s, which keeps the data and them", plural(len(names), "snapshot"), o.share.Namespace, conditions.List(names, maxNamed), v1alpha1.ReclaimRetain), nil
}

// snapshotGone passes deletions, because the deletion of a share may wait for them.
var snapshotGone = predicate.Funcs{
	CreateFunc: func(event.CreateEvent) bool { return false },
	UpdateFunc: func(event.UpdateEvent) bool { return false },
}

// shareOfSnapshot is the share of a ShareSnapshot.
func shareOfSnapshot(_ context.Context, object client.Object) []reconcile.Request {
	snapshot, ok := object.(*internalv1.ShareSnapshot)
	if !ok {
		return nil
	}
	namespace, name := naming.ShareOfKey(snapshot.Namespace, snapshot.Spec.FileShareRef.Name)
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}}}
}
