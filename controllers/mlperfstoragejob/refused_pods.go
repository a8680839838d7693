package mlperfstoragejob

import (
	"context"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/controllers/podrefusal"
	"github.com/howdah/howdah/internal/benchmark"
)

// readRefusal reads why client pods are missing. It reads events only while some are.
func (o *observed) readRefusal(ctx context.Context, live client.Reader) error {
	job := o.missesPods()
	if job == nil || o.isNew(job) {
		return nil
	}
	refusals, err := podrefusal.Read(ctx, live, job)
	o.refusal = refusals.Any()
	return err
}

// missesPods returns the running Job that does not have all its pods; nil if there is none.
func (o *observed) missesPods() *batchv1.Job {
	if o.job.Spec.Execution == v1alpha1.ExecutionSuspended || o.job.Status.CompletionTime != nil {
		return nil
	}
	for _, job := range []*batchv1.Job{o.generate, o.run} {
		if phase := phaseOf(job); phase.Exists && !phase.Complete && !phase.Failed && o.clientsOf(job) < int(o.job.Spec.Clients) {
			return job
		}
	}
	return nil
}

// clientsOf is the number of a Job's clients with a pod that has not failed.
func (o *observed) clientsOf(job *batchv1.Job) int {
	clients := map[string]bool{}
	for _, pod := range o.podsOf(job) {
		if pod.Status.Phase != corev1.PodFailed {
			clients[clientOf(&pod)] = true
		}
	}
	return len(clients)
}

func (o *observed) isNew(job *batchv1.Job) bool {
	return o.now.Sub(job.CreationTimestamp.Time) < podrefusal.Grace
}

// refusedAgain is when to read the events again; 0 if no pod is missing.
func (o *observed) refusedAgain() time.Duration {
	job := o.missesPods()
	switch {
	case job == nil:
		return 0
	case o.isNew(job):
		return podrefusal.Grace
	}
	return podrefusal.Again
}

// isRefused reports whether a job in this state can't continue because pods are refused.
func (o *observed) isRefused(state benchmark.State) bool {
	return o.refusal != "" && (state == benchmark.StateGeneratingDataset || state == benchmark.StateRunning)
}

func (o *observed) refusedMessage() string {
	return "client pods are refused: " + o.refusal
}
