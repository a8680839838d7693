package fileshare

import (
	"context"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
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
	"github.com/howdah/howdah/internal/fleet"
	"github.com/howdah/howdah/internal/naming"
)

// settle is how long the controller collects changes of directories and exports before a pass, so that two thousand
// mkdirs cause some passes and status writes, not two thousand.
const settle = 200 * time.Millisecond

type queueOf = workqueue.TypedRateLimitingInterface[reconcile.Request]

// SetupWithManager registers the controller and its watches.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("fileshare").
		For(&v1alpha1.FileShare{}, builder.WithPredicates(specOrLife)).
		Watches(&corev1.PersistentVolumeClaim{}, afterSettling(), builder.WithPredicates(ofShare)).
		Watches(&v1alpha1.FileShare{}, r.siblingEvents()).
		Watches(&v1alpha1.FileServer{}, handler.EnqueueRequestsFromMapFunc(r.sharesOfFileServer), builder.WithPredicates(fileServerChanged)).
		Watches(&internalv1.DataServer{}, handler.EnqueueRequestsFromMapFunc(r.sharesOfDataServer), builder.WithPredicates(serverChanged)).
		Watches(&internalv1.ShareAttachment{}, handler.EnqueueRequestsFromMapFunc(r.ofAttachment)).
		Watches(&internalv1.ShareAttachment{}, r.portsOfAttachments()).
		Watches(&corev1.Namespace{}, handler.EnqueueRequestsFromMapFunc(r.sharesOfNamespace), builder.WithPredicates(predicate.LabelChangedPredicate{})).
		Watches(&internalv1.ShareExport{}, afterSettling()).
		Watches(&internalv1.ShareStorage{}, afterSettling()).
		Watches(&internalv1.ShareDirectory{}, r.directoryEvents()).
		Watches(&internalv1.ShareSnapshot{}, handler.EnqueueRequestsFromMapFunc(shareOfSnapshot), builder.WithPredicates(snapshotGone)).
		Watches(&v1alpha1.FileShareSnapshot{}, handler.EnqueueRequestsFromMapFunc(r.fromSnapshot)).
		Watches(&corev1.PersistentVolumeClaim{}, handler.EnqueueRequestsFromMapFunc(r.waitingForClaim), builder.WithPredicates(claimGone)).
		Watches(&corev1.PersistentVolume{}, volumeEvents()).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: 4,
			RateLimiter:             requeue.RateLimiter(),
		}).
		Complete(r.WatchNamespaces.Only(r))
}

// specOrLife passes changes of the specification, annotations and deletion, and not of the status or an added
// finalizer, which this controller writes.
var specOrLife = predicate.Or[client.Object](predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}, predicate.Funcs{
	UpdateFunc: func(e event.UpdateEvent) bool {
		return (e.ObjectOld.GetDeletionTimestamp() == nil) != (e.ObjectNew.GetDeletionTimestamp() == nil) ||
			slices.ContainsFunc(e.ObjectOld.GetFinalizers(), func(f string) bool { return !slices.Contains(e.ObjectNew.GetFinalizers(), f) })
	},
})

// siblingEvents keeps the ledger, and then enqueues the other shares that depend on a share that comes, goes, or makes
// room. It is one handler, because a pass that looks for room must find it in the ledger.
func (r *Reconciler) siblingEvents() handler.EventHandler {
	enqueue := func(ctx context.Context, object client.Object, queue queueOf) {
		for _, request := range r.siblings(ctx, object) {
			queue.Add(request)
		}
	}
	see := func(object client.Object) {
		if share, ok := object.(*v1alpha1.FileShare); ok {
			r.ledger.see(share)
		}
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, queue queueOf) {
			see(e.Object)
			if !e.IsInInitialList { // Every share of it gets a pass of its own.
				enqueue(ctx, e.Object, queue)
			}
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, queue queueOf) {
			see(e.ObjectNew)
			switch before, after := wantsReservedPorts(e.ObjectOld), wantsReservedPorts(e.ObjectNew); {
			case before && !after:
				enqueue(ctx, e.ObjectOld, queue)
			case before != after || matters(e.ObjectOld, e.ObjectNew):
				enqueue(ctx, e.ObjectNew, queue)
			}
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, queue queueOf) {
			r.ledger.forget(client.ObjectKeyFromObject(e.Object), e.Object.GetUID())
			enqueue(ctx, e.Object, queue)
		},
	}
}

// directoryEvents keeps what is known of removals, and then enqueues the share: a pass must find it there.
func (r *Reconciler) directoryEvents() handler.EventHandler {
	enqueue := afterSettling()
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, queue queueOf) {
			r.removals.see(e.Object)
			enqueue.Create(ctx, e, queue)
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, queue queueOf) {
			r.removals.see(e.ObjectNew)
			enqueue.Update(ctx, e, queue)
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, queue queueOf) {
			r.removals.gone(e.Object, !e.DeleteStateUnknown)
			enqueue.Delete(ctx, e, queue)
		},
	}
}

