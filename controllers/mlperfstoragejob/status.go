package mlperfstoragejob

import (
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/controllers/apply"
	"github.com/howdah/howdah/controllers/conditions"
	"github.com/howdah/howdah/internal/benchmark"
)

// report is the status after a pass. It is pure: equal input, equal status. stepErr is the error of the step.
func report(o *observed, stepErr error) v1alpha1.MLPerfStorageJobStatus {
	state, facts := o.state(), o.facts()
	status := *o.job.Status.DeepCopy()
	if stepErr == nil || isReported(stepErr) {
		generation := o.job.Generation
		status.ObservedGeneration = &generation
	}
	if state == benchmark.StateEnded {
		return status
	}
	succeeded := succeededCondition(o, state, facts, stepErr)
	// The end of a job is final, but its message can still improve: clients report the cause before their pods end.
	if facts.Ended && succeeded.Reason != conditions.Reason(status.Conditions, v1alpha1.JobSucceeded) {
		return status
	}
	conditions.Set(&status.Conditions, o.job.Generation, o.now, datasetCondition(o, state, facts))
	conditions.SetSummary(&status.Conditions, o.job.Generation, o.now, succeeded)
	status.Progress = benchmark.Progress(state, o.journal, o.runID())
	if facts.Result != nil {
		status.Result = *facts.Result
	}
	at := metav1.NewTime(o.now)
	switch {
	case state == benchmark.StateSuspended:
		status.StartTime = nil
	case status.StartTime == nil:
		status.StartTime = &at
	}
	if status.CompletionTime == nil && succeeded.Status != metav1.ConditionUnknown {
		status.CompletionTime = &at
	}
	return status
}

// succeededCondition has the step, or the outcome.
func succeededCondition(o *observed, state benchmark.State, facts benchmark.Facts, stepErr error) metav1.Condition {
	if stepErr != nil {
		return faultCondition(stepErr)
	}
	unknown := func(reason, message string) metav1.Condition {
		return conditions.Unknown(v1alpha1.JobSucceeded, reason, message)
	}
	if o.isRefused(state) {
		return unknown(v1alpha1.ReasonPodsRefused, o.refusedMessage())
	}
	switch state {
	case benchmark.StateNoShare:
		return unknown(v1alpha1.ReasonFileShareNotFound, fmt.Sprintf("spec.fileShareRef: there is no FileShare %q in namespace %q; create it, or delete this job and make one that names another", o.job.Spec.FileShareRef.Name, o.job.Namespace))
	case benchmark.StateShareNotReady:
		return unknown(v1alpha1.ReasonWaitingForShare, fmt.Sprintf("FileShare %s is not ready: %s", o.share.Name,
			orUnknown(conditions.Message(o.share.Status.Conditions, v1alpha1.ConditionReady))))
	case benchmark.StateUnprepared:
		return unknown(v1alpha1.ReasonPreparing, "what the client pods need is being made")
	case benchmark.StateNoDataset, benchmark.StateGeneratingDataset:
		return unknown(v1alpha1.ReasonGeneratingDataset, withWaits(fmt.Sprintf("%d client pods write the dataset", o.job.Spec.Clients), o.waits(o.generate)))
	case benchmark.StateDatasetReady:
		return unknown(v1alpha1.ReasonDatasetReady, "the dataset is complete; the run starts")
	case benchmark.StateRunning:
		return unknown(v1alpha1.ReasonRunning, withWaits(fmt.Sprintf("%d client pods run the workload", o.job.Spec.Clients), o.waits(o.run)))
	case benchmark.StateCollecting:
		return unknown(v1alpha1.ReasonRunning, "the client pods have ended; the result is awaited")
	case benchmark.StateSuspended:
		return unknown(v1alpha1.ReasonSuspended, o.suspended())
	case benchmark.StateDeadlineExceeded:
		return conditions.False(v1alpha1.JobSucceeded, v1alpha1.ReasonDeadlineExceeded, o.overdue())
	case benchmark.StateFailed:
		return conditions.False(v1alpha1.JobSucceeded, v1alpha1.ReasonClientFailed, o.failure(facts))
	default:
		return verdictCondition(facts.Result)
	}
}

