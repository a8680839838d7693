package main

import (
	"fmt"

	"github.com/howdah/howdah/test/spare"
)

// What a run needs to be judged.
const (
	// leastRest is how much of this machine's CPUs must be idle while the lab rests, before and after each measurement. The measurements
	// themselves take all there is: with two cores it is the CPU that serves.
	leastRest = 0.5
	// mostStolen by other machines of the same host.
	mostStolen = 0.05
)

// verdict is the outcome of a run and, but for errors (1) and wrong usage (2), the command's exit code.
type verdict int

const (
	limitsKept    verdict = 0
	invalid       verdict = 3
	limitsNotKept verdict = 4
)

// window is what the machine's CPUs did in a while.
type window struct {
	name string
	// rest: the lab had nothing to do.
	rest bool
	use  spare.Use
}

// whyInvalid gives the reasons why a run can't be judged; none is good.
func whyInvalid(windows []window) []string {
	var reasons []string
	for _, w := range windows {
		if w.rest && w.use.Idle < leastRest {
			reasons = append(reasons, fmt.Sprintf("%s: this machine's CPUs were idle for %.0f %% of the time while the lab rested; at least %.0f %% are needed",
				w.name, 100*w.use.Idle, 100*leastRest))
		}
		if w.use.Stolen > mostStolen {
			reasons = append(reasons, fmt.Sprintf("%s: the hypervisor took %.1f %% of this machine's CPUs away; at most %.0f %% may be",
				w.name, 100*w.use.Stolen, 100*mostStolen))
		}
	}
	return reasons
}
