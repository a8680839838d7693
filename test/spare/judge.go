package spare

import (
	"fmt"
	"time"
)

const (
	// leastShare of a CPU that one more process must get for a time to be judged: beside an idle lab it gets more,
	// beside eight endless loops on two CPUs a quarter.
	leastShare = 0.4
	// mostSlack bounds how long a test that will not pass goes on. Beside eight endless loops on two CPUs, three nodes
	// and their control plane are some four times slower.
	mostSlack = 5
)

// Slack is by how much a bound of a wait is to be longer than what an idle machine needs. Such bounds only end
// what would never end; they say nothing about speed.
func Slack(share float64) float64 { return min(2/max(share, 0.01), mostSlack) }

// Judge compares a time with its goal. It has failed if it is beyond the goal by more than the factor patience
// on a machine that has CPU to spare; on another one nothing is judged.
func Judge(took, goal time.Duration, patience, share float64) (verdict string, failed bool) {
	shown := took.Round(10 * time.Millisecond)
	switch {
	case took <= goal:
		return fmt.Sprintf("%s (goal %s: met)", shown, goal), false
	case share < leastShare:
		return fmt.Sprintf("%s (goal %s: NOT JUDGED, one more process gets only %.0f %% of a CPU)", shown, goal, 100*share), false
	}
	return fmt.Sprintf("%s (goal %s: NOT MET)", shown, goal), float64(took) > float64(goal)*patience
}
