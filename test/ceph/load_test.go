package ceph

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/howdah/howdah/internal/load"
	"github.com/howdah/howdah/test/cluster"
	"github.com/howdah/howdah/test/spare"
)

// pauses has the longest operations of a client under load: a block written to stable storage, also through a locked file, and a file opened
// for writing and closed.
type pauses struct {
	io, open time.Duration
	// stolen is the part of this machine's CPU time that other machines had meanwhile.
	stolen float64
}

// loadCount makes the names of loads unique.
var loadCount int

// underLoad runs do while pods load their directories (a map from pod to directory), and returns each pod's pauses. The load
// starts 3 s before do and ends 12 s after it. A client with an error, a lost lock or wrong data fails the spec.
func underLoad(ctx context.Context, directories map[string]string, do func()) map[string]pauses {
	GinkgoHelper()
	loads := map[string]*cluster.Load{}
	for pod, directory := range directories {
		loadCount++
		running, err := c.StartLoad(ctx, pod, fmt.Sprintf("load-%d", loadCount), []string{directory}, "--do", "records,opens,lock", "--bytes", "8Mi")
		Expect(err).NotTo(HaveOccurred())
		loads[pod] = running
	}
	before, unknown := spare.Now()
	time.Sleep(3 * time.Second)
	do()
	time.Sleep(12 * time.Second) // As long as a lease and a grace period at most, to see late effects.
	after, err := spare.Now()
	stolen := 0.0
	if unknown == nil && err == nil {
		stolen = after.Since(before).Stolen
	}
	found := map[string]pauses{}
	for pod, running := range loads {
		result, err := running.Stop(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(result.Verdict(0)).To(Succeed(), "the client in %s: %s", pod, result.Text())
		kinds := result.Directories[0].Kinds
		Expect(kinds[load.Append].Count).NotTo(BeZero(), result.Text())
		longest := func(kinds ...load.Timing) (longest time.Duration) {
			for _, kind := range kinds {
				longest = max(longest, time.Duration(kind.Longest*float64(time.Second)).Round(10*time.Millisecond))
			}
			return longest
		}
		found[pod] = pauses{io: longest(kinds[load.Append], kinds[load.Lock]), open: longest(kinds[load.OpenFile]), stolen: stolen}
		ledger, err := running.Ledger(ctx)
		Expect(err).NotTo(HaveOccurred())
		audit, err := c.Audit(ctx, pod, running.Directories, []string{ledger})
		Expect(err).NotTo(HaveOccurred())
		Expect(audit.Verdict(0)).To(Succeed(), "what was written by the client in %s: %s", pod, audit.Text())
	}
	return found
}

// within reports a time beside its goal. It fails the spec if the time is over the goal by more than HOWDAH_E2E_TIMEOUT_FACTOR. The time is
// not judged if the machine has no CPU to spare, or if much of its CPU time was stolen meanwhile.
func within(what string, took, goal time.Duration, stolen float64) {
	GinkgoHelper()
	factor, err := spare.TimeoutFactor(1)
	Expect(err).NotTo(HaveOccurred())
	share, err := spare.Share(500 * time.Millisecond)
	if err != nil {
		share = 1
	}
	verdict, failed := spare.Judge(took, goal, factor, spare.Room{Share: share, Stolen: stolen})
	AddReportEntry(what, verdict, ReportEntryVisibilityAlways)
	Expect(failed).To(BeFalse(), "%s: %s", what, verdict)
}
