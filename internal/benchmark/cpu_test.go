package benchmark

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/howdah/howdah/api/v1alpha1"
)

// procStat is /proc/stat of a node with two CPUs: user nice system idle iowait irq softirq steal guest guest_nice.
const procStat = "cpu  300 0 60 1200 40 0 0 200 10 0\ncpu0 100 0 20 800 40 0 0 40 0 0\ncpu1 200 0 40 400 0 0 0 160 10 0\n" +
	"intr 12345 0 1\nctxt 99\nbtime 1700000000\nprocesses 5\n"

func TestCPUTimeIsThatOfTheCPUsThatTheClientMayUse(t *testing.T) {
	all := func(int) bool { return true }
	tests := map[string]struct {
		text   string
		usable func(int) bool
		want   CPUTime
		fails  bool
	}{
		"all CPUs; one that waits for I/O is free, one that a hypervisor took is not": {procStat, all, CPUTime{Total: 1800, Left: 1240}, false},
		"one of two":           {procStat, func(cpu int) bool { return cpu == 1 }, CPUTime{Total: 800, Left: 400}, false},
		"none":                 {procStat, func(int) bool { return false }, CPUTime{}, true},
		"an old kernel":        {"cpu0 1 2 3 4 5\n", all, CPUTime{Total: 15, Left: 9}, false},
		"nothing":              {"", all, CPUTime{}, true},
		"a number that is not": {"cpu0 1 2 x 4 5\n", all, CPUTime{}, true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := ParseCPUTime(tc.text, tc.usable)
			if diff := cmp.Diff(tc.want, got); diff != "" || (err != nil) != tc.fails {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
		})
	}
}

func TestAClientIsStarvedWithoutCPUOrWithAUsedUpLimit(t *testing.T) {
	const limit = "usage_usec 5\nnr_periods %d\nnr_throttled %d\nthrottled_usec 77\n"
	before := CPUTime{Total: 1000, Left: 500}
	before.ParseThrottling(fmt.Sprintf(limit, 100, 10))
	tests := map[string]struct {
		total, left        uint64
		periods, throttled int
		want               CPUUse
		starved            bool
	}{
		"half is left":                      {200, 100, 0, 0, CPUUse{LeftPercent: 50}, false},
		"just enough is left":               {200, 10, 0, 0, CPUUse{LeftPercent: 5}, false},
		"too little is left":                {200, 9, 0, 0, CPUUse{LeftPercent: 4.5}, true},
		"no time has passed":                {0, 0, 0, 0, CPUUse{LeftPercent: 100}, false},
		"the limit is used up now and then": {200, 100, 10, 5, CPUUse{LeftPercent: 50, ThrottledPercent: 50}, false},
		"the limit is used up":              {200, 100, 10, 6, CPUUse{LeftPercent: 50, ThrottledPercent: 60}, true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			after := CPUTime{Total: before.Total + tc.total, Left: before.Left + tc.left}
			after.ParseThrottling(fmt.Sprintf(limit, 100+tc.periods, 10+tc.throttled))
			got := after.Since(before)
			if diff := cmp.Diff(tc.want, got); diff != "" || got.Starved() != tc.starved {
				t.Errorf("starved is %v (-want +got):\n%s", got.Starved(), diff)
			}
		})
	}
	if use := (CPUTime{Total: 1010, Left: 499}).Since(before); use.LeftPercent != 0 {
		t.Errorf("idle time that goes backwards: %+v", use)
	}
}

func TestARunIsInvalidIfClientsWereShortOfCPU(t *testing.T) {
	// One epoch of 10 s besides the first step, at an AU of the given percentage.
	report := func(name string, first, lostFirst, lost time.Duration) ClientReport {
		rank := RankEpoch{EpochTimes: EpochTimes{Steps: 2, Compute: 8 * time.Second, First: first, Total: first + 10*time.Second}}
		return ClientReport{Name: name, CPU: &CPUUse{LeftPercent: 2}, Epochs: []ClientEpoch{{Ranks: []RankEpoch{rank}, LostFirst: lostFirst, Lost: lost}}}
	}
	const second = time.Second
	tests := map[string]struct {
		reports []ClientReport
		verdict v1alpha1.Verdict
		words   string
	}{
		"nothing was lost":                        {[]ClientReport{report("a", second, 0, 0)}, v1alpha1.VerdictFailed, ""},
		"a little was lost":                       {[]ClientReport{report("a", second, 0, 499*time.Millisecond)}, v1alpha1.VerdictFailed, ""},
		"a twentieth was lost":                    {[]ClientReport{report("a", second, 0, 500*time.Millisecond)}, v1alpha1.VerdictInvalid, "a cost 5.0 % of the time (on average 2 % of its CPU was free)"},
		"the first step of a lone client is none": {[]ClientReport{report("a", 9*second, 8*second, 0)}, v1alpha1.VerdictFailed, ""},
		"the first step of one made others wait":  {[]ClientReport{report("a", 9*second, 8*second, 0), report("b", second, 0, 0)}, v1alpha1.VerdictInvalid, "a cost 40.0 %"},
		"a slow first step that had CPU":          {[]ClientReport{report("a", 9*second, 0, 0), report("b", second, 0, 0)}, v1alpha1.VerdictFailed, ""},
		"many clients": {
			[]ClientReport{report("a", second, 0, second), report("b", second, 0, second), report("c", second, 0, second), report("d", second, 0, second), report("e", second, 0, second)},
			v1alpha1.VerdictInvalid, "c cost 10.0 % of the time (on average 2 % of its CPU was free), and 2 more",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			plan, _, _ := testRun()
			got := NewResult(plan, tc.reports, nil)
			if got.Verdict != tc.verdict || !strings.Contains(got.Message, tc.words) || (got.Message == "") != (tc.words == "") {
				t.Errorf("%s: %q", got.Verdict, got.Message)
			}
		})
	}
}
