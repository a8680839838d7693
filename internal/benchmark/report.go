package benchmark

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"github.com/howdah/howdah/api/v1alpha1"
)

// ClientReport is what one client measured.
type ClientReport struct {
	// Name is the client pod.
	Name string `json:"name"`
	// NodeName is its node, "" if not known.
	NodeName string `json:"nodeName,omitempty"`
	// MemoryBytes is the memory of its node, 0 if not known.
	MemoryBytes int64 `json:"memoryBytes,omitempty"`
	// CPU is the use of its CPUs during the run; nil if it is not known.
	CPU *CPUUse `json:"cpu,omitempty"`
	// Epochs are the epochs in order.
	Epochs []ClientEpoch `json:"epochs"`
}

// ClientEpoch is an epoch of a client.
type ClientEpoch struct {
	// Ranks has one entry for each of its accelerators.
	Ranks []RankEpoch `json:"ranks"`
	// LostFirst is the time that its accelerators lost in the first step because the client had no CPU to
	// run on, Lost that of all other steps.
	LostFirst time.Duration `json:"lostFirst,omitempty"`
	Lost      time.Duration `json:"lost,omitempty"`
}

// RankEpoch is an epoch of an accelerator.
type RankEpoch struct {
	EpochTimes
	// Bytes is how much was read, including what was read ahead of the last step.
	Bytes int64 `json:"bytes"`
}

// ServerBytes is what the counters of a data server show for a run.
type ServerBytes struct {
	Name  string
	Bytes int64
}

// Label is part of every result: MLCommons' rules for the use of the name require it for results without review.
const Label = "unverified, not an MLPerf Storage result (Howdah's Native engine, not reviewed by MLCommons)"

// NewResult sums up a run. reports has one entry for each client, servers one for
// each data server whose counters could be read.
func NewResult(p Plan, reports []ClientReport, servers []ServerBytes) *v1alpha1.BenchmarkResult {
	var all sums
	clients := make([]v1alpha1.ClientResult, 0, len(reports))
	seconds := runTime(reports).Seconds()
	for _, report := range reports {
		var own sums
		for epoch, e := range report.Epochs {
			for _, rank := range e.Ranks {
				own.add(epoch, rank)
				all.add(epoch, rank)
			}
		}
		client := v1alpha1.ClientResult{
			Name: report.Name, NodeName: report.NodeName,
			AUPercent: decimal(own.au()), BytesPerSecond: rate(own.bytes, seconds),
		}
		if report.CPU != nil {
			client.CPUIdlePercent = decimal(report.CPU.LeftPercent)
		}
		clients = append(clients, client)
	}
	au := all.au()
	verdict, message := v1alpha1.VerdictFailed, spoilt(reports)
	switch {
	case message != "":
		verdict = v1alpha1.VerdictInvalid
	case au >= PassAUPercent:
		verdict = v1alpha1.VerdictPassed
	}
	return &v1alpha1.BenchmarkResult{
		Verdict: verdict, Message: cut(message, maxMessage), Label: Label, Engine: v1alpha1.EngineNative, Accelerators: int32(p.Accelerators),
		AUPercent: decimal(au), SamplesPerSecond: decimal(all.samplesPerSecond()),
		BytesPerSecond: rate(all.bytes, seconds), BytesRead: &all.bytes,
		PerClient: clients, PerServer: perServer(servers, seconds), Rules: Rules(p, reports),
	}
}

// sums are the sums over accelerators, epoch by epoch.
type sums struct {
	utilization, rates [][]float64
	bytes              int64
}

func (s *sums) add(epoch int, rank RankEpoch) {
	for len(s.utilization) <= epoch {
		s.utilization = append(s.utilization, nil)
		s.rates = append(s.rates, nil)
	}
	s.utilization[epoch] = append(s.utilization[epoch], rank.AU())
	s.rates[epoch] = append(s.rates[epoch], rank.SamplesPerSecond())
	s.bytes += rank.Bytes
}

// au is the mean over the accelerators, then over the epochs.
func (s *sums) au() float64 {
	epochs := make([]float64, 0, len(s.utilization))
	for _, ranks := range s.utilization {
		epochs = append(epochs, mean(ranks))
	}
	return mean(epochs)
}

// samplesPerSecond is the sum over the accelerators, then the mean over the epochs.
func (s *sums) samplesPerSecond() float64 {
	epochs := make([]float64, 0, len(s.rates))
	for _, ranks := range s.rates {
		epochs = append(epochs, mean(ranks)*float64(len(ranks)))
	}
	return mean(epochs)
}

// runTime is the time of all epochs; an epoch is as long as its slowest accelerator.
func runTime(reports []ClientReport) time.Duration {
	var epochs []time.Duration
	for _, report := range reports {
		for i, epoch := range report.Epochs {
			if i == len(epochs) {
				epochs = append(epochs, 0)
			}
			for _, rank := range epoch.Ranks {
				epochs[i] = max(epochs[i], rank.Total)
			}
		}
	}
	total := time.Duration(0)
	for _, e := range epochs {
		total += e
	}
	return total
}

func perServer(servers []ServerBytes, seconds float64) []v1alpha1.ServerResult {
	results := make([]v1alpha1.ServerResult, 0, len(servers))
	for _, s := range servers {
		bytes := s.Bytes
		results = append(results, v1alpha1.ServerResult{Name: s.Name, BytesRead: &bytes, BytesPerSecond: rate(bytes, seconds)})
	}
	slices.SortFunc(results, func(a, b v1alpha1.ServerResult) int { return cmp.Compare(a.Name, b.Name) })
	return results
}

func rate(bytes int64, seconds float64) *int64 {
	value := int64(0)
	if seconds > 0 {
		value = int64(float64(bytes) / seconds)
	}
	return &value
}

func decimal(v float64) string { return strconv.FormatFloat(v, 'f', 2, 64) }
