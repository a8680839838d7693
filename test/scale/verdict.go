package main

import (
	"fmt"

	"github.com/howdah/howdah/test/spare"
)

// What a run needs to be judged. Its goals are ratios near 1, so little is left for disturbances.
const (
	// leastIdle of the machine's CPUs in a measurement: with less, it is the CPU that is measured.
	leastIdle = 0.05
	// mostStolen by other machines of the same host.
	mostStolen = 0.05
	// leastRaw is what plain TCP must get of a link's cap before anything is measured through NFS.
	leastRaw = 0.9
)

// verdict is the outcome of a run and, but for errors (1) and wrong usage (2), the command's exit code.
type verdict int

const (
	goalsMet    verdict = 0
	invalid     verdict = 3
	goalsNotMet verdict = 4
)

// link is what plain TCP got through links of data servers' nodes before the measurements, beside their cap.
type link struct {
	name      string
	rate, cap float64
}

// window is what the machine's CPU did during a measurement.
type window struct {
	name  string
	round int
	use   spare.Use
}

// whyInvalid gives the reasons why a run can't be judged; none is good.
func whyInvalid(links []link, windows []window) []string {
	var reasons []string
	for _, l := range links {
		if l.rate < leastRaw*l.cap {
			reasons = append(reasons, fmt.Sprintf("%s: plain TCP got %.1f of %.1f MB/s before anything was measured; at least %.0f %% are needed",
				l.name, l.rate/1e6, l.cap/1e6, 100*leastRaw))
		}
	}
	for _, w := range windows {
		if w.use.Idle < leastIdle {
			reasons = append(reasons, fmt.Sprintf("round %d, %s: this machine's CPUs were idle for %.1f %% of the time; at least %.0f %% are needed",
				w.round, w.name, 100*w.use.Idle, 100*leastIdle))
		}
		if w.use.Stolen > mostStolen {
			reasons = append(reasons, fmt.Sprintf("round %d, %s: the hypervisor took %.1f %% of this machine's CPUs away; at most %.0f %% may be",
				w.round, w.name, 100*w.use.Stolen, 100*mostStolen))
		}
	}
	return reasons
}
