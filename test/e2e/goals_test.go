package e2e

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/howdah/howdah/test/spare"
)

// probe is how long the free CPU of the machine is measured.
const probe = 500 * time.Millisecond

// timeoutFactor is the factor by which a time may miss its goal before a spec fails (HOWDAH_E2E_TIMEOUT_FACTOR).
var timeoutFactor = 1.0

var slack = spare.Slack(cpuShare())

// bound is the timeout for something that takes less than d on an idle machine.
func bound(d time.Duration) time.Duration {
	return time.Duration(float64(d) * slack).Round(time.Second)
}

// cpuShare is how much of a CPU one more process gets, from 0 to 1; 1 where that can't be measured.
func cpuShare() float64 {
	share, err := spare.Share(probe)
	if err != nil {
		return 1
	}
	return share
}

// expectWithin reports a time beside its goal. It fails the spec if the time is over the goal by more than timeoutFactor and the machine
// has CPU to spare.
func expectWithin(what string, took, goal time.Duration) {
	GinkgoHelper()
	before, unknown := spare.Now()
	room := spare.Room{Share: cpuShare()}
	if after, err := spare.Now(); unknown == nil && err == nil {
		room.Stolen = after.Since(before).Stolen
	}
	verdict, failed := spare.Judge(took, goal, timeoutFactor, room)
	AddReportEntry(what, verdict, ReportEntryVisibilityAlways)
	Expect(failed).To(BeFalse(), "%s: %s", what, verdict)
}
