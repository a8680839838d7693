package mlperfstoragejob

import (
	"context"
	"errors"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	batchv1ac "k8s.io/client-go/applyconfigurations/batch/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/controllers/apply"
	"github.com/howdah/howdah/controllers/conditions"
	"github.com/howdah/howdah/controllers/desired"
	"github.com/howdah/howdah/controllers/requeue"
	"github.com/howdah/howdah/controllers/watched"
	"github.com/howdah/howdah/internal/benchmark"
	"github.com/howdah/howdah/internal/naming"
)

// FieldManager is the name that this controller applies under.
const FieldManager = "howdah-mlperfstoragejob"

// What the controller itself does. It can make a Secret and never read one.
//
// +kubebuilder:rbac:groups=howdah.io,resources=mlperfstoragejobs,verbs=get;list;watch;patch;delete
// +kubebuilder:rbac:groups=howdah.io,resources=mlperfstoragejobs/status,verbs=patch
// +kubebuilder:rbac:groups=howdah.io,resources=mlperfstoragejobs/finalizers,verbs=update
// +kubebuilder:rbac:groups=howdah.io,resources=fileshares,verbs=get;list;watch
// +kubebuilder:rbac:groups=internal.howdah.io,resources=dataservers;sharedirectories,verbs=get;list;watch
// +kubebuilder:rbac:groups=batch,resources=jobs,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=secrets,verbs=create
// +kubebuilder:rbac:groups="",resources=serviceaccounts;persistentvolumeclaims,verbs=get;list;watch;create;patch
// +kubebuilder:rbac:groups="",resources=persistentvolumes,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=events,verbs=list
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch
// +kubebuilder:rbac:groups=rbac.authorization.k8s.io,resources=roles;rolebindings,verbs=get;list;watch;create;patch
//
// What it needs itself and gives to client pods (controllers/desired, benchmark_access.go):
//
// +kubebuilder:rbac:groups="",resources=configmaps,verbs=get;list;watch;create;patch

// Reconciler reconciles MLPerfStorageJobs.
type Reconciler struct {
	client.Client
	// Live reads past the cache.
	Live    client.Reader
	Applier *apply.Applier
	Images  desired.Images
	Clock   clock.PassiveClock
	// Events records what the user should know.
	Events events.EventRecorder
	// WatchNamespaces are the Kubernetes namespaces that the operator watches; none means all.
	WatchNamespaces watched.Namespaces

	statuses apply.Statuses
}

// Reconcile is one pass over an MLPerfStorageJob.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var job v1alpha1.MLPerfStorageJob
	if err := r.Get(ctx, request.NamespacedName, &job); apierrors.IsNotFound(err) {
		r.Applier.Forget("MLPerfStorageJob", request.NamespacedName)
		return ctrl.Result{}, nil
	} else if err != nil {
		return ctrl.Result{}, err
	}
	if job.DeletionTimestamp != nil {
		return ctrl.Result{}, r.release(ctx, &job)
	}
	// The patch causes the next pass, which sees the finalizer.
	if added, err := apply.AddFinalizer(ctx, r.Client, &job, v1alpha1.JobFinalizer); added || err != nil {
		return ctrl.Result{}, err
	}
	o, err := r.observe(ctx, &job)
	if err != nil {
		return ctrl.Result{}, err
	}
	if expiry, ok := o.expiry(); ok && !o.certain.Before(expiry) {
		return apply.Outcome(r.expire(ctx, &job))
	}
	stepErr := r.do(ctx, benchmark.Next(o.state()), o)
	after := job.DeepCopy()
	after.Status = report(o, stepErr)
	if isReported(stepErr) {
		stepErr = nil
	}
	statusErr := r.statuses.Write(ctx, r.Client, &job, after, r.Clock.Now())
	if statusErr == nil {
		r.tell(&job, after)
	}
	result, err := apply.Outcome(stepErr, statusErr)
	if err == nil && result.RequeueAfter == 0 {
		o.job = after
		result.RequeueAfter = o.nextLook()
	}
	return result, err
}

// isReported reports whether the status has the whole error, and an immediate retry can't help.
func isReported(err error) bool {
	var invalid *invalidSpec
	var early *notYet
	return errors.As(err, &invalid) || errors.As(err, &early)
}

