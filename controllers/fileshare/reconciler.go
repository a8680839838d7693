package fileshare

import (
	"context"
	"errors"
	"time"

	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/controllers/apply"
	"github.com/howdah/howdah/controllers/conditions"
	"github.com/howdah/howdah/controllers/lookup"
	"github.com/howdah/howdah/controllers/requeue"
	"github.com/howdah/howdah/controllers/watched"
)

// FieldManager is the field manager of what the controller applies.
const FieldManager = "howdah-fileshare"

// Reconciler reconciles FileShares. All fields are required.
type Reconciler struct {
	// Client reads through the manager's cache and writes.
	Client client.Client
	// Live reads past the cache.
	Live client.Reader
	// Applier writes the volume and the claim, as FieldManager.
	Applier *apply.Applier
	// Clock is the source of times in conditions and requests.
	Clock clock.PassiveClock
	// Events records what the user should know.
	Events events.EventRecorder
	// WatchNamespaces are the Kubernetes namespaces that the operator watches; none means all.
	WatchNamespaces watched.Namespaces

	ledger   ledger
	removals removals
	digests  digests
	statuses apply.Statuses
}

// +kubebuilder:rbac:groups=howdah.io,resources=fileshares,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=howdah.io,resources=fileshares/status,verbs=patch
// +kubebuilder:rbac:groups=howdah.io,resources=fileshares/finalizers,verbs=update
// +kubebuilder:rbac:groups=howdah.io,resources=fileservers;filesharesnapshots,verbs=get;list;watch
// +kubebuilder:rbac:groups=internal.howdah.io,resources=dataservers,verbs=get;list;watch
// +kubebuilder:rbac:groups=internal.howdah.io,resources=shareexports,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=internal.howdah.io,resources=sharestorages,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=internal.howdah.io,resources=stewards,verbs=get;list;watch
// +kubebuilder:rbac:groups=internal.howdah.io,resources=shareattachments,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=internal.howdah.io,resources=sharesnapshots,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=pods,verbs=list
// +kubebuilder:rbac:groups=internal.howdah.io,resources=sharedirectories,verbs=get;list;watch;create;patch;delete;deletecollection
// +kubebuilder:rbac:groups=internal.howdah.io,resources=sharedirectories/status,verbs=patch
// +kubebuilder:rbac:groups="",resources=persistentvolumes;persistentvolumeclaims,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Reconcile is one pass over a FileShare.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	exports, err := r.finishExports(ctx, request.NamespacedName)
	if err != nil {
		return apply.Outcome(err)
	}
	storages, err := r.finishStorages(ctx, request.NamespacedName)
	if err != nil {
		return apply.Outcome(err)
	}
	known := r.ledger.known(request.NamespacedName)
	share := &v1alpha1.FileShare{}
	if found, err := lookup.Object(ctx, r.Client, request.NamespacedName, share); err != nil {
		return ctrl.Result{}, err
	} else if !found {
		// The last pass may have noted it after its last event.
		r.ledger.forget(request.NamespacedName, known)
		r.digests.forget(request.NamespacedName)
		r.Applier.Forget("FileShare", request.NamespacedName)
		return apply.Outcome(r.dropOrphans(ctx, request.NamespacedName, exports, storages))
	}
	if share.DeletionTimestamp == nil && !conditions.IsPaused(share) {
		// Make nothing for a share without the finalizer.
		_, err := apply.AddFinalizer(ctx, r.Client, share, v1alpha1.FileShareFinalizer)
		if err != nil || !controllerutil.ContainsFinalizer(share, v1alpha1.FileShareFinalizer) {
			return apply.Outcome(err) // Or it is deleted, and the cache does not know it yet.
		}
	}
	o, err := r.observe(ctx, share, exports, storages)
	if err != nil {
		return ctrl.Result{}, err
	}
	paused := conditions.IsPaused(o.share)
	switch {
	case paused && !isForbidden(o):
		return r.reportPaused(ctx, o)
	case o.share.DeletionTimestamp != nil && !paused:
		return r.teardown(ctx, o)
	}
	// Users of the share can pause it. That must not keep a share served that its FileServer no longer allows.
	return r.proceed(ctx, o)
}

// proceed is the pass over a share that is not being deleted.
func (r *Reconciler) proceed(ctx context.Context, o *observed) (ctrl.Result, error) {
	d := decide(o)
	out := r.execute(ctx, o, d)
	if err := r.report(ctx, o, statusOf(o, d, out)); err != nil {
		return apply.Outcome(err, out.attachment, out.storage, out.directories, out.exports, untaken(out.claim))
	}
	again := d.again
	if d.directories.left > 0 {
		again = time.Millisecond
	}
	if _, taken := apply.IsNameTaken(out.claim); taken {
		// The operator does not watch the object that has the name, so no event reports when the name is free.
		again = requeue.Soonest(again, retryTaken)
	}
	if err := errors.Join(out.attachment, out.storage, out.directories, out.exports, untaken(out.claim)); err != nil {
		return apply.Outcome(err)
	}
	return ctrl.Result{RequeueAfter: again}, nil
}

// reportPaused reports the state of a paused share.
func (r *Reconciler) reportPaused(ctx context.Context, o *observed) (ctrl.Result, error) {
	status := statusOf(o, decide(o), outcome{})
	status.ObservedGeneration = o.share.Status.ObservedGeneration
	return apply.Outcome(r.report(ctx, o, status))
}

// retryTaken is how often to check whether a taken name is free.
const retryTaken = time.Minute

// untaken drops an error that only the user can correct; the status has it.
func untaken(err error) error {
	if _, taken := apply.IsNameTaken(err); taken {
		return nil
	}
	return err
}

// report writes the status, and then records events for its changes.
func (r *Reconciler) report(ctx context.Context, o *observed, status v1alpha1.FileShareStatus) error {
	after := *o.share
	after.Status = status
	conditions.SetPaused(&after.Status.Conditions, o.share, o.now)
	if err := r.statuses.Write(ctx, r.Client, o.share, &after, r.Clock.Now()); err != nil {
		return err
	}
	apply.Tell(r.Events, &after, o.share.Status.Conditions, status.Conditions)
	return nil
}
