package filesharesnapshotschedule

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/controllers/apply"
	"github.com/howdah/howdah/controllers/watched"
)

// FieldManager is the name of the controller among writers and in events.
const FieldManager = "howdah-filesharesnapshotschedule"

// Reconciler reconciles FileShareSnapshotSchedules. All fields but WatchNamespaces are required.
type Reconciler struct {
	// Client reads through the manager's cache and writes.
	Client client.Client
	// Live reads past the cache.
	Live client.Reader
	// Clock is the API server's (controllers/servertime) if possible.
	Clock clock.PassiveClock
	// Events records what the user should know.
	Events events.EventRecorder
	// WatchNamespaces are the Kubernetes namespaces that the operator watches; none means all.
	WatchNamespaces watched.Namespaces

	removals removals

	statuses apply.Statuses
}

// +kubebuilder:rbac:groups=howdah.io,resources=filesharesnapshotschedules,verbs=get;list;watch
// +kubebuilder:rbac:groups=howdah.io,resources=filesharesnapshotschedules/status,verbs=patch
// +kubebuilder:rbac:groups=howdah.io,resources=filesharesnapshots,verbs=get;list;watch;create;delete
// +kubebuilder:rbac:groups=howdah.io,resources=fileservers;fileshares,verbs=get;list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Reconcile is one pass over a FileShareSnapshotSchedule.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	schedule := &v1alpha1.FileShareSnapshotSchedule{}
	// Read past the cache: retention must be current before anything is deleted, and the response has the API server's
	// time.
	if err := r.Live.Get(ctx, request.NamespacedName, schedule); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if schedule.DeletionTimestamp != nil {
		return ctrl.Result{}, nil // Its snapshots stay.
	}
	o, err := r.observe(ctx, schedule)
	if err != nil {
		return ctrl.Result{}, err
	}
	d := decide(o)
	if err := r.make(ctx, o, d.create); err != nil {
		return apply.Outcome(err)
	}
	removeErr := r.removeExpired(ctx, o, d.remove)
	after := schedule.DeepCopy()
	after.Status = statusOf(o, d)
	was := schedule.DeepCopy().Status.Conditions
	err = r.statuses.Write(ctx, r.Client, schedule, after, r.Clock.Now())
	if err == nil {
		apply.Tell(r.Events, after, was, after.Status.Conditions)
	}
	result, err := apply.Outcome(removeErr, client.IgnoreNotFound(err))
	if err == nil && result.RequeueAfter == 0 {
		result.RequeueAfter = d.again
	}
	return result, err
}

// make makes a snapshot. Its name contains its time. If it exists already, an earlier pass made it and could not record
// that, or a user made it; then nothing is made.
func (r *Reconciler) make(ctx context.Context, o *observed, snapshot *v1alpha1.FileShareSnapshot) error {
	if snapshot == nil {
		return nil
	}
	err := r.Client.Create(ctx, snapshot)
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	present := &v1alpha1.FileShareSnapshot{}
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(snapshot), present); err != nil {
		return client.IgnoreNotFound(err)
	}
	if !isOurs(o.schedule, present) {
		r.Events.Eventf(o.schedule, nil, corev1.EventTypeWarning, v1alpha1.ReasonNameTaken, "Create",
			"no snapshot was made for %s: a FileShareSnapshot %s exists that is not this schedule's", snapshot.Annotations[v1alpha1.ScheduledTimeAnnotation], snapshot.Name)
	}
	return nil
}

// removeExpired deletes snapshots of the schedule, each only if it did not change since it was read.
func (r *Reconciler) removeExpired(ctx context.Context, o *observed, snapshots []*v1alpha1.FileShareSnapshot) error {
	if len(snapshots) > 0 {
		r.removals.note(o.schedule.UID)
	}
	for _, snapshot := range snapshots {
		uid, version := snapshot.UID, snapshot.ResourceVersion
		err := r.Client.Delete(ctx, snapshot, client.Preconditions{UID: &uid, ResourceVersion: &version})
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("deleting FileShareSnapshot %s, which retention does not keep: %w", snapshot.Name, err)
		}
		if err == nil {
			r.Events.Eventf(o.schedule, nil, corev1.EventTypeNormal, "Expired", "Delete", "FileShareSnapshot %s is deleted: spec.retention does not keep it", snapshot.Name)
		}
	}
	return nil
}
