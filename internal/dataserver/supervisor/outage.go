package supervisor

import (
	"strconv"
	"strings"
	"time"
)

// Outage is what clients of a data server have been through.
type Outage struct {
	// Since is since when the data server did not serve before this process; zero if that is not known.
	Since time.Time
	// LostClients are the addresses whose clients are lost with their node.
	LostClients []string
}

const (
	// maxLonger is the most that a grace period is longer than configured. Linux connects after some 3, 9, 21, 45, 93 and 189 s: clients of an outage
	// of up to 189 s come within this time of its end.
	maxLonger = 90 * time.Second
	// longerBy is by how many times the outage it is. A client may come as long after the start as it has waited for it (1), and that try may
	// fail, as the network may still lead it elsewhere: then it comes three times as late (3).
	longerBy = 3
)

// secondsLonger is by how many seconds a grace period that begins now is longer than configured, after clients could not reclaim anything since
// a time; zero if it is not known.
func secondsLonger(downSince, now time.Time) int {
	if downSince.IsZero() {
		return 0
	}
	away := min(max(now.Sub(downSince), 0), maxLonger) // Before it is multiplied: a clock that is wrong by years must not overflow.
	return int(min(longerBy*away, maxLonger) / time.Second)
}

// outageEnvironment tells ganesha by how much longer to wait for its clients, and where no client comes from any more (patch 0433).
func (s *Supervisor) outageEnvironment() []string {
	state, outage := s.State(), Outage{}
	if s.Outage != nil {
		outage = s.Outage()
	}
	if state.Starts == 0 && state.DownSince.IsZero() {
		state.DownSince = outage.Since
		s.note(func(now *State) { now.DownSince = state.DownSince })
	}
	return []string{
		"HOWDAH_SECONDS_LONGER=" + strconv.Itoa(secondsLonger(state.DownSince, time.Now())),
		"HOWDAH_LOST_CLIENTS=" + strings.Join(outage.LostClients, ","),
	}
}
