package filesharesnapshotschedule

import (
	"context"

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

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/controllers/conditions"
	"github.com/howdah/howdah/controllers/index"
	"github.com/howdah/howdah/controllers/requeue"
)

// SetupWithManager registers the controller and its watches.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("filesharesnapshotschedule").
		For(&v1alpha1.FileShareSnapshotSchedule{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&v1alpha1.FileShareSnapshot{}, handler.EnqueueRequestsFromMapFunc(bySnapshot)).
		Watches(&v1alpha1.FileShare{}, handler.EnqueueRequestsFromMapFunc(r.byShare), builder.WithPredicates(shareChanged)).
		WithOptions(controller.Options{
			RateLimiter: requeue.RateLimiter(),
		}).
		Complete(r)
}

// shareChanged passes changes of what schedules read of a share. Each pass reads its schedule past the cache, a tenant can
// have any number of them, and the status of a share changes with its directories.
var shareChanged = predicate.Funcs{
	UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok := e.ObjectOld.(*v1alpha1.FileShare)
		after, alsoOK := e.ObjectNew.(*v1alpha1.FileShare)
		return !ok || !alsoOK || (before.DeletionTimestamp == nil) != (after.DeletionTimestamp == nil) ||
			conditions.IsStalled(before.Status.Conditions) != conditions.IsStalled(after.Status.Conditions)
	},
}

func bySnapshot(_ context.Context, object client.Object) []reconcile.Request {
	name := object.GetLabels()[v1alpha1.SnapshotScheduleLabel]
	if name == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: object.GetNamespace(), Name: name}}}
}

func (r *Reconciler) byShare(ctx context.Context, object client.Object) []reconcile.Request {
	var list v1alpha1.FileShareSnapshotScheduleList
	if err := r.Client.List(ctx, &list, client.InNamespace(object.GetNamespace()), index.OfFileShare(object.GetName()), client.UnsafeDisableDeepCopy); err != nil {
		log.FromContext(ctx).Error(err, "listing FileShareSnapshotSchedules of a share that changed", "fileShare", object.GetName())
		return nil
	}
	var requests []reconcile.Request
	for i := range list.Items {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
	}
	return requests
}
