package mlperfstoragejob

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/controllers/apply"
	"github.com/howdah/howdah/controllers/desired"
	"github.com/howdah/howdah/internal/benchmark"
	"github.com/howdah/howdah/internal/naming"
)

// FieldManager is the name that this controller applies under.
const FieldManager = "howdah-mlperfstoragejob"

// What the controller itself does. It can make a Secret and never read one.
//
// +kubebuilder:rbac:groups=howdah.io,resources=mlperfstoragejobs,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=howdah.io,resources=mlperfstoragejobs/status,verbs=get;patch
// +kubebuilder:rbac:groups=howdah.io,resources=mlperfstoragejobs/finalizers,verbs=update
// +kubebuilder:rbac:groups=howdah.io,resources=fileshares,verbs=get;list;watch
// +kubebuilder:rbac:groups=internal.howdah.io,resources=dataservers;sharedirectories,verbs=get;list;watch
// +kubebuilder:rbac:groups=batch,resources=jobs,verbs=get;list;watch;create;patch
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=secrets,verbs=create
// +kubebuilder:rbac:groups="",resources=serviceaccounts;persistentvolumeclaims,verbs=get;list;watch;create;patch
// +kubebuilder:rbac:groups="",resources=persistentvolumes,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=rbac.authorization.k8s.io,resources=roles;rolebindings,verbs=get;list;watch;create;patch
//
// What it needs itself and gives to client pods (controllers/desired, benchmark_access.go):
//
// +kubebuilder:rbac:groups="",resources=configmaps,verbs=get;list;watch;create;update;patch

// Reconciler takes MLPerfStorageJobs through their steps.
type Reconciler struct {
	client.Client
	Applier *apply.Applier
	Images  desired.Images
	Clock   clock.PassiveClock
}

// Reconcile is one pass over an MLPerfStorageJob.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var job v1alpha1.MLPerfStorageJob
	if err := r.Get(ctx, request.NamespacedName, &job); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if job.DeletionTimestamp != nil {
		return ctrl.Result{}, r.release(ctx, &job)
	}
	// The patch brings the next pass: what follows must see the finalizer.
	if added, err := apply.AddFinalizer(ctx, r.Client, &job, v1alpha1.JobFinalizer); added || err != nil {
		return ctrl.Result{}, err
	}
	o, err := r.observe(ctx, &job)
	if err != nil {
		return ctrl.Result{}, err
	}
	stepErr := r.do(ctx, benchmark.Next(o.state()), o)
	after := job.DeepCopy()
	after.Status = report(o, stepErr, r.Clock.Now())
	var invalid *invalidSpec
	if errors.As(stepErr, &invalid) {
		stepErr = nil // said in the status; trying again can't help
	}
	return apply.Outcome(stepErr, apply.Status(ctx, r.Client, &job, after))
}

// do does one step.
func (r *Reconciler) do(ctx context.Context, step benchmark.Step, o *observed) error {
	switch step {
	case benchmark.StepPrepare:
		return r.prepare(ctx, o)
	case benchmark.StepGenerate:
		return r.Applier.Apply(ctx, o.job, apply.Owned(desired.BenchmarkGenerateJob(o.jobInput(r.Images))))
	case benchmark.StepRun:
		return r.Applier.Apply(ctx, o.job, apply.Owned(desired.BenchmarkRunJob(o.jobInput(r.Images))))
	default:
		return nil
	}
}

// release removes what has no owner reference, the volume, and lets the job go; the rest
// goes with it. Kubernetes keeps the volume until its claim is gone, and the claim until the pods are.
func (r *Reconciler) release(ctx context.Context, job *v1alpha1.MLPerfStorageJob) error {
	_, err := r.Applier.Prune(ctx, job, nil, []client.ObjectList{&corev1.PersistentVolumeList{}},
		client.MatchingLabels(naming.SelectBenchmark(job.Name)))
	if err != nil {
		return err
	}
	_, err = apply.RemoveFinalizer(ctx, r.Client, job, v1alpha1.JobFinalizer)
	return err
}