// nextLook is the time until the next pass if no object changes; 0 means none.
func (o *observed) nextLook() time.Duration {
	if expiry, ok := o.expiry(); ok {
		return min(max(expiry.Sub(o.certain), time.Millisecond), time.Hour) // A clock may be put right meanwhile.
	}
	if o.job.Status.CompletionTime != nil {
		return 0
	}
	again := o.refusedAgain()
	if late, ok := o.resultDue(); ok {
		again = requeue.Soonest(again, max(late.Sub(o.now), time.Millisecond))
	}
	if deadline, ok := o.deadline(); ok {
		again = requeue.Soonest(again, max(deadline.Sub(o.now), time.Millisecond))
	}
	return again
}

// expire deletes a job after ttlSecondsAfterFinished. The dataset stays.
func (r *Reconciler) expire(ctx context.Context, job *v1alpha1.MLPerfStorageJob) error {
	uid, version := job.UID, job.ResourceVersion
	err := r.Delete(ctx, job, client.PropagationPolicy(metav1.DeletePropagationBackground),
		client.Preconditions{UID: &uid, ResourceVersion: &version})
	if err == nil {
		r.Events.Eventf(job, nil, corev1.EventTypeNormal, "Expired", "Delete",
			"it ended %d s ago (spec.ttlSecondsAfterFinished) and is deleted; the dataset stays on FileShare %s",
			*job.Spec.TTLSecondsAfterFinished, job.Spec.FileShareRef.Name)
	}
	return client.IgnoreNotFound(err)
}

// tell records an event for each step of the job.
func (r *Reconciler) tell(before, after *v1alpha1.MLPerfStorageJob) {
	now := meta.FindStatusCondition(after.Status.Conditions, v1alpha1.JobSucceeded)
	if now == nil || now.Reason == conditions.Reason(before.Status.Conditions, v1alpha1.JobSucceeded) {
		return
	}
	kind := corev1.EventTypeNormal
	if v1alpha1.NeedsUser(now.Reason) {
		kind = corev1.EventTypeWarning
	}
	r.Events.Eventf(after, nil, kind, now.Reason, "Reconcile", "%s", now.Message)
}

// do does one step.
func (r *Reconciler) do(ctx context.Context, step benchmark.Step, o *observed) error {
	if err := o.badValue(step); err != nil {
		return err
	}
	switch step {
	case benchmark.StepPrepare:
		return r.prepare(ctx, o)
	case benchmark.StepGenerate:
		return r.Applier.Apply(ctx, o.job, apply.Owned(desired.BenchmarkGenerateJob(o.jobInput(r.Images))))
	case benchmark.StepRun:
		return r.Applier.Apply(ctx, o.job, apply.Owned(desired.BenchmarkRunJob(o.jobInput(r.Images))))
	case benchmark.StepStop:
		return r.stop(ctx, o)
	default:
		return nil
	}
}

// stop ends the pods by deleting their Jobs, because a suspended batch Job counts its pods as failed. A Job that has
// written the whole dataset stays, to record that.
func (r *Reconciler) stop(ctx context.Context, o *observed) error {
	var keep []apply.Object
	if o.facts().Generate.Complete {
		keep = append(keep, apply.Owned(batchv1ac.Job(o.generate.Name, o.generate.Namespace)))
	}
	_, err := r.Applier.Prune(ctx, o.job, keep, []client.ObjectList{&batchv1.JobList{}},
		client.MatchingLabels(naming.SelectBenchmark(o.job.Name)))
	return err
}

// release deletes the volume, which has no owner reference, and removes the finalizer; the other objects are deleted
// with the job. Kubernetes keeps the volume until its claim is deleted, and the claim until the pods are.
func (r *Reconciler) release(ctx context.Context, job *v1alpha1.MLPerfStorageJob) error {
	_, err := r.Applier.Prune(ctx, job, nil, []client.ObjectList{&corev1.PersistentVolumeList{}},
		client.MatchingLabels(naming.SelectBenchmark(job.Name)))
	if err != nil {
		return err
	}
	_, err = apply.RemoveFinalizer(ctx, r.Client, job, v1alpha1.JobFinalizer)
	return err
}
