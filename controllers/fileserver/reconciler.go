package fileserver

import (
	"context"
	"errors"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	internalv1ac "github.com/howdah/howdah/api/internalapi/applyconfiguration/internalapi/v1alpha1"
	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/controllers/apply"
	"github.com/howdah/howdah/controllers/conditions"
	"github.com/howdah/howdah/controllers/desired"
	"github.com/howdah/howdah/controllers/directorymoves"
	"github.com/howdah/howdah/controllers/foreign"
	"github.com/howdah/howdah/controllers/index"
	"github.com/howdah/howdah/controllers/requeue"
	"github.com/howdah/howdah/controllers/watched"
	"github.com/howdah/howdah/internal/naming"
)

// FieldManager is the name that this controller applies under.
const FieldManager = "howdah-fileserver"

// What the controller itself does:
//
// +kubebuilder:rbac:groups=howdah.io,resources=fileservers,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=howdah.io,resources=fileservers/status,verbs=patch
// +kubebuilder:rbac:groups=howdah.io,resources=fileservers/finalizers,verbs=update
// +kubebuilder:rbac:groups=howdah.io,resources=fileshares,verbs=get;list;watch
// +kubebuilder:rbac:groups=internal.howdah.io,resources=sharedirectories;shareexports,verbs=get;list;watch
// +kubebuilder:rbac:groups=internal.howdah.io,resources=sharedirectories,verbs=patch
// +kubebuilder:rbac:groups=internal.howdah.io,resources=dataservers,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=nodes,verbs=get;list;watch
// +kubebuilder:rbac:groups=internal.howdah.io,resources=stewards,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups="",resources=pods/eviction,verbs=create
// +kubebuilder:rbac:groups="",resources=secrets,verbs=create
// +kubebuilder:rbac:groups="",resources=services;serviceaccounts,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=discovery.k8s.io,resources=endpointslices,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=discovery.k8s.io,resources=endpointslices/restricted,verbs=create
// +kubebuilder:rbac:groups="",resources=persistentvolumeclaims,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups="",resources=persistentvolumes,verbs=get
// +kubebuilder:rbac:groups=storage.k8s.io,resources=storageclasses,verbs=get;list;watch
// +kubebuilder:rbac:groups=apps,resources=statefulsets;deployments,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=policy,resources=poddisruptionbudgets,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=networking.k8s.io,resources=networkpolicies,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=rbac.authorization.k8s.io,resources=roles;rolebindings,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=events,verbs=list
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch
//
// What it gives to servers (controllers/desired, access.go), and therefore must have:
//
// +kubebuilder:rbac:groups=internal.howdah.io,resources=dataservers/status;shareexports/status;sharestorages/status;stewards/status,verbs=patch
// +kubebuilder:rbac:groups="",resources=secrets,verbs=update
// +kubebuilder:rbac:groups=internal.howdah.io,resources=sharedirectories/status,verbs=update;patch
// +kubebuilder:rbac:groups=internal.howdah.io,resources=sharedirectories,verbs=get;list;watch;create;update;delete
// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,verbs=get;create;update

// Reconciler turns FileServers into their children.
type Reconciler struct {
	client.Client
	// Live reads past the cache.
	Live    client.Reader
	Applier *apply.Applier
	Images  desired.Images
	Clock   clock.PassiveClock
	Events  events.EventRecorder
	// NetworkPolicies are made for the pods, unless nil.
	NetworkPolicies *desired.NetworkPolicies
	// WatchNamespaces are the Kubernetes namespaces that the operator looks after; none means all.
	WatchNamespaces watched.Namespaces
	// Failover lets FileServers have lost data servers started on other nodes.
	Failover bool
	// FailoverVolumes is the same for FileServers on volumes (spec.failover.fencing: Power).
	FailoverVolumes bool

	keys             keys
	uncounted        directorymoves.Uncounted
	turns            turns
	families         families
	namespaceServers *namespaceServers
	foreign          *foreign.Objects
	statuses         apply.Statuses
}

