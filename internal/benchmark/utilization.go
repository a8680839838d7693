package benchmark

import "time"

// PassAUPercent is the accelerator utilization that a run must have (metric.au of unet3d).
const PassAUPercent = 90.0

// EpochTimes are the times of one accelerator in one epoch.
type EpochTimes struct {
	// Steps is the number of steps.
	Steps int
	// Compute is the time that a step computes.
	Compute time.Duration
	// Total is from before the first read to after the barrier of the last step.
	Total time.Duration
	// First is the first step without its barrier: its read and its computation.
	First time.Duration
}

// AU is the accelerator utilization in percent, as DLIO 2.0.0 computes it
// (statscounter.py, end_block): the computation of all steps but the first, over the time without the first step.
func (e EpochTimes) AU() float64 {
	computed := float64(max(e.Steps-1, 0)) * e.Compute.Seconds()
	return percent(computed, (e.Total - e.First).Seconds())
}

// SamplesPerSecond is the rate of one accelerator; DLIO counts the first step here.
func (e EpochTimes) SamplesPerSecond() float64 {
	if e.Total <= 0 {
		return 0
	}
	return float64(e.Steps*BatchSize) / e.Total.Seconds()
}

func percent(part, whole float64) float64 {
	if whole <= 0 {
		return 0
	}
	return 100 * part / whole
}

func mean(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}
