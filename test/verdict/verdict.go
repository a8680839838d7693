// Package verdict says what a benchmark's run is worth: its goals are met, or not, or the run is INVALID, because something else was
// measured. Every benchmark of this repository that judges ratios ends with one of these outcomes as its exit code (bench-scale, bench-model,
// bench-ceph); bench-hostile, which is a test, has the same code for INVALID. An MLPerfStorageJob does not use it: it runs in pods, where what
// counts is the time that accelerators lost because their client's pod had no CPU, and not what a whole machine had (internal/benchmark).
package verdict

import (
	"fmt"
	"slices"
	"strings"

	"github.com/howdah/howdah/test/spare"
)

// Outcome is what a run shows and, but for errors (1) and wrong usage (2), the command's exit code.
type Outcome int

// Outcomes.
const (
	GoalsMet    Outcome = 0
	Invalid     Outcome = 3
	GoalsNotMet Outcome = 4
)

// MostStolen is the part of this machine's CPUs, from 0 to 1, that other machines of the same host may take during a measurement.
const MostStolen = 0.05

// Window is what this machine's CPUs did during a measurement.
type Window struct {
	Name string
	Use  spare.Use
}

// Spoilt gives the reasons why what was measured in a window can't be judged. leastIdle is the part of the CPUs, from 0 to 1, that must be idle.
func (w Window) Spoilt(leastIdle float64) (reasons []string) {
	if w.Use.Idle < leastIdle {
		reasons = append(reasons, fmt.Sprintf("%s: this machine's CPUs were idle for %.1f %% of the time; at least %.0f %% are needed",
			w.Name, 100*w.Use.Idle, 100*leastIdle))
	}
	if w.Use.Stolen > MostStolen {
		reasons = append(reasons, fmt.Sprintf("%s: the hypervisor took %.1f %% of this machine's CPUs away; at most %.0f %% may be",
			w.Name, 100*w.Use.Stolen, 100*MostStolen))
	}
	return reasons
}

// Link is what plain TCP got through links before the measurements, beside their cap; both in bytes per second.
type Link struct {
	Name      string
	Rate, Cap float64
}

// Spoilt is the reason why nothing can be judged that went through a link; none is good. least is the part of the cap, from 0 to 1, that it must carry.
func (l Link) Spoilt(least float64) []string {
	if l.Rate >= least*l.Cap {
		return nil
	}
	return []string{fmt.Sprintf("%s: plain TCP got %.1f of %.1f MB/s before anything was measured; at least %.0f %% are needed",
		l.Name, l.Rate/1e6, l.Cap/1e6, 100*least)}
}

// NotJudged is the end of the report of a run that is INVALID: instead is what was measured besides, again how to get a better run.
func NotJudged(instead string, reasons []string, again string) string {
	const most = 8
	var text strings.Builder
	fmt.Fprintf(&text, "\nINVALID: nothing is judged, for %s\n", instead)
	for _, reason := range reasons[:min(most, len(reasons))] {
		fmt.Fprintf(&text, "  - %s\n", reason)
	}
	if more := len(reasons) - most; more > 0 {
		fmt.Fprintf(&text, "  - and %d more\n", more)
	}
	fmt.Fprintf(&text, "Run it again when the machine has nothing else to do%s.\n", again)
	return text.String()
}

// NotLinksAlone is the instead of NotJudged where links are to be the limit.
const NotLinksAlone = "it was not the links alone that were measured"

// Median is the middle of some values, 0 of none.
func Median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	switch n := len(sorted); {
	case n == 0:
		return 0
	case n%2 == 0:
		return (sorted[n/2-1] + sorted[n/2]) / 2
	default:
		return sorted[n/2]
	}
}
