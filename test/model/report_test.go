package model

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/howdah/howdah/test/spare"
	"github.com/howdah/howdah/test/verdict"
)

// sample is a good run of three servers on links of 800 Mbit/s.
func sample() *Run {
	r := &Run{When: time.Date(2026, 11, 26, 0, 0, 0, 0, time.UTC), Kernel: "7.2", CPUs: 2, Servers: 3, Link: 800e6}
	usual := func(kind Kind, servers int, values ...float64) {
		for _, value := range values {
			r.Add(Way{Kind: kind, Servers: servers, Connections: UsualConnections}, value*1e6)
		}
	}
	r.Add(Way{Kind: RawTCP, Servers: 1}, 95e6)
	r.Add(Way{Kind: RawTCP, Servers: 3}, 285e6)
	usual(Reads, 1, 93, 95, 94)
	usual(Reads, 2, 188)
	usual(Reads, 3, 280)
	usual(DirectReads, 3, 281)
	usual(Writes, 3, 200)
	r.Add(Way{Kind: Reads, Servers: 3, Connections: 1, Delay: time.Millisecond}, 50e6)
	r.Add(Way{Kind: Mkdir}, 16)
	r.Windows = []verdict.Window{{Name: "reads", Use: spare.Use{Idle: 0.3}}}
	return r
}

func TestReportOfAGoodRun(t *testing.T) {
	text, outcome := sample().Report()
	if outcome != verdict.GoalsMet || strings.Contains(text, "NOT MET") {
		t.Errorf("outcome %d:\n%s", outcome, text)
	}
	for _, want := range []string{
		"2026-11-26, Linux 7.2 as client, 2 CPUs for all, links of 800 Mbit/s\n",
		"reads of 4 MiB through the namespace mount, 1 server                           94.0 MB/s   (93.0 95.0 94.0)\n",
		"reads of 4 MiB through the namespace mount, 3 servers, nconnect=1, 1ms of delay 50.0 MB/s",
		"mkdir of distributed directories, one process                                    16.0 /s",
		"3 servers / (3 x plain TCP of one link)            0.982  goal >= 0.96: met\n",
		"namespace mount / direct mounts, 3 servers                                         0.996  goal >= 0.99: met\n",
		"Straight line through the reads: 93.0 MB/s for each server, R² = 1.0000\n",
	} {
		if !strings.Contains(strings.Join(strings.Fields(text), " "), strings.Join(strings.Fields(want), " ")) {
			t.Errorf("missing %q in\n%s", want, text)
		}
	}
}

func TestARunBelowItsGoalSaysSo(t *testing.T) {
	r := sample()
	r.Add(Way{Kind: DirectReads, Servers: 3, Connections: UsualConnections}, 300e6)
	if text, outcome := r.Report(); outcome != verdict.GoalsNotMet || strings.Count(text, "NOT MET") != 1 {
		t.Errorf("outcome %d:\n%s", outcome, text)
	}
}

func TestASpoiltRunIsNotJudged(t *testing.T) {
	for name, spoil := range map[string]func(*Run){
		"no idle CPU":    func(r *Run) { r.Windows[0].Use.Idle = 0 },
		"a slow link":    func(r *Run) { r.Figures[0].Rounds[0] = 80e6 },
		"links together": func(r *Run) { r.Figures[1].Rounds[0] = 200e6 },
		"a stolen CPU":   func(r *Run) { r.Windows[0].Use.Stolen = 0.3 },
		"a lot of reasons": func(r *Run) {
			for range 20 {
				r.Windows = append(r.Windows, verdict.Window{Name: "reads"})
			}
		},
	} {
		r := sample()
		spoil(r)
		text, outcome := r.Report()
		if outcome != verdict.Invalid || !strings.Contains(text, "INVALID") || strings.Contains(text, "goal") || strings.Count(text, "  - ") > 9 {
			t.Errorf("%s: outcome %d:\n%s", name, outcome, text)
		}
	}
}

func TestLine(t *testing.T) {
	slope, offset, explained := line([]float64{1, 2, 3}, []float64{3, 5, 7})
	if slope != 2 || offset != 1 || explained != 1 {
		t.Errorf("got %v, %v, %v", slope, offset, explained)
	}
	if _, _, explained := line([]float64{1, 2, 3, 4}, []float64{1, 3, 2, 4}); math.Abs(explained-0.64) > 1e-9 {
		t.Errorf("scattered points: R² = %v, want 0.64", explained)
	}
	if slope, _, _ := line([]float64{1}, []float64{1}); slope != 0 {
		t.Errorf("one point has slope %v", slope)
	}
}

func TestOnlyMeasurementsOfLinksMustHaveIdleCPUs(t *testing.T) {
	for way, want := range map[Way]bool{
		{Kind: RawTCP, Servers: 5}:                                      true,
		{Kind: Reads, Servers: 5, Connections: 16, ReadAhead: 4096}:     true,
		{Kind: Reads, Servers: 5, Connections: 1}:                       false,
		{Kind: Reads, Servers: 5, Connections: 16, Delay: time.Second}:  false,
		{Kind: RandomDirect, Servers: 5, Connections: UsualConnections}: false,
		{Kind: Mkdir}: false,
	} {
		if got := way.IsJudged(); got != want {
			t.Errorf("%s: %v, want %v", way, got, want)
		}
	}
}
