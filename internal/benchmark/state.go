package benchmark

import "github.com/howdah/howdah/api/v1alpha1"

// State is how far an MLPerfStorageJob is. Every pass derives it from the objects in the cluster; of the job's own status it uses only when
// the job began and whether it has ended.
type State string

// States, in their order.
const (
	// StateNoShare: the share does not exist.
	StateNoShare State = "NoShare"
	// StateShareNotReady: the share is not ready.
	StateShareNotReady State = "ShareNotReady"
	// StateUnprepared: the plan, the accounts and the mount do not exist.
	StateUnprepared State = "Unprepared"
	// StateNoDataset: the plan exists, and no pods generate the dataset.
	StateNoDataset State = "NoDataset"
	// StateGeneratingDataset: client pods write the dataset.
	StateGeneratingDataset State = "GeneratingDataset"
	// StateDatasetReady: the dataset is complete, and no pods read it.
	StateDatasetReady State = "DatasetReady"
	// StateRunning: client pods run the workload.
	StateRunning State = "Running"
	// StateCollecting: the pods have ended, and there is no result yet.
	StateCollecting State = "Collecting"
	// StateFinished: there is a result.
	StateFinished State = "Finished"
	// StateFailed: client pods failed.
	StateFailed State = "Failed"
	// StateDeadlineExceeded: the job took longer than it may.
	StateDeadlineExceeded State = "DeadlineExceeded"
	// StateSuspended: the user wants no pods for now.
	StateSuspended State = "Suspended"
	// StateEnded: the job ended in an earlier pass, and its result was deleted.
	StateEnded State = "Ended"
)

// Step is what a job needs next.
type Step string

// Steps.
const (
	// StepWait: something else must happen first.
	StepWait Step = "Wait"
	// StepPrepare: make the plan, the accounts and the mount.
	StepPrepare Step = "Prepare"
	// StepGenerate: start the pods that write the dataset.
	StepGenerate Step = "Generate"
	// StepRun: start the pods that run the workload.
	StepRun Step = "Run"
	// StepStop: delete the running pods.
	StepStop Step = "Stop"
	// StepNone: the job has ended.
	StepNone Step = "None"
)

// Facts are what State is derived from.
type Facts struct {
	ShareFound, ShareReady bool
	// Prepared: the plan exists; it is made last.
	Prepared      bool
	Generate, Run PhaseFacts
	// Result is what the clients wrote, nil while they have not.
	Result *v1alpha1.BenchmarkResult
	// Failure is the clients' reason for a failed run; "" if it has not failed.
	Failure string
	// Suspended: spec.execution is Suspended.
	Suspended bool
	// DeadlineExceeded: the job has been active for as long as it may.
	DeadlineExceeded bool
	// Ended: an earlier pass has recorded how the job ended. That is final, whatever changes later.
	Ended bool
}

// PhaseFacts are the facts of the pods of one phase.
type PhaseFacts struct {
	Exists, Complete, Failed bool
}

// IsEnd reports whether a state is final.
func (s State) IsEnd() bool {
	return s == StateFinished || s == StateFailed || s == StateDeadlineExceeded || s == StateEnded
}

// StateOf derives the state. A result is final: pods and shares may be deleted after it. Facts of later phases take precedence over those of
// earlier ones. Pods that have started notice by themselves if the share fails.
func StateOf(f Facts) State {
	switch {
	case f.Result != nil:
		return StateFinished
	case f.Failure != "" || f.Run.Failed || f.Generate.Failed:
		return StateFailed
	case f.Ended:
		return StateEnded
	case f.DeadlineExceeded:
		return StateDeadlineExceeded
	case f.Run.Complete:
		return StateCollecting
	case f.Suspended:
		return StateSuspended
	case f.Run.Exists:
		return StateRunning
	case f.Generate.Exists && !f.Generate.Complete:
		return StateGeneratingDataset
	case !f.ShareFound:
		return StateNoShare
	case !f.ShareReady:
		return StateShareNotReady
	case f.Generate.Complete:
		return StateDatasetReady
	case !f.Prepared:
		return StateUnprepared
	default:
		return StateNoDataset
	}
}

// Next is the next step in a state.
func Next(s State) Step {
	switch s {
	case StateUnprepared:
		return StepPrepare
	case StateNoDataset:
		return StepGenerate
	case StateDatasetReady:
		return StepRun
	case StateSuspended, StateDeadlineExceeded:
		return StepStop
	case StateFinished, StateFailed, StateEnded:
		return StepNone
	default:
		return StepWait
	}
}