// matters reports whether a share's change matters to other shares: its path and its use of the FileServer's limits.
func matters(before, after client.Object) bool {
	was, ok := before.(*v1alpha1.FileShare)
	is, alsoOK := after.(*v1alpha1.FileShare)
	return ok && alsoOK && makesRoom(was, is) || (before.GetDeletionTimestamp() == nil) != (after.GetDeletionTimestamp() == nil)
}

// fileServerChanged passes changes of what shares read of a FileServer. The number of directories of each server is not
// included; otherwise a mkdir in one share would cause a pass over every other share.
var fileServerChanged = predicate.Funcs{
	UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok := e.ObjectOld.(*v1alpha1.FileServer)
		after, alsoOK := e.ObjectNew.(*v1alpha1.FileServer)
		return !ok || !alsoOK || before.Generation != after.Generation || (before.DeletionTimestamp == nil) != (after.DeletionTimestamp == nil) ||
			!equality.Semantic.DeepEqual(whatSharesRead(before), whatSharesRead(after))
	},
}

// whatSharesRead is the part of a FileServer's status that shares read.
func whatSharesRead(fileServer *v1alpha1.FileServer) v1alpha1.FileServerStatus {
	status := &fileServer.Status
	read := v1alpha1.FileServerStatus{Address: status.Address, Replicas: status.Replicas}
	read.Capacity.TotalBytes = status.Capacity.TotalBytes
	for i := range status.Servers {
		read.Servers = append(read.Servers, v1alpha1.FileServerServerStatus{Name: status.Servers[i].Name, State: status.Servers[i].State})
	}
	if conditions.IsTrue(status.Conditions, v1alpha1.FileServerNamespaceServersAvailable) {
		read.Conditions = append(read.Conditions, metav1.Condition{Type: v1alpha1.FileServerNamespaceServersAvailable, Status: metav1.ConditionTrue})
	}
	if failing := storageFailing(fileServer); failing != nil {
		read.Conditions = append(read.Conditions, *failing)
	}
	return read
}

// serverChanged passes changes of what shares read of a data server when they place nothing: whether it exists, has
// ever served, and answers.
var serverChanged = predicate.Funcs{
	UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok := e.ObjectOld.(*internalv1.DataServer)
		after, alsoOK := e.ObjectNew.(*internalv1.DataServer)
		return !ok || !alsoOK || (before.DeletionTimestamp == nil) != (after.DeletionTimestamp == nil) ||
			before.Status.Unreachable.SeenBy != after.Status.Unreachable.SeenBy || before.RefusesNewDirectories() != after.RefusesNewDirectories() ||
			(before.Status.ObservedGeneration == nil) != (after.Status.ObservedGeneration == nil) ||
			// Its list of shares changes with each new share. Waiting shares only need to know when the list is there
			// at all.
			(before.Status.Shares == nil) != (after.Status.Shares == nil) ||
			conditions.IsTrue(before.Status.Conditions, v1alpha1.ConditionReady) != conditions.IsTrue(after.Status.Conditions, v1alpha1.ConditionReady) ||
			conditions.Reason(before.Status.Conditions, v1alpha1.ConditionReady) != conditions.Reason(after.Status.Conditions, v1alpha1.ConditionReady)
	},
}

// siblings returns the other shares that depend on a share: those with conflicting paths, and those that wait for room
// in the limits.
func (r *Reconciler) siblings(ctx context.Context, object client.Object) []reconcile.Request {
	share, ok := object.(*v1alpha1.FileShare)
	switch {
	case !ok:
		return nil
	case wantsReservedPorts(share): // All shares are mounted otherwise as long as there is one.
		return r.sharesThat(ctx, index.SharesOf(naming.ServerNamespace(share), share.Spec.FileServerRef.Name), naming.KeyOf(share))
	case naming.IsForeign(share): // Its path counts when it is attached (ofAttachment).
		return r.waiting(ctx, naming.ServerNamespace(share), fleet.ShareOf(share))
	}
	return r.siblingsOf(ctx, share.Namespace, fleet.ShareOf(share))
}

func (r *Reconciler) siblingsOf(ctx context.Context, namespace string, share fleet.Share) []reconcile.Request {
	requests := r.waiting(ctx, namespace, share)
	for _, place := range fleet.ConflictPlaces(share.Path) {
		requests = append(requests, r.sharesThat(ctx, index.SharesAt(namespace, share.FileServer, place), share.Key)...)
	}
	return requests
}

func (r *Reconciler) waiting(ctx context.Context, namespace string, share fleet.Share) []reconcile.Request {
	return r.sharesThat(ctx, index.SharesWaiting(namespace, share.FileServer), share.Key)
}

// ofAttachment returns the attached share and its siblings in the FileServer's namespace.
func (r *Reconciler) ofAttachment(ctx context.Context, object client.Object) []reconcile.Request {
	attachment, ok := object.(*internalv1.ShareAttachment)
	if !ok {
		return nil
	}
	return append(r.siblingsOf(ctx, attachment.Namespace, fleet.ShareOfAttachment(attachment)), requestOf(attachment.Namespace, attachment.Spec.FileShareRef.Name))
}

