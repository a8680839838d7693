package main

import "github.com/howdah/howdah/test/verdict"

// leastRest is how much of this machine's CPUs must be idle while the lab rests, before and after each measurement. The measurements
// themselves take all there is: with two cores it is the CPU that serves.
const leastRest = 0.5

// window is what the machine's CPUs did in a while.
type window struct {
	verdict.Window
	// rest: the lab had nothing to do.
	rest bool
}

// whyInvalid gives the reasons why a run can't be judged; none is good.
func whyInvalid(windows []window) []string {
	var reasons []string
	for _, w := range windows {
		least := 0.0
		if w.rest {
			least = leastRest
		}
		reasons = append(reasons, w.Spoilt(least)...)
	}
	return reasons
}
