package benchmark

import (
	"fmt"

	"github.com/howdah/howdah/api/v1alpha1"
)

// Limits of the rules of MLPerf Storage (mlcommons/storage, Submission_guidelines v1.0 and v2.0).
const (
	ruleMemoryFactor = 5
	ruleSteps        = 500
	ruleEpochs       = 5
)

// Rules are the rules of MLPerf Storage, with whether the run kept them.
func Rules(p Plan, reports []ClientReport) []v1alpha1.RuleResult {
	dataset, memory, known := p.Dataset().TotalBytes(), int64(0), len(reports) > 0
	for _, r := range reports {
		memory += r.MemoryBytes
		known = known && r.MemoryBytes > 0
	}
	size := fmt.Sprintf("the dataset has %s and the clients' nodes have %s of memory; the dataset must be at least %d times as large",
		megabytes(dataset), megabytes(memory), ruleMemoryFactor)
	if !known {
		size = "the memory of the clients' nodes is not known"
	}
	compute := ComputeTime(p.AcceleratorType)
	unread := p.Samples - p.Steps()*BatchSize*p.Accelerators
	return []v1alpha1.RuleResult{
		rule("dataset-size", known && dataset >= ruleMemoryFactor*memory, size),
		rule("steps", p.Steps() >= ruleSteps, fmt.Sprintf("%d steps in an epoch; at least %d are required", p.Steps(), ruleSteps)),
		rule("sample-size", p.SampleSize == NominalSampleSize,
			fmt.Sprintf("samples of %d bytes on average; unet3d has %d", p.SampleSize, NominalSampleSize)),
		rule("epochs", p.Epochs == ruleEpochs, fmt.Sprintf("%d epochs; unet3d has %d", p.Epochs, ruleEpochs)),
		rule("compute-time", compute > 0 && p.Compute() == compute,
			fmt.Sprintf("a step computes for %s; %s has %s", p.Compute(), p.AcceleratorType, compute)),
		rule("whole-dataset", unread == 0,
			fmt.Sprintf("%d of %d samples are left over from whole steps of %d for each accelerator", unread, p.Samples, BatchSize)),
		rule("same-clients", true, fmt.Sprintf("each of %d clients drives %d accelerators", p.Clients, p.AcceleratorsPerClient())),
		rule("client-cache", true, "the clients dropped the dataset from their page cache before the run, and each file once it was read; DLIO does not do the latter"),
		rule("server-cache", false, "the data servers' caches were not dropped: what was just written may come from their memory"),
		rule("runs", false, "1 run; the mean of 5 runs in a row is asked for"),
		rule("benchmark-code", false, "Howdah's Native engine; dlio_benchmark is asked for"),
		rule("checkpoint", false, "no checkpoint was written; unet3d of v1.0 writes one at the end"),
	}
}

func rule(name string, kept bool, message string) v1alpha1.RuleResult {
	state := v1alpha1.RuleBroken
	if kept {
		state = v1alpha1.RuleKept
	}
	return v1alpha1.RuleResult{Name: name, State: state, Message: message}
}

// megabytes prints bytes in units of 10^6, as vendors and MLPerf tables do.
func megabytes(bytes int64) string { return fmt.Sprintf("%.1f MB", float64(bytes)/1e6) }
