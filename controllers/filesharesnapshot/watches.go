package filesharesnapshot

import (
	"context"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/controllers/conditions"
	"github.com/howdah/howdah/controllers/index"
	"github.com/howdah/howdah/controllers/requeue"
)

// SetupWithManager registers the controller and its watches.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("filesharesnapshot").
		For(&v1alpha1.FileShareSnapshot{}, builder.WithPredicates(specOrLife)).
		Watches(&internalv1.ShareSnapshot{}, handler.EnqueueRequestsFromMapFunc(ofStored)).
		Watches(&v1alpha1.FileShare{}, handler.EnqueueRequestsFromMapFunc(r.waitingForShare), builder.WithPredicates(shareChanged)).
		WithOptions(controller.Options{
			RateLimiter: requeue.RateLimiter(),
		}).
		Complete(r.WatchNamespaces.Only(r))
}

// specOrLife passes changes of the specification and of the deletion, and not of the status, which this controller
// writes.
var specOrLife = predicate.Or[client.Object](predicate.GenerationChangedPredicate{}, predicate.Funcs{
	UpdateFunc: func(e event.UpdateEvent) bool {
		return (e.ObjectOld.GetDeletionTimestamp() == nil) != (e.ObjectNew.GetDeletionTimestamp() == nil) ||
			!slices.Equal(e.ObjectOld.GetFinalizers(), e.ObjectNew.GetFinalizers())
	},
})

// shareChanged passes changes of what snapshots read of a share. A tenant can have any number of snapshots that wait, and
// the status of a share changes with its directories.
var shareChanged = predicate.Funcs{
	UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok := e.ObjectOld.(*v1alpha1.FileShare)
		after, alsoOK := e.ObjectNew.(*v1alpha1.FileShare)
		return !ok || !alsoOK || whatSnapshotsRead(before) != whatSnapshotsRead(after)
	},
}

// readOfShare is what snapshots read of a share.
type readOfShare struct {
	deleting, stalled, mounted bool
	why                        string
}

func whatSnapshotsRead(share *v1alpha1.FileShare) readOfShare {
	read := readOfShare{share.DeletionTimestamp != nil, conditions.IsStalled(share.Status.Conditions), share.Status.Mount.Address != "", ""}
	if read.stalled || !read.mounted {
		read.why = whyNot(share)
	}
	return read
}

// ofStored returns the snapshot of a ShareSnapshot.
func ofStored(_ context.Context, object client.Object) []reconcile.Request {
	kind, rest, _ := strings.Cut(object.GetAnnotations()[v1alpha1.OwnerAnnotation], "/")
	namespace, name, found := strings.Cut(rest, "/")
	if kind != "FileShareSnapshot" || !found {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}}}
}

// waitingForShare returns the snapshots of a share that are not made yet. The others do not depend on the share.
func (r *Reconciler) waitingForShare(ctx context.Context, object client.Object) []reconcile.Request {
	var list v1alpha1.FileShareSnapshotList
	if err := r.Client.List(ctx, &list, client.InNamespace(object.GetNamespace()), index.OfFileShare(object.GetName()), client.UnsafeDisableDeepCopy); err != nil {
		log.FromContext(ctx).Error(err, "listing FileShareSnapshots of a share that changed", "fileShare", object.GetName())
		return nil
	}
	var requests []reconcile.Request
	for i := range list.Items {
		if list.Items[i].Status.ReadyTime == nil {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
		}
	}
	return requests
}
