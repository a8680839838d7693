// Package mlperfstoragejob reconciles MLPerfStorageJobs. A pass observes everything (observe.go), derives the state
// (benchmark.StateOf), takes the next step (step_*.go), and reports once (status.go). The state follows from existing
// objects and not from the job's status, so a restart of the operator changes nothing. It must not import another
// kind's controller.
package mlperfstoragejob
