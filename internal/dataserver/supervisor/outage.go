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

// maxAway is the most that a grace period is longer than configured. Linux connects after some 3, 9, 21, 45, 93 and 189 s: clients of an outage
// of up to 189 s come within this time of its end.
const maxAway = 90 * time.Second

// secondsAway is by how many seconds a grace period that begins now is longer than configured, after clients could not reclaim anything since a
// time; zero if it is not known. Clients try ever more rarely, and may come as long after the start as they have waited for it.
func secondsAway(downSince, now time.Time) int {
	if downSince.IsZero() {
		return 0
	}
	return int(min(max(now.Sub(downSince), 0), maxAway) / time.Second)
}

// outageEnvironment gives ganesha the time for which its clients had no server, and where no client comes from any more (patch 0433).
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
		"HOWDAH_SECONDS_AWAY=" + strconv.Itoa(secondsAway(state.DownSince, time.Now())),
		"HOWDAH_LOST_CLIENTS=" + strings.Join(outage.LostClients, ","),
	}
}
