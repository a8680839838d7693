package benchmark

import (
	"fmt"
	"strings"
	"time"
)

// lostPercent is the part of all accelerators' time, in percent, that was lost because a client had no CPU. It
// counts as AU does: an accelerator's own first step does not, what it then waits for others does.
func lostPercent(reports []ClientReport, client int) float64 {
	lost, whole := 0.0, 0.0
	for e, epoch := range reports[client].Epochs {
		slowest := time.Duration(0)
		for _, rank := range epoch.Ranks {
			slowest = max(slowest, rank.First)
		}
		var waited, counted []float64
		for _, other := range reports {
			if e >= len(other.Epochs) {
				continue
			}
			for _, rank := range other.Epochs[e].Ranks {
				waited = append(waited, min(max(slowest-rank.First, 0), epoch.LostFirst).Seconds())
				counted = append(counted, (rank.Total - rank.First).Seconds())
			}
		}
		lost += epoch.Lost.Seconds() + mean(waited)
		whole += mean(counted)
	}
	return percent(lost, whole)
}

// spoilt is why a run does not measure the share; "" if it does. A client without CPU reads slowly, whatever the servers do, so the run can
// neither pass nor fail.
func spoilt(reports []ClientReport) string {
	var found []string
	for i, r := range reports {
		lost := lostPercent(reports, i)
		if lost < SpoiltPercent {
			continue
		}
		text := r.Name
		if r.NodeName != "" {
			text += " on node " + r.NodeName
		}
		text += fmt.Sprintf(" cost %.1f %% of the time", lost)
		if r.CPU != nil {
			text += fmt.Sprintf(" (%s)", r.CPU)
		}
		found = append(found, text)
	}
	if len(found) == 0 {
		return ""
	}
	const most = 3
	if len(found) > most {
		found = append(found[:most], fmt.Sprintf("and %d more", len(found)-most))
	}
	return fmt.Sprintf("clients were short of CPU: %s; the limit is %.0f %%. Run the job again without other load, or with fewer accelerators on each client",
		strings.Join(found, ", "), SpoiltPercent)
}