// Reconcile is one pass over a FileServer.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var fs v1alpha1.FileServer
	if err := r.Get(ctx, request.NamespacedName, &fs); apierrors.IsNotFound(err) {
		r.Applier.Forget("FileServer", request.NamespacedName)
		r.keys.forget(request.NamespacedName)
		r.uncounted.Forget(request.NamespacedName)
		return ctrl.Result{}, nil
	} else if err != nil {
		return ctrl.Result{}, err
	}
	paused := conditions.IsPaused(&fs)
	if fs.DeletionTimestamp == nil && !paused {
		// Before anything is made: what is made must not be left behind.
		if _, err := apply.AddFinalizer(ctx, r.Client, &fs, v1alpha1.FileServerFinalizer); err != nil {
			return ctrl.Result{}, err
		}
	}
	o, err := r.observe(ctx, &fs)
	if err != nil {
		return ctrl.Result{}, err
	}
	if isReleased(o) && !paused {
		return ctrl.Result{}, r.release(ctx, o)
	}
	d := decide(o, r.Images)
	d.input.NetworkPolicies = r.NetworkPolicies
	if r.NetworkPolicies != nil {
		d.input.Clients = desired.ClientNetworks(o.shares, d.input.NodeNetworks)
	}
	led := r.leadToNodes(ctx, o, d.input)
	var applied error
	if applied = o.identityFault(); !paused && applied == nil {
		// Before the DataServers get their tasks for it. What fails is tried again, and keeps nothing else from being applied.
		moves := directorymoves.Writer{Client: r.Client, Events: r.Events}
		copied, tasks, failed := moves.WriteCopies(ctx, o.moves, d.moves)
		d.input.Moves = tasks
		if applied = r.applyWithKeys(ctx, o, d); applied == nil {
			// After the DataServers say which of them take nothing new.
			d.moved, applied = moves.Move(ctx, o.moves, d.moves)
			var replaced error
			d.replaceWaits, replaced = r.replacePod(ctx, o, d)
			applied = errors.Join(applied, replaced)
		}
		d.moved, applied = d.moved+copied, errors.Join(applied, failed)
	}
	d.uncounted = r.uncounted.Add(request.NamespacedName, d.moved)
	if o.identityFault() == nil {
		// Also after an error: what is lost needs nothing of what could not be applied.
		lost := r.carryOutFailover(ctx, o, d.failover)
		applied, d.deletedLost = errors.Join(applied, lost), lost == nil
	}
	applied = errors.Join(applied, led)
	after := fs.DeepCopy()
	after.Status = report(o, d, applied, r.Clock.Now())
	written := r.statuses.Write(ctx, r.Client, &fs, after, r.Clock.Now())
	if written == nil {
		r.uncounted.Forget(request.NamespacedName)
		o.recordEnds(r.Events, d.ends)
		apply.Tell(r.Events, after, fs.Status.Conditions, after.Status.Conditions)
		o.tellFills(r.Events, after, &fs.Status)
		tellFailovers(r.Events, after, fs.Status.Servers, after.Status.Servers)
	}
	result, err := apply.Outcome(applied, written)
	if err == nil && result.IsZero() && o.hasWaiting() {
		result.RequeueAfter = lostKeysAfter
	}
	if err == nil {
		result.RequeueAfter = requeue.Soonest(result.RequeueAfter, d.failover.Again)
	}
	if err == nil && !paused {
		result.RequeueAfter = requeue.Soonest(result.RequeueAfter, d.moves.Again(), o.drainAgain(d.input.Replicas), o.refusedAgain(), d.storage.Again,
			endsAgain(d.ends), rolloutAgainAfter(d.rollout), o.outsideAgain(d.input.Replicas), o.familiesAgain())
	}
	return result, err
}

// applyWithKeys makes the keys before the pods that mount them.
func (r *Reconciler) applyWithKeys(ctx context.Context, o *observed, d decision) error {
	lost, err := r.keys.haveLost(ctx, r.Client, o, r.Clock.Now())
	if err != nil {
		return err
	}
	if lost {
		r.Events.Eventf(o.fileServer, nil, corev1.EventTypeWarning, "CertificatesLost", "Restart",
			"Secret %s with the certificates of the servers is gone; the next one is made, and the servers are replaced one after the other: until then mkdir waits",
			certificatesOf(o.fileServer, d.input.CertificatesLost).Name)
		d.input.CertificatesLost++
	}
	made := r.keys.ensure(ctx, r.Client, o, d.input.CertificatesLost, r.Clock.Now())
	if steward := d.input.Storage.Steward; steward != nil {
		made = errors.Join(made, r.keys.ensureStewardSecret(ctx, r.Client, o, steward.Secret), r.bringSecret(ctx, o))
	}
	record, err := o.nextRecord(d.input)
	d.input.Rollout.Record = record
	return errors.Join(made, err, r.apply(ctx, o, d))
}

