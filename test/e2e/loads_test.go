package e2e

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/howdah/howdah/internal/load"
	"github.com/howdah/howdah/test/cluster"
)

// stopped ends a load, reports the longest stall of each of its directories, and expects that it had no error and found no wrong data.
func stopped(ctx context.Context, running *cluster.Load) load.Result {
	GinkgoHelper()
	result, err := running.Stop(ctx)
	Expect(err).NotTo(HaveOccurred())
	for _, d := range result.Directories {
		AddReportEntry(running.Pod+": "+d.Path, fmt.Sprintf(
			"longest stall %s; %d operations, %d done before they were asked for again, %d errors, %d ESTALE, %d bad blocks, %d stolen locks, %d lost and %d extra names",
			d.Longest, d.Operations, d.Doubtful, d.ErrorCount(), d.Stale, d.BadBlocks, d.StolenLocks, d.LostNames, d.ExtraNames), ReportEntryVisibilityAlways)
	}
	Expect(result.Verdict(0)).To(Succeed(), result.Text())
	return result
}

// longest is the longest stall of a load.
func longest(result load.Result) (longest time.Duration) {
	for _, d := range result.Directories {
		longest = max(longest, time.Duration(d.Longest.Seconds*float64(time.Second)))
	}
	return longest
}

// audited expects that a client finds everything that the ledgers have.
func audited(ctx context.Context, pod string, directories, ledgers []string, flags ...string) {
	GinkgoHelper()
	result, err := c.Audit(ctx, pod, directories, ledgers, flags...)
	Expect(err).NotTo(HaveOccurred())
	Expect(result.Verdict(0)).To(Succeed(), "what %s sees: %s", pod, result.Text())
	for _, d := range result.Directories {
		Expect(d.Checked).NotTo(BeZero(), d.Path)
	}
}
