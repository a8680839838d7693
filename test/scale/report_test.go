package main

import (
	"strings"
	"testing"

	"github.com/howdah/howdah/test/spare"
	"github.com/howdah/howdah/test/verdict"
)

// sample is a run on a machine with time to spare; its namespace mount is too slow.
func sample() outcome {
	return outcome{
		figures: []figure{
			{rawTCP, []float64{19e6, 18e6, 20e6}},
			{oneServer, []float64{19e6}},
			{allServers, []float64{57e6}},
			{directMount, []float64{60e6}},
			{narrowMount, []float64{57e6}},
		},
		links: []verdict.Link{{Name: "link of node1", Rate: 19e6, Cap: 20e6}, {Name: "all links together", Rate: 56e6, Cap: 60e6}},
		windows: []verdict.Window{
			{Name: "round 1, " + oneServer, Use: spare.Use{Idle: 0.3}}, {Name: "round 1, " + allServers, Use: spare.Use{Idle: 0.2, Stolen: 0.01}},
		},
	}
}

func TestReportNamesWhatMissesItsGoal(t *testing.T) {
	text, got := report(sample(), 3, 20e6, 10, 3)
	if got != verdict.GoalsNotMet {
		t.Errorf("verdict %d", got)
	}
	for _, want := range []string{
		"one mount over 3 servers / (3 x cap)                               0.950  goal >= 0.95: met",
		"namespace mount / direct mounts                                    0.950  goal >= 0.98: NOT MET",
		"raw TCP from one capped node                     19.0 MB/s   (19.0 18.0 20.0)",
		"nconnect=16 / nconnect=1                                           1.000\n",
		"before: all links together                       56.0 MB/s",
		"round 1, one mount, all servers, nconnect=16           20.0 % idle",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("missing %q in\n%s", want, text)
		}
	}
	good := sample()
	good.figures[3].rounds[0] = 57e6
	if text, got := report(good, 3, 20e6, 10, 3); got != verdict.GoalsMet || strings.Contains(text, "NOT MET") {
		t.Errorf("verdict %d of a good run:\n%s", got, text)
	}
}

func TestARunThatMeasuredSomethingElseIsNotJudged(t *testing.T) {
	for name, tc := range map[string]struct {
		disturb func(*outcome)
		want    string
	}{
		"no CPU to spare": {
			func(o *outcome) { o.windows[1].Use.Idle = 0.004 },
			"round 1, one mount, all servers, nconnect=16: this machine's CPUs were idle for 0.4 % of the time; at least 5 % are needed",
		},
		"another machine took the CPU": {
			func(o *outcome) { o.windows[0].Use.Stolen = 0.2 },
			"round 1, one mount, 1 server, nconnect=16: the hypervisor took 20.0 % of this machine's CPUs away; at most 5 % may be",
		},
		"a slow link": {
			func(o *outcome) { o.links[0].Rate = 8e6 },
			"link of node1: plain TCP got 8.0 of 20.0 MB/s before anything was measured; at least 90 % are needed",
		},
		"slow links, and nothing measured after that": {
			func(o *outcome) { o.links[1].Rate, o.figures, o.windows = 30e6, nil, nil },
			"all links together: plain TCP got 30.0 of 60.0 MB/s before anything was measured; at least 90 % are needed",
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := sample()
			tc.disturb(&o)
			text, got := report(o, 3, 20e6, 10, 3)
			if got != verdict.Invalid || !strings.Contains(text, "INVALID") || !strings.Contains(text, tc.want) {
				t.Errorf("verdict %d:\n%s", got, text)
			}
			if strings.Contains(text, "goal") || strings.Contains(text, "NaN") {
				t.Errorf("judged all the same:\n%s", text)
			}
		})
	}
}

func TestOtherOptionsStayWhenConnectionsChange(t *testing.T) {
	got := strings.Join(withNconnect([]string{"vers=4.1", "nconnect=16", "hard"}, 1), ",")
	if got != "vers=4.1,nconnect=1,hard" {
		t.Errorf("got %s", got)
	}
}
