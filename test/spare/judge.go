package spare

import (
	"fmt"
	"time"
)

const (
	// leastShare of a CPU that one more process must get for a time to be judged: beside an idle lab it gets more,
	// beside eight endless loops on two CPUs a quarter.
	leastShare = 0.4
	// mostStolen is how much of all CPUs' time other machines of the same host may have had. Figures for documents are held to less
	// (test/scale); here a time is only to have failed where the machine is not the reason.
	mostStolen = 0.1
	// mostSlack bounds how long a test that will not pass goes on. Beside eight endless loops on two CPUs, three nodes
	// and their control plane are some four times slower.
	mostSlack = 5
)

// Slack is by how much a bound of a wait is to be longer than what an idle machine needs. Such bounds only end
// what would never end; they say nothing about speed.
func Slack(share float64) float64 { return min(2/max(share, 0.01), mostSlack) }

// Room is what a machine has left for one thing more.
type Room struct {
	// Share of a CPU that one more process gets (Share).
	Share float64
	// Stolen is the part of all CPUs' time that the hypervisor gave to other machines.
	Stolen float64
}

// Busy tells why times that were taken there are not judged; nothing if they are.
func (r Room) Busy() string {
	switch {
	case r.Share < leastShare:
		return fmt.Sprintf("one more process gets only %.0f %% of a CPU", 100*r.Share)
	case r.Stolen > mostStolen:
		return fmt.Sprintf("other machines of the host had %.0f %% of the CPUs' time", 100*r.Stolen)
	}
	return ""
}

// Judge compares a time with its goal. It has failed if it is beyond the goal by more than the factor patience
// on a machine that has CPU to spare; on another one nothing is judged. Room is of the time when it was taken.
func Judge(took, goal time.Duration, patience float64, room Room) (verdict string, failed bool) {
	shown := took.Round(10 * time.Millisecond)
	switch {
	case took <= goal:
		return fmt.Sprintf("%s (goal %s: met)", shown, goal), false
	case room.Busy() != "":
		return fmt.Sprintf("%s (goal %s: NOT JUDGED, %s)", shown, goal, room.Busy()), false
	}
	return fmt.Sprintf("%s (goal %s: NOT MET)", shown, goal), float64(took) > float64(goal)*patience
}
