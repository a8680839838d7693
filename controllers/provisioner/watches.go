package provisioner

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
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
	"sigs.k8s.io/controller-runtime/pkg/source"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/controllers/conditions"
	"github.com/howdah/howdah/controllers/lookup"
	"github.com/howdah/howdah/controllers/requeue"
	"github.com/howdah/howdah/internal/naming"
)

// SetupWithManager registers the controller, its watches and the cache of all claims.
func (r *Reconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager) error {
	claims, err := newClaims(ctx, mgr, r.WatchNamespaces)
	if err != nil {
		return err
	}
	r.Claims = claims
	pending := handler.EnqueueRequestsFromMapFunc(r.pending)
	return ctrl.NewControllerManagedBy(mgr).
		Named("provisioner").
		WatchesRawSource(source.Kind(claims, &corev1.PersistentVolumeClaim{}, handler.TypedEnqueueRequestsFromMapFunc(
			func(_ context.Context, claim *corev1.PersistentVolumeClaim) []reconcile.Request {
				return ofClaim(claim)
			}))).
		Watches(&corev1.PersistentVolume{}, handler.EnqueueRequestsFromMapFunc(ofVolume)).
		Watches(&v1alpha1.FileShare{}, handler.EnqueueRequestsFromMapFunc(r.ofShare)).
		Watches(&internalv1.ShareDirectory{}, handler.EnqueueRequestsFromMapFunc(ofDirectory)).
		Watches(&internalv1.DataServer{}, pending, builder.WithPredicates(readiness)).
		Watches(&storagev1.StorageClass{}, pending, builder.WithPredicates(predicate.NewPredicateFuncs(isOurClass))).
		Watches(&v1alpha1.FileServer{}, pending, builder.WithPredicates(allowsOrServes)).
		Watches(&corev1.Namespace{}, pending, builder.WithPredicates(predicate.LabelChangedPredicate{})).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: 4,
			RateLimiter:             requeue.RateLimiter(),
		}).
		Complete(r)
}

func named(name string) []reconcile.Request {
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: name}}}
}

// ofClaim returns the name of a claim's volume. If the claim is bound to a volume that was made for another claim, it
// is that volume's name.
func ofClaim(claim *corev1.PersistentVolumeClaim) []reconcile.Request {
	if !isOurs(claim) {
		return nil
	}
	if bound := claim.Spec.VolumeName; bound != "" && bound != volumeOf(claim) {
		return named(bound)
	}
	return named(volumeOf(claim))
}

func ofVolume(_ context.Context, object client.Object) []reconcile.Request {
	if volume, ok := object.(*corev1.PersistentVolume); ok {
		if _, _, ours := shareOf(volume); ours || isDirectory(volume) {
			return named(volume.Name)
		}
	}
	return nil
}

func ofDirectory(_ context.Context, object client.Object) []reconcile.Request {
	if _, uid, ok := claimOfMark(object.GetAnnotations()[v1alpha1.ClaimAnnotation]); ok {
		return named(naming.ProvisionedVolume(uid))
	}
	return nil
}

// ofShare returns the volume of a share, and waiting claims when the share is deleted; or the claims that wait for a
// directory of it.
func (r *Reconciler) ofShare(ctx context.Context, object client.Object) []reconcile.Request {
	share, ok := object.(*v1alpha1.FileShare)
	switch {
	case !ok:
		return nil
	case naming.IsProvisioned(share) && share.DeletionTimestamp != nil:
		// There may be room for another share.
		return append(r.pending(ctx, share), named(share.Name)...)
	case naming.IsProvisioned(share):
		return named(share.Name)
	}
	return r.pendingThat(ctx, func(claim *corev1.PersistentVolumeClaim) bool {
		class := &storagev1.StorageClass{}
		found, err := lookup.Object(ctx, r.Client, types.NamespacedName{Name: classOf(claim)}, class)
		return err == nil && found && class.Parameters["fileShare"] == share.Name && class.Parameters["fileServerNamespace"] == share.Namespace
	})
}

func isOurClass(object client.Object) bool {
	class, ok := object.(*storagev1.StorageClass)
	return ok && class.Provisioner == v1alpha1.Provisioner
}

// allowsOrServes passes what claims wait for at a FileServer: that it exists, allows them, and has ready namespace
// servers.
var allowsOrServes = predicate.Funcs{
	UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok := e.ObjectOld.(*v1alpha1.FileServer)
		after, alsoOK := e.ObjectNew.(*v1alpha1.FileServer)
		return !ok || !alsoOK || before.Generation != after.Generation || (before.DeletionTimestamp == nil) != (after.DeletionTimestamp == nil) ||
			conditions.IsTrue(before.Status.Conditions, v1alpha1.FileServerNamespaceServersAvailable) != conditions.IsTrue(after.Status.Conditions, v1alpha1.FileServerNamespaceServersAvailable)
	},
}

// readiness passes changes of a data server's readiness: there may be an owner for a waiting directory.
var readiness = predicate.Funcs{
	UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok := e.ObjectOld.(*internalv1.DataServer)
		after, alsoOK := e.ObjectNew.(*internalv1.DataServer)
		return ok && alsoOK && (before.Status.Unreachable.SeenBy != after.Status.Unreachable.SeenBy ||
			conditions.IsTrue(before.Status.Conditions, v1alpha1.ConditionReady) != conditions.IsTrue(after.Status.Conditions, v1alpha1.ConditionReady))
	},
}

// pending returns all claims that wait for this provisioner.
func (r *Reconciler) pending(ctx context.Context, _ client.Object) []reconcile.Request {
	return r.pendingThat(ctx, func(*corev1.PersistentVolumeClaim) bool { return true })
}

func (r *Reconciler) pendingThat(ctx context.Context, hear func(*corev1.PersistentVolumeClaim) bool) []reconcile.Request {
	var claims corev1.PersistentVolumeClaimList
	if err := r.Claims.List(ctx, &claims, client.UnsafeDisableDeepCopy); err != nil {
		log.FromContext(ctx).Error(err, "listing claims that wait")
		return nil
	}
	var requests []reconcile.Request
	for i := range claims.Items {
		if claim := &claims.Items[i]; isOurs(claim) && claim.Spec.VolumeName == "" && hear(claim) {
			requests = append(requests, named(volumeOf(claim))...)
		}
	}
	return requests
}
