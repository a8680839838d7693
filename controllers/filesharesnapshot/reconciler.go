package filesharesnapshot

import (
	"context"
	"time"

	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/controllers/apply"
	"github.com/howdah/howdah/controllers/conditions"
	"github.com/howdah/howdah/controllers/watched"
)

// FieldManager is the name of the controller among writers and in events.
const FieldManager = "howdah-filesharesnapshot"

// Reconciler reconciles FileShareSnapshots. All fields but WatchNamespaces are required.
type Reconciler struct {
	// Client reads through the manager's cache and writes.
	Client client.Client
	// Live reads past the cache.
	Live client.Reader
	// Clock gives the times of conditions.
	Clock clock.PassiveClock
	// Events records what the user should know.
	Events events.EventRecorder
	// WatchNamespaces are the Kubernetes namespaces that the operator watches; none means all.
	WatchNamespaces watched.Namespaces
	statuses        apply.Statuses
}

// +kubebuilder:rbac:groups=howdah.io,resources=filesharesnapshots,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=howdah.io,resources=filesharesnapshots/status,verbs=patch
// +kubebuilder:rbac:groups=howdah.io,resources=filesharesnapshots/finalizers,verbs=update
// +kubebuilder:rbac:groups=howdah.io,resources=fileservers;fileshares,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get
// +kubebuilder:rbac:groups=internal.howdah.io,resources=sharesnapshots,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch
//
// What it needs to give it to stewards (controllers/desired, steward.go):
//
// +kubebuilder:rbac:groups=internal.howdah.io,resources=sharesnapshots/status,verbs=patch

// Reconcile is one pass over a FileShareSnapshot.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	if err := r.releaseRemoved(ctx, request); err != nil {
		return apply.Outcome(err)
	}
	snapshot := &v1alpha1.FileShareSnapshot{}
	if err := r.Client.Get(ctx, request.NamespacedName, snapshot); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if snapshot.DeletionTimestamp != nil {
		if !controllerutil.ContainsFinalizer(snapshot, v1alpha1.SnapshotFinalizer) {
			return ctrl.Result{}, nil
		}
		return r.remove(ctx, snapshot)
	}
	// Make nothing for a snapshot without the finalizer. This write causes the next pass.
	if added, err := apply.AddFinalizer(ctx, r.Client, snapshot, v1alpha1.SnapshotFinalizer); added || err != nil {
		return apply.Outcome(err)
	}
	o, err := r.observe(ctx, snapshot)
	if err != nil {
		return ctrl.Result{}, err
	}
	d := decide(o)
	if d.create != nil || d.ready.Reason == v1alpha1.ReasonSnapshotLost {
		if err := r.readStored(ctx, o); err != nil {
			return ctrl.Result{}, err
		}
		d = decide(o)
	}
	if d.create != nil {
		if err := r.Client.Create(ctx, d.create); client.IgnoreAlreadyExists(err) != nil {
			return ctrl.Result{}, err
		}
	}
	result, err := apply.Outcome(r.report(ctx, snapshot, statusOf(o, d)))
	if err == nil && result.RequeueAfter == 0 {
		result.RequeueAfter = again[d.ready.Reason]
	}
	return result, err
}

// again is when to check again what depends on the FileServer, which is not watched: whether a snapshot was handed over,
// and whether its storage has snapshots now.
var again = map[string]time.Duration{v1alpha1.ReasonDataOfDeletedNamespace: time.Minute, v1alpha1.ReasonSnapshotsUnsupported: 10 * time.Minute}

// report writes the status, and then records events for its changes.
func (r *Reconciler) report(ctx context.Context, before *v1alpha1.FileShareSnapshot, status v1alpha1.FileShareSnapshotStatus) error {
	after := before.DeepCopy()
	after.Status = status
	was := before.DeepCopy().Status.Conditions
	if err := r.statuses.Write(ctx, r.Client, before, after, r.Clock.Now()); err != nil {
		return client.IgnoreNotFound(err)
	}
	apply.Tell(r.Events, after, was, status.Conditions)
	return nil
}

// statusOf is the status after a pass. It is pure. Known facts stay, because a snapshot does not change.
func statusOf(o *observed, d decision) v1alpha1.FileShareSnapshotStatus {
	status := *o.snapshot.Status.DeepCopy()
	generation := o.snapshot.Generation
	status.ObservedGeneration = &generation
	if o.stored != nil && o.stored.Status.CreationTime != nil && conditions.IsTrue(o.stored.Status.Conditions, v1alpha1.ConditionReady) {
		status.ReadyTime, status.Path, status.SizeBytes = o.stored.Status.CreationTime, o.stored.Status.Path, o.stored.Status.SizeBytes
	}
	conditions.SetSummary(&status.Conditions, generation, o.now, d.ready)
	return status
}