func verdictCondition(r *v1alpha1.BenchmarkResult) metav1.Condition {
	switch r.Verdict {
	case v1alpha1.VerdictPassed:
		return conditions.True(v1alpha1.JobSucceeded, v1alpha1.ReasonCompleted,
			fmt.Sprintf("AU is %s %%, at least %.0f %% is asked for; %s", r.AUPercent, benchmark.PassAUPercent, r.Label))
	case v1alpha1.VerdictInvalid:
		return conditions.False(v1alpha1.JobSucceeded, v1alpha1.ReasonMeasurementInvalid,
			fmt.Sprintf("the run says nothing about the share (AU was %s %%): %s", r.AUPercent, r.Message))
	default:
		return conditions.False(v1alpha1.JobSucceeded, v1alpha1.ReasonUtilizationTooLow,
			fmt.Sprintf("AU is %s %%, below %.0f %%: the share does not feed %d accelerators; %s", r.AUPercent, benchmark.PassAUPercent, r.Accelerators, r.Label))
	}
}

// suspended describes a suspended job.
func (o *observed) suspended() string {
	const text = "spec.execution is Suspended: there are no client pods, and the dataset stays; set it to Active to continue"
	ending := 0
	for _, pod := range o.pods {
		if pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed {
			ending++
		}
	}
	if ending == 0 {
		return text
	}
	return fmt.Sprintf("%s; waiting for %d client pods to end", text, ending)
}

// overdue describes what a job was doing at its deadline.
func (o *observed) overdue() string {
	text := fmt.Sprintf("the job did not end within %d s (spec.activeDeadlineSeconds)", o.job.Spec.ActiveDeadlineSeconds)
	if last := conditions.Message(o.job.Status.Conditions, v1alpha1.JobSucceeded); last != "" {
		text += "; its last step: " + last
	}
	return text
}

func faultCondition(err error) metav1.Condition {
	var early *notYet
	if errors.As(err, &early) {
		return conditions.Unknown(v1alpha1.JobSucceeded, v1alpha1.ReasonPreparing, early.Error())
	}
	var invalid *invalidSpec
	if errors.As(err, &invalid) {
		return conditions.False(v1alpha1.JobSucceeded, v1alpha1.ReasonInvalidSpec, invalid.Error())
	}
	return conditions.Unknown(v1alpha1.JobSucceeded, apply.Reason(err), err.Error())
}

func datasetCondition(o *observed, state benchmark.State, facts benchmark.Facts) metav1.Condition {
	switch {
	case facts.Generate.Complete || state == benchmark.StateFinished:
		return conditions.True(v1alpha1.JobDatasetReady, v1alpha1.ReasonDatasetReady, "every file of the dataset is on the share")
	case facts.Generate.Failed:
		return conditions.False(v1alpha1.JobDatasetReady, v1alpha1.ReasonClientFailed, o.failure(facts))
	case state == benchmark.StateDeadlineExceeded:
		return conditions.False(v1alpha1.JobDatasetReady, v1alpha1.ReasonDeadlineExceeded, "the dataset is not complete")
	case state == benchmark.StateSuspended:
		return conditions.Unknown(v1alpha1.JobDatasetReady, v1alpha1.ReasonSuspended, "the dataset is not complete")
	case o.isRefused(state):
		return conditions.Unknown(v1alpha1.JobDatasetReady, v1alpha1.ReasonPodsRefused, o.refusedMessage())
	case facts.Generate.Exists:
		return conditions.Unknown(v1alpha1.JobDatasetReady, v1alpha1.ReasonGeneratingDataset, "client pods write the dataset")
	default:
		return conditions.Unknown(v1alpha1.JobDatasetReady, v1alpha1.ReasonPending, "the dataset is not begun")
	}
}

func withWaits(message, waits string) string {
	if waits == "" {
		return message
	}
	return message + "; " + waits
}

func orUnknown(message string) string {
	if message == "" {
		return "it has no status yet"
	}
	return message
}