// sharesOfNamespace returns the shares that the namespace's labels may allow or forbid.
func (r *Reconciler) sharesOfNamespace(ctx context.Context, object client.Object) []reconcile.Request {
	var shares v1alpha1.FileShareList
	if !r.WatchNamespaces.Include(object.GetName()) {
		return nil
	}
	if err := r.Client.List(ctx, &shares, client.InNamespace(object.GetName()), client.UnsafeDisableDeepCopy); err != nil {
		log.FromContext(ctx).Error(err, "listing FileShares of a namespace whose labels changed", "namespace", object.GetName())
		return nil
	}
	var requests []reconcile.Request
	for i := range shares.Items {
		if naming.IsForeign(&shares.Items[i]) {
			requests = append(requests, requestOf(object.GetName(), shares.Items[i].Name))
		}
	}
	return requests
}

func (r *Reconciler) sharesOfFileServer(ctx context.Context, object client.Object) []reconcile.Request {
	return r.sharesThat(ctx, index.SharesOf(object.GetNamespace(), object.GetName()), "")
}

// sharesOfDataServer returns the shares of its FileServer, and deleted shares with an export that waits for it.
func (r *Reconciler) sharesOfDataServer(ctx context.Context, object client.Object) []reconcile.Request {
	server, ok := object.(*internalv1.DataServer)
	if !ok {
		return nil
	}
	requests := r.sharesThat(ctx, index.SharesOf(server.Namespace, server.Spec.FileServerRef.Name), "")
	return append(requests, r.endingExports(ctx, server.Namespace, server.Name)...)
}

// sharesThat returns the FileShares of all Kubernetes namespaces that an index has, except the one with the given key.
func (r *Reconciler) sharesThat(ctx context.Context, indexed client.MatchingFields, key string) []reconcile.Request {
	var shares v1alpha1.FileShareList
	if err := r.Client.List(ctx, &shares, indexed, client.UnsafeDisableDeepCopy); err != nil {
		log.FromContext(ctx).Error(err, "listing FileShares that a change concerns", "index", indexed)
		return nil
	}
	var requests []reconcile.Request
	for i := range shares.Items {
		if naming.KeyOf(&shares.Items[i]) != key {
			requests = append(requests, requestOf(shares.Items[i].Namespace, shares.Items[i].Name))
		}
	}
	return requests
}

// requestOf returns the request for the share with a key in its FileServer's namespace.
func requestOf(serverNamespace, key string) reconcile.Request {
	namespace, name := naming.ShareOfKey(serverNamespace, key)
	return reconcile.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}}
}

// volumeEvents enqueues the share of a volume: at once when Kubernetes or a user has changed it, because the claim waits
// for it, and after settling when the controller has made it.
func volumeEvents() handler.EventHandler {
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, queue queueOf) {
			if request, ok := shareOfVolume(e.Object); ok {
				queue.AddAfter(request, settle)
			}
		},
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, queue queueOf) {
			if request, ok := shareOfVolume(e.ObjectNew); ok {
				queue.Add(request)
			}
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, queue queueOf) {
			if request, ok := shareOfVolume(e.Object); ok {
				queue.Add(request)
			}
		},
	}
}

// shareOfVolume finds a volume's share by its annotation: a cluster-wide object has no owner reference.
func shareOfVolume(object client.Object) (reconcile.Request, bool) {
	parts := strings.Split(object.GetAnnotations()[v1alpha1.OwnerAnnotation], "/")
	if len(parts) != 3 || parts[0] != "FileShare" {
		return reconcile.Request{}, false
	}
	return reconcile.Request{NamespacedName: types.NamespacedName{Namespace: parts[1], Name: parts[2]}}, true
}

// ofShare passes the ready-made claims of shares.
var ofShare = predicate.NewPredicateFuncs(func(o client.Object) bool {
	owner := metav1.GetControllerOf(o)
	return owner != nil && owner.Kind == "FileShare" && owner.APIVersion == v1alpha1.GroupVersion.String()
})

// afterSettling enqueues the share of a directory, storage, export or claim once for all changes within settle.
func afterSettling() handler.EventHandler {
	add := func(object client.Object, queue queueOf) {
		switch object := object.(type) {
		case *corev1.PersistentVolumeClaim:
			queue.AddAfter(requestOf(object.Namespace, metav1.GetControllerOf(object).Name), settle)
		case *internalv1.ShareDirectory:
			queue.AddAfter(requestOf(object.Namespace, object.Spec.FileShareRef.Name), settle)
		case *internalv1.ShareStorage:
			queue.AddAfter(requestOf(object.Namespace, object.Spec.FileShareRef.Name), settle)
		case *internalv1.ShareExport:
			queue.AddAfter(requestOf(object.Namespace, object.Spec.FileShareRef.Name), settle)
		}
	}
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, queue queueOf) { add(e.Object, queue) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, queue queueOf) { add(e.ObjectNew, queue) },
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, queue queueOf) { add(e.Object, queue) },
	}
}
