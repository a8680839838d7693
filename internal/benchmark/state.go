package benchmark

import "github.com/howdah/howdah/api/v1alpha1"

// State is how far an MLPerfStorageJob is. It is derived anew from what there is at every pass; of the
// job's own status only the times count, when it began and whether it has ended.
type State string

// States, in their order.
const (
	// StateNoShare: the share does not exist.
	StateNoShare State = "NoShare"
	// StateShareNotReady: the share is not ready.
	StateShareNotReady State = "ShareNotReady"
	// StateUnprepared: the plan, the accounts and the mount do not exist.
	StateUnprepared State = "Unprepared"
	// StateNoDataset: all is prepared, and nothing generates the dataset.
	StateNoDataset State = "NoDataset"
	// StateGeneratingDataset: client pods write the dataset.
	StateGeneratingDataset State = "GeneratingDataset"
	// StateDatasetReady: the dataset is complete, and nothing reads it.
	StateDatasetReady State = "DatasetReady"
	// StateRunning: client pods run the workload.
	StateRunning State = "Running"
	// StateCollecting: the pods have ended, and the result is not seen yet.
	StateCollecting State = "Collecting"
	// StateFinished: there is a result.
	StateFinished State = "Finished"
	// StateFailed: client pods failed.
	StateFailed State = "Failed"
	// StateDeadlineExceeded: the job took longer than it may.
	StateDeadlineExceeded State = "DeadlineExceeded"
	// StateSuspended: the user wants no pods for now.
	StateSuspended State = "Suspended"
	// StateEnded: the job has ended before, and what it ended with is no more.
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
	// StepStop: end the pods that are on their way.
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
	// Failure is why the clients say the run failed, "" if they don't.
	Failure string
	// Suspended: the user wants no pods for now.
	Suspended bool
	// DeadlineExceeded: the job has been active for as long as it may.
	DeadlineExceeded bool
	// Ended: an earlier pass has said how the job ended. That is final, whatever is changed or deleted later.
	Ended bool
}

// PhaseFacts are the facts of the pods of one phase.
type PhaseFacts struct {
	Exists, Complete, Failed bool
}

// IsEnd tells whether nothing comes after a state.
func (s State) IsEnd() bool {
	return s == StateFinished || s == StateFailed || s == StateDeadlineExceeded || s == StateEnded
}

// StateOf derives the state. A result outlives everything else: pods and shares
// may be deleted once it is there. Facts of later phases go before those of earlier ones;
// pods that have started are left to find out themselves what becomes of the share.
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

// Next is the one step that a state asks for.
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
