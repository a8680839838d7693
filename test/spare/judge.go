package spare

import (
	"fmt"
	"time"
)

const (
	// leastShare of a CPU that one more process must get for a time to be judged: beside an idle lab it gets more,
	// beside eight endless loops on two CPUs a quarter.
	leastShare = 0.4
	// mostStolen is the part of all CPUs' time that other machines of the same host may have had. test/scale, whose figures are published,
	// has a lower limit.
	mostStolen = 0.1
	// mostSlack limits how long a failing test goes on. Beside eight endless loops on two CPUs, three nodes and their control plane are
	// about four times slower.
	mostSlack = 5
)

// Slack is the factor by which a timeout is longer than what an idle machine needs. Such timeouts only end what hangs; they are no goals.
func Slack(share float64) float64 { return min(2/max(share, 0.01), mostSlack) }

// Room is what a machine has left for one thing more.
type Room struct {
	// Share of a CPU that one more process gets (Share).
	Share float64
	// Stolen is the part of all CPUs' time that the hypervisor gave to other machines.
	Stolen float64
}

// Busy is why times measured there are not judged; "" if they are.
func (r Room) Busy() string {
	switch {
	case r.Share < leastShare:
		return fmt.Sprintf("one more process gets only %.0f %% of a CPU", 100*r.Share)
	case r.Stolen > mostStolen:
		return fmt.Sprintf("other machines of the host had %.0f %% of the CPUs' time", 100*r.Stolen)
	}
	return ""
}

// Judge compares a time with its goal. It has failed if it is over factor times the goal on a machine that has CPU to spare; on a busy
// machine nothing is judged. Room is what the machine had left while the time was measured.
func Judge(took, goal time.Duration, factor float64, room Room) (verdict string, failed bool) {
	shown := took.Round(10 * time.Millisecond)
	switch {
	case took <= goal:
		return fmt.Sprintf("%s (goal %s: met)", shown, goal), false
	case room.Busy() != "":
		return fmt.Sprintf("%s (goal %s: NOT JUDGED, %s)", shown, goal, room.Busy()), false
	}
	return fmt.Sprintf("%s (goal %s: NOT MET)", shown, goal), float64(took) > float64(goal)*factor
}
