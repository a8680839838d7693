package mlperfstoragejob

import (
	"context"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/controllers/index"
	"github.com/howdah/howdah/controllers/requeue"
)

// SetupWithManager registers the controller and its watches.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("mlperfstoragejob").
		// Without the predicate each of our own status writes would cause another pass. Deletion raises the generation.
		// The finalizer does not, but needs another pass.
		For(&v1alpha1.MLPerfStorageJob{}, builder.WithPredicates(predicate.Or(predicate.GenerationChangedPredicate{}, finalizerChanged()))).
		Owns(&batchv1.Job{}).
		Owns(&corev1.ConfigMap{}).
		Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(byPod)).
		Watches(&corev1.PersistentVolume{}, handler.EnqueueRequestsFromMapFunc(byVolume)).
		Watches(&v1alpha1.FileShare{}, handler.EnqueueRequestsFromMapFunc(r.byShare)).
		WithOptions(controller.Options{
			RateLimiter: requeue.RateLimiter(),
		}).
		Complete(r.WatchNamespaces.Only(r))
}

func finalizerChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return len(e.ObjectOld.GetFinalizers()) != len(e.ObjectNew.GetFinalizers())
	}}
}

func byPod(_ context.Context, object client.Object) []reconcile.Request {
	name := object.GetLabels()[v1alpha1.JobLabel]
	if name == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: object.GetNamespace(), Name: name}}}
}

// byVolume finds a volume's job by its annotation: a cluster-wide object has no owner reference.
func byVolume(_ context.Context, object client.Object) []reconcile.Request {
	parts := strings.Split(object.GetAnnotations()[v1alpha1.OwnerAnnotation], "/")
	if len(parts) != 3 || parts[0] != "MLPerfStorageJob" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: parts[1], Name: parts[2]}}}
}

func (r *Reconciler) byShare(ctx context.Context, object client.Object) []reconcile.Request {
	var list v1alpha1.MLPerfStorageJobList
	if err := r.List(ctx, &list, client.InNamespace(object.GetNamespace()), index.OfFileShare(object.GetName())); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "listing MLPerfStorageJobs")
		return nil
	}
	requests := make([]reconcile.Request, 0, len(list.Items))
	for i := range list.Items {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
	}
	return requests
}
