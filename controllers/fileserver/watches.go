package fileserver

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/controllers/backend"
	"github.com/howdah/howdah/controllers/desired"
	"github.com/howdah/howdah/controllers/foreign"
	"github.com/howdah/howdah/controllers/requeue"
	"github.com/howdah/howdah/internal/naming"
)

const (
	// directoryDelay gathers the directories that clients make in bursts into one pass.
	directoryDelay = time.Second
	// shareDelay does it for shares: a pass reads all shares of the FileServer.
	shareDelay = time.Second
	// nodeDelay gathers nodes that come together into one write for each data server.
	nodeDelay = 500 * time.Millisecond
)

// SetupWithManager registers the controller and its watches.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	r.namespaceServers = newNamespaceServers(mgr.GetClient(), clock.RealClock{})
	if err := mgr.Add(r.namespaceServers); err != nil {
		return err
	}
	r.foreign = foreign.New(mgr, r.WatchNamespaces, backend.ForeignKinds()...)
	watch := &keyWatch{client: mgr.GetClient(), keys: &r.keys, clock: clock.RealClock{}, lost: make(chan event.GenericEvent, 1)}
	if err := mgr.Add(watch); err != nil {
		return err
	}
	return ctrl.NewControllerManagedBy(mgr).
		Named("fileserver").
		// Every status write of our own would bring another pass without this; deletion raises the generation.
		For(&v1alpha1.FileServer{}, builder.WithPredicates(predicate.Or(predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}))).
		// Their pods tell how far they are; what is read of them is what was applied to them, and of which template a pod is.
		Owns(&appsv1.StatefulSet{}, builder.WithPredicates(predicate.Or(meantChanged(), templateObserved()))).
		Owns(&appsv1.Deployment{}, builder.WithPredicates(predicate.Or(meantChanged(), refusalChanged()))).
		Owns(&corev1.Service{}).
		Owns(&discoveryv1.EndpointSlice{}).
		Owns(&internalv1.DataServer{}).
		Owns(&internalv1.Steward{}).
		Owns(&corev1.ServiceAccount{}).
		Owns(&rbacv1.Role{}).
		Owns(&rbacv1.RoleBinding{}).
		Owns(&networkingv1.NetworkPolicy{}).
		Owns(&policyv1.PodDisruptionBudget{}, builder.WithPredicates(meantChanged())).
		Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(byLabel), builder.WithPredicates(podChanged())).
		Watches(&corev1.PersistentVolumeClaim{}, handler.EnqueueRequestsFromMapFunc(byLabel), builder.WithPredicates(ofDataServers())).
		Watches(&v1alpha1.FileShare{}, delayed(byShare, shareDelay), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&internalv1.ShareAttachment{}, delayed(byLabel, shareDelay)).
		Watches(&internalv1.ShareDirectory{}, delayed(byDirectory, directoryDelay), builder.WithPredicates(ownerChanged())).
		Watches(&internalv1.ShareExport{}, delayed(byExport, directoryDelay), builder.WithPredicates(undoneChanged())).
		Watches(&corev1.Node{}, delayed(r.every, nodeDelay), builder.WithPredicates(nodeChanged())).
		Watches(&storagev1.StorageClass{}, handler.EnqueueRequestsFromMapFunc(r.every), builder.WithPredicates(predicate.ResourceVersionChangedPredicate{})).
		WatchesRawSource(source.Channel(r.namespaceServers.changed, &handler.EnqueueRequestForObject{})).
		WatchesRawSource(source.Channel(watch.lost, &handler.EnqueueRequestForObject{})).
		WatchesRawSource(source.Channel(r.foreign.Changed, handler.EnqueueRequestsFromMapFunc(r.inNamespace))).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: 4,
			RateLimiter:             requeue.RateLimiter(),
		}).
		Complete(r)
}

func requestFor(object client.Object, fileServer string) []reconcile.Request {
	if fileServer == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: object.GetNamespace(), Name: fileServer}}}
}

func byLabel(_ context.Context, object client.Object) []reconcile.Request {
	return requestFor(object, object.GetLabels()[v1alpha1.FileServerLabel])
}

func byShare(_ context.Context, object client.Object) []reconcile.Request {
	share, ok := object.(*v1alpha1.FileShare)
	if !ok || naming.IsForeign(share) {
		return nil // Its ShareAttachment tells, once it is allowed.
	}
	return requestFor(share, share.Spec.FileServerRef.Name)
}

func byDirectory(_ context.Context, object client.Object) []reconcile.Request {
	directory, ok := object.(*internalv1.ShareDirectory)
	if !ok {
		return nil
	}
	return requestFor(directory, directory.Spec.FileServerRef.Name)
}

// inNamespace maps an object of another operator to the FileServers beside it.
func (r *Reconciler) inNamespace(ctx context.Context, object client.Object) []reconcile.Request {
	return r.requests(ctx, client.InNamespace(object.GetNamespace()))
}

