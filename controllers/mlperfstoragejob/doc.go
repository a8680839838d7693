// Package mlperfstoragejob takes MLPerfStorageJobs through their steps. A pass
// observes everything (observe.go), derives the state from it (benchmark.StateOf),
// does the one step that the state asks for (step_*.go), and reports once (status.go). The state is never read back
// from our own status: a pass after a restart of the operator goes on where the objects are.
// It must not import another kind's controller.
package mlperfstoragejob
