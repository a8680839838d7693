package mlperfstoragejob

import (
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/controllers/apply"
	"github.com/howdah/howdah/controllers/conditions"
	"github.com/howdah/howdah/internal/benchmark"
)

// report is the status after a pass. It is pure: equal input, equal status.
// stepErr is what went wrong with the step that the state asked for.
func report(o *observed, stepErr error, now time.Time) v1alpha1.MLPerfStorageJobStatus {
	state, facts := o.state(), o.facts()
	status := *o.job.Status.DeepCopy()
	succeeded := succeededCondition(o, state, facts, stepErr)
	conditions.Set(&status.Conditions, o.job.Generation, now, succeeded, datasetCondition(o, state, facts))
	if stepErr == nil {
		generation := o.job.Generation
		status.ObservedGeneration = &generation
	}
	status.Progress = benchmark.Progress(state, o.journal)
	if facts.Result != nil {
		status.Result = *facts.Result
	}
	at := metav1.NewTime(now)
	if status.StartTime == nil && hasStarted(state) {
		status.StartTime = &at
	}
	if status.CompletionTime == nil && succeeded.Status != metav1.ConditionUnknown {
		status.CompletionTime = &at
	}
	return status
}

func hasStarted(s benchmark.State) bool {
	return s != benchmark.StateNoShare && s != benchmark.StateShareNotReady
}

// succeededCondition tells the step, or the outcome.
func succeededCondition(o *observed, state benchmark.State, facts benchmark.Facts, stepErr error) metav1.Condition {
	if stepErr != nil {
		return faultCondition(stepErr)
	}
	unknown := func(reason, message string) metav1.Condition {
		return conditions.Unknown(v1alpha1.JobSucceeded, reason, message)
	}
	switch state {
	case benchmark.StateNoShare:
		return unknown(v1alpha1.ReasonFileShareNotFound, fmt.Sprintf("spec.fileShareRef: there is no FileShare %s in this namespace", o.job.Spec.FileShareRef.Name))
	case benchmark.StateShareNotReady:
		return unknown(v1alpha1.ReasonWaitingForShare, fmt.Sprintf("FileShare %s is not ready: %s", o.share.Name,
			orUnknown(conditions.Message(o.share.Status.Conditions, v1alpha1.ConditionReady))))
	case benchmark.StateUnprepared, benchmark.StateNoDataset, benchmark.StateGeneratingDataset:
		return unknown(v1alpha1.ReasonGeneratingDataset, withWaits(fmt.Sprintf("%d client pods write the dataset", o.clients()), o.waits(o.generate)))
	case benchmark.StateDatasetReady:
		return unknown(v1alpha1.ReasonDatasetReady, "the dataset is complete; the run starts")
	case benchmark.StateRunning:
		return unknown(v1alpha1.ReasonRunning, withWaits(fmt.Sprintf("%d client pods run the workload", o.clients()), o.waits(o.run)))
	case benchmark.StateCollecting:
		return unknown(v1alpha1.ReasonRunning, "the client pods have ended; the result is awaited")
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

func faultCondition(err error) metav1.Condition {
	var invalid *invalidSpec
	if errors.As(err, &invalid) {
		return conditions.False(v1alpha1.JobSucceeded, v1alpha1.ReasonInvalidSpec, invalid.Error())
	}
	if taken, ok := apply.IsNameTaken(err); ok {
		return conditions.Unknown(v1alpha1.JobSucceeded, v1alpha1.ReasonNameTaken, taken.Error())
	}
	return conditions.Unknown(v1alpha1.JobSucceeded, v1alpha1.ReasonApplyFailed, err.Error())
}

func datasetCondition(o *observed, state benchmark.State, facts benchmark.Facts) metav1.Condition {
	switch {
	case facts.Generate.Complete || state == benchmark.StateFinished:
		return conditions.True(v1alpha1.JobDatasetReady, v1alpha1.ReasonDatasetReady, "every file of the dataset is on the share")
	case facts.Generate.Failed:
		return conditions.False(v1alpha1.JobDatasetReady, v1alpha1.ReasonClientFailed, o.failure(facts))
	case facts.Generate.Exists:
		return conditions.False(v1alpha1.JobDatasetReady, v1alpha1.ReasonGeneratingDataset, "client pods write the dataset")
	default:
		return conditions.False(v1alpha1.JobDatasetReady, v1alpha1.ReasonPending, "the dataset is not begun")
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
