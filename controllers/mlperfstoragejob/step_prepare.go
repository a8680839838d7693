package mlperfstoragejob

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/howdah/howdah/controllers/apply"
	"github.com/howdah/howdah/controllers/desired"
	"github.com/howdah/howdah/internal/admissible"
	"github.com/howdah/howdah/internal/benchmark"
	"github.com/howdah/howdah/internal/naming"
)

// invalidSpec is an error that only the user can correct, with a new job.
type invalidSpec struct{ cause error }

func (e *invalidSpec) Error() string { return e.cause.Error() }
func (e *invalidSpec) Unwrap() error { return e.cause }

// notYet is what a step waits for. An event of that object causes the next pass.
type notYet struct{ what string }

func (e *notYet) Error() string { return "waiting for " + e.what }

// badValue is why the API server would refuse the client pods; nil if it would not, if it has taken them, or if none are to be made.
func (o *observed) badValue(next benchmark.Step) error {
	if o.generate != nil || o.run != nil || next == benchmark.StepStop || next == benchmark.StepNone {
		return nil
	}
	if bad := admissible.Job(&o.job.Spec); len(bad) > 0 {
		return &invalidSpec{errors.New(admissible.Text(bad) + "; a job can't be changed: delete it, and make it again with this corrected")}
	}
	if o.share == nil {
		return nil
	}
	if bad := admissible.Owner(&o.share.Spec); len(bad) > 0 {
		return &invalidSpec{fmt.Errorf("FileShare %s: %s; client pods run as the owner of the share's root: make a job for a share with another owner", o.share.Name, admissible.Text(bad))}
	}
	return nil
}

// prepare makes everything that the client pods need. The plan comes last: if it exists, everything else does too.
func (r *Reconciler) prepare(ctx context.Context, o *observed) error {
	plan, err := o.newPlan()
	if err != nil {
		return &invalidSpec{err}
	}
	text, err := plan.Text()
	if err != nil {
		return err
	}
	objects := append(apply.AllOwned(desired.BenchmarkAccess(o.job)...),
		apply.Unowned(desired.BenchmarkVolume(o.job, o.share.Status.Mount, plan.Nconnect)))
	if err := r.Applier.Apply(ctx, o.job, objects...); err != nil {
		return err
	}
	if !o.volumeIsKnown() {
		return &notYet{"Kubernetes to call PersistentVolume " + naming.BenchmarkVolume(o.job.Namespace, o.job.Name) + " Available"}
	}
	if err := r.Applier.Apply(ctx, o.job, apply.Owned(desired.BenchmarkClaim(o.job))); err != nil {
		return err
	}
	// Not through the applier, which reads what it writes: only the pods may read this Secret.
	token := desired.BenchmarkToken(o.job, rand.Text())
	if err := r.Create(ctx, token, client.FieldOwner(FieldManager)); client.IgnoreAlreadyExists(err) != nil {
		return fmt.Errorf("making Secret %s: %w", token.Name, err)
	}
	return r.Applier.Apply(ctx, o.job, apply.Owned(desired.BenchmarkPlan(o.job, text)))
}

// volumeIsKnown reports whether Kubernetes has processed the volume. A claim that is made earlier waits for the next
// resync, 15 s later (kube-controller-manager's --pvclaimbinder-sync-period).
func (o *observed) volumeIsKnown() bool {
	return o.claim != nil || o.volume != nil && o.volume.Status.Phase != "" && o.volume.Status.Phase != corev1.VolumePending
}

// newPlan is the plan for the share as it is now.
func (o *observed) newPlan() (benchmark.Plan, error) {
	folders := benchmark.Folders(o.share.Spec.Layout, int(o.share.Spec.Depth), o.directories, len(o.servers))
	return benchmark.NewPlan(o.job.Name, o.job.Spec, folders, o.servers)
}
