package main

import "github.com/howdah/howdah/test/verdict"

// What a run needs to be judged. Its goals are ratios near 1, so little is left for disturbances.
const (
	// leastIdle of the machine's CPUs in a measurement: with less, it is the CPU that is measured.
	leastIdle = 0.05
	// leastRaw is what plain TCP must get of a link's cap before anything is measured through NFS.
	leastRaw = 0.9
)

// whyInvalid gives the reasons why a run can't be judged; none is good.
func whyInvalid(links []verdict.Link, windows []verdict.Window) []string {
	var reasons []string
	for _, l := range links {
		reasons = append(reasons, l.Spoilt(leastRaw)...)
	}
	for _, w := range windows {
		reasons = append(reasons, w.Spoilt(leastIdle)...)
	}
	return reasons
}