// every maps cluster-wide facts to all FileServers.
func (r *Reconciler) every(ctx context.Context, _ client.Object) []reconcile.Request {
	return r.requests(ctx)
}

func (r *Reconciler) requests(ctx context.Context, which ...client.ListOption) []reconcile.Request {
	var list v1alpha1.FileServerList
	if err := r.List(ctx, &list, which...); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "listing FileServers")
		return nil
	}
	var requests []reconcile.Request
	for i := range list.Items {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
	}
	return requests
}

// delayed puts requests into the queue after a while; those that come meanwhile are the same one.
func delayed(requests handler.MapFunc, delay time.Duration) handler.EventHandler {
	type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]
	add := func(ctx context.Context, q queue, object client.Object) {
		for _, request := range requests(ctx, object) {
			q.AddAfter(request, delay)
		}
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) { add(ctx, q, e.Object) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) { add(ctx, q, e.ObjectNew) },
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) { add(ctx, q, e.Object) },
	}
}

// meantChanged passes changes of an object's desired state, made by any writer, and ignores its status.
func meantChanged() predicate.Predicate {
	return predicate.Or[client.Object](predicate.GenerationChangedPredicate{}, predicate.LabelChangedPredicate{},
		predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
			return (e.ObjectOld.GetDeletionTimestamp() == nil) != (e.ObjectNew.GetDeletionTimestamp() == nil) ||
				!equality.Semantic.DeepEqual(e.ObjectOld.GetOwnerReferences(), e.ObjectNew.GetOwnerReferences()) ||
				e.ObjectOld.GetAnnotations()[v1alpha1.OwnerAnnotation] != e.ObjectNew.GetAnnotations()[v1alpha1.OwnerAnnotation]
		}})
}

// templateObserved lets pass that the controller of StatefulSets has seen what was applied, and how far a rollout is.
func templateObserved() predicate.Predicate {
	read := func(set *appsv1.StatefulSet) string {
		s := &set.Status
		return fmt.Sprintln(s.ObservedGeneration, s.CurrentRevision, s.UpdateRevision, s.UpdatedReplicas)
	}
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok := e.ObjectOld.(*appsv1.StatefulSet)
		after, ok2 := e.ObjectNew.(*appsv1.StatefulSet)
		return ok && ok2 && read(before) != read(after)
	}}
}

// podChanged lets pass what is read of a pod.
func podChanged() predicate.Predicate {
	read := func(pod *corev1.Pod) string {
		var ready corev1.ConditionStatus
		if c := podCondition(pod, corev1.PodReady); c != nil {
			ready = c.Status
		}
		return fmt.Sprintln(pod.Spec.NodeName, pod.Status.PodIPs, pod.Status.Phase, ready, pod.DeletionTimestamp != nil, podWaits(pod))
	}
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok := e.ObjectOld.(*corev1.Pod)
		after, ok2 := e.ObjectNew.(*corev1.Pod)
		return !ok || !ok2 || before.UID != after.UID || read(before) != read(after)
	}}
}

// ofDataServers leaves out the ready-made claims of shares.
func ofDataServers() predicate.Predicate {
	return predicate.NewPredicateFuncs(func(o client.Object) bool {
		return o.GetLabels()[v1alpha1.ComponentLabel] == naming.ComponentDataServer
	})
}

// ownerChanged lets pass what changes how many directories a server owns, and the steps of moves.
func ownerChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok := e.ObjectOld.(*internalv1.ShareDirectory)
		after, ok2 := e.ObjectNew.(*internalv1.ShareDirectory)
		return ok && ok2 && (before.Spec.DataServerRef.Name != after.Spec.DataServerRef.Name ||
			(before.Spec.Move.ID != "" || after.Spec.Move.ID != "") && (before.State() != after.State() || before.Spec.Move.Sequence != after.Spec.Move.Sequence))
	}}
}

// nodeChanged lets pass what changes whether a node can have data servers, what a message says of it, and from which addresses
// it comes; a node's heartbeat does not.
func nodeChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok := e.ObjectOld.(*corev1.Node)
		after, ok2 := e.ObjectNew.(*corev1.Node)
		return ok && ok2 && (before.Spec.Unschedulable != after.Spec.Unschedulable ||
			!maps.Equal(before.Labels, after.Labels) || nodeReady(before) != nodeReady(after) ||
			before.Status.NodeInfo.BootID != after.Status.NodeInfo.BootID ||
			!slices.EqualFunc(before.Spec.Taints, after.Spec.Taints, func(a, b corev1.Taint) bool {
				return equality.Semantic.DeepEqual(a, b)
			}) ||
			!slices.Equal(desired.NodeAddresses([]corev1.Node{*before}), desired.NodeAddresses([]corev1.Node{*after})))
	}}
}
