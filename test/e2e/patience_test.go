package e2e

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/howdah/howdah/test/spare"
)

// probe is how long the machine is asked for its CPU.
const probe = 500 * time.Millisecond

// patience is by how much a time may miss its goal before a spec fails: a lab of
// three nodes shares two cores, and 1 is for machines that do nothing else. HOWDAH_E2E_PATIENCE sets it.
var patience = 1.0

var slack = spare.Slack(cpuShare())

// bound is the bound of a wait for something that takes less than d on an idle machine.
func bound(d time.Duration) time.Duration {
	return time.Duration(float64(d) * slack).Round(time.Second)
}

// cpuShare is how much of a CPU one more process gets, 1 where nobody can tell.
func cpuShare() float64 {
	share, err := spare.Share(probe)
	if err != nil {
		return 1
	}
	return share
}

// expectWithin reports a time beside its goal, and fails the spec if it is missed by more than patience on a
// machine that has CPU to spare.
func expectWithin(what string, took, goal time.Duration) {
	GinkgoHelper()
	before, unknown := spare.Now()
	room := spare.Room{Share: cpuShare()}
	if after, err := spare.Now(); unknown == nil && err == nil {
		room.Stolen = after.Since(before).Stolen
	}
	verdict, failed := spare.Judge(took, goal, patience, room)
	AddReportEntry(what, verdict, ReportEntryVisibilityAlways)
	Expect(failed).To(BeFalse(), "%s: %s", what, verdict)
}