// prunable are the kinds of children of which there can be one too many.
func prunable() []client.ObjectList {
	return []client.ObjectList{
		&corev1.ServiceList{}, &discoveryv1.EndpointSliceList{}, &internalv1.DataServerList{}, &internalv1.StewardList{}, &appsv1.StatefulSetList{}, &appsv1.DeploymentList{},
		&policyv1.PodDisruptionBudgetList{}, &corev1.ServiceAccountList{}, &rbacv1.RoleList{}, &rbacv1.RoleBindingList{},
		&networkingv1.NetworkPolicyList{},
	}
}

// apply makes the children what they should be. Nothing is pruned after an
// error: what is missing may be missing because of it. Nor is anything while the data servers keep their pods: those of a number that was
// reduced since still need what they have.
func (r *Reconciler) apply(ctx context.Context, o *observed, d decision) error {
	if err := r.keepAddresses(ctx, o, d.input); err != nil {
		return err
	}
	made, kept := o.children(d.input)
	all := make([]apply.Object, 0, len(d.storage.Unowned)+len(d.storage.Owned)+len(made))
	for _, object := range d.storage.Unowned {
		all = append(all, apply.Unowned(object))
	}
	all = append(all, apply.AllOwned(d.storage.Owned...)...)
	if err := r.Applier.Apply(ctx, o.fileServer, append(all, made...)...); err != nil || o.keepsPods() {
		return err
	}
	keep := append(made, kept...)
	if d.input.StewardStays {
		keep = append(keep, apply.Owned(desired.StewardDeployment(d.input)))
	}
	if o.statefulSet != nil && d.input.Storage.Missing {
		// Without storage there is no StatefulSet to keep, but one that exists has data behind it.
		return nil
	}
	_, err := r.Applier.Prune(ctx, o.fileServer, keep, prunable(), index.OfFileServer(o.fileServer.Name))
	return err
}

// children are those of the FileServer itself: those to make, and those that stay as they are, because they would have values that the API server
// refuses. The Steward has requests to fence, of which it is decided here which of them stay: an operator that
// is behind, or that was no more and goes on, must not take back those of another.
func (o *observed) children(in desired.FileServerInput) (made, kept []apply.Object) {
	for _, child := range desired.FileServer(in) {
		_, isSteward := child.(*internalv1ac.StewardApplyConfiguration)
		switch {
		case o.hasBadValue(child):
			kept = append(kept, apply.Owned(child))
		case isSteward && o.steward != nil:
			made = append(made, apply.OwnedAsRead(child, o.steward))
		default:
			made = append(made, apply.Owned(child))
		}
	}
	return made, kept
}

func (o *observed) hasBadValue(child runtime.ApplyConfiguration) bool {
	switch child := child.(type) {
	case *appsv1ac.StatefulSetApplyConfiguration:
		return o.keepsPods()
	case *appsv1ac.DeploymentApplyConfiguration:
		if *child.Name == naming.NamespaceServers(o.fileServer.Name) {
			return len(o.badValues.NamespaceServers) > 0 || len(o.badValues.Pods) > 0
		}
		return o.keepsPods()
	case *corev1ac.ServiceApplyConfiguration:
		return len(o.badValues.Outside) > 0 && *child.Spec.Type == corev1.ServiceTypeLoadBalancer
	}
	return false
}

// release lets a FileServer go. Its children follow by their owner references; its claims stay.
func (r *Reconciler) release(ctx context.Context, o *observed) error {
	removed, err := apply.RemoveFinalizer(ctx, r.Client, o.fileServer, v1alpha1.FileServerFinalizer)
	if err != nil || !removed {
		return err
	}
	if text := o.storage.Remains(); text != "" {
		r.Events.Eventf(o.fileServer, nil, corev1.EventTypeNormal, "ClaimsRetained", "Delete", "%s", text)
		ctrl.LoggerFrom(ctx).Info("FileServer deleted", "remains", text)
	}
	if text := whatWasNotRemoved(o); text != "" {
		r.Events.Eventf(o.fileServer, nil, corev1.EventTypeWarning, "DataNotRemoved", "Delete", "%s", text)
		ctrl.LoggerFrom(ctx).Info("FileServer deleted before its data servers could remove data", "left", text)
	}
	return nil
}
