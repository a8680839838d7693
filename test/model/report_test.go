package model

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/howdah/howdah/test/spare"
	"github.com/howdah/howdah/test/verdict"
)

// sample is a good run of three servers on links of 800 Mbit/s.
func sample() *Run {
	r := &Run{When: time.Date(2026, 11, 26, 0, 0, 0, 0, time.UTC), Kernel: "7.2", Processor: "Xeon", CPUs: 2, MachineCPUs: 2, Servers: 3, Link: 800e6}
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
	for _, by := range []Server{"", PlainGanesha, KernelServer} {
		way := Way{Kind: Creates, By: by, Servers: 1, Connections: UsualConnections}
		r.Add(way, map[Server]float64{"": 300, PlainGanesha: 200, KernelServer: 400}[by])
		way.Kind = Writes
		r.Add(way, 90e6)
		if by != KernelServer {
			r.AddCPU(way, map[Server]float64{"": 0.6, PlainGanesha: 0.5}[by])
		}
	}
	for servers, rate := range map[int]float64{1: 100, 2: 190, 3: 280} {
		r.Add(Way{Kind: Unlinks, Servers: servers, Connections: UsualConnections, Percent: 5}, rate)
	}
	two := Way{Kind: Reads, Servers: 3, Clients: 2, Connections: UsualConnections}
	r.Add(two, 270e6)
	for servers, rate := range map[int]float64{1: 94, 2: 180} {
		r.Add(Way{Kind: HotReads, Servers: servers, Clients: 2, Connections: UsualConnections}, rate*1e6)
	}
	r.Add(Way{Kind: RawTCP, Servers: 2, Clients: 2}, 190e6)
	r.AddCPU(Way{Kind: Reads, Servers: 3, Connections: UsualConnections}, 0.5)
	r.Settings = []Comparison{{Setting: "threads", Usual: "200", Other: "1024", What: "random reads", Unit: "MB/s", OfUsual: []float64{10, 11}, OfOther: []float64{12, 13}}}
	r.Miss("the %s", "weather")
	r.Miss("the weather")
	r.Windows = []verdict.Window{{Name: "reads", Use: spare.Use{Idle: 0.3}}}
	return r
}

func TestReportOfAGoodRun(t *testing.T) {
	text, outcome := sample().Report()
	if strings.Count(text, "weather") != 1 {
		t.Errorf("what is missing is to be there once:\n%s", text)
	}
	if outcome != verdict.GoalsMet || strings.Contains(text, "NOT MET") {
		t.Errorf("outcome %d:\n%s", outcome, text)
	}
	for _, want := range []string{
		"2026-11-26, Linux 7.2 as client, 2 CPUs for all (Xeon), links of 800 Mbit/s\n",
		"reads of 4 MiB through the namespace mount, 1 server                           94.0 MB/s   (93.0 95.0 94.0)\n",
		"reads of 4 MiB through the namespace mount, 3 servers, nconnect=1, 1ms of delay 50.0 MB/s",
		"mkdir of distributed directories, one process                                    16.0 /s",
		"3 servers / (3 x plain TCP of one link)            0.982  goal >= 0.96: met\n",
		"namespace mount / direct mounts, 3 servers                                         0.996  goal >= 0.99: met\n",
		"reads of 4 MiB through the namespace mount 1.3 MB/s + 93.0 MB/s x servers; farthest point 0.2 %, R² = 1.0000\n",
		"files removed, each with 5 % of a CPU 10.0 /s + 90.0 /s x servers; farthest point 0.0 %, R² = 1.0000\n",
		"files removed, 3 servers, each with 5 % of a CPU / (3 x one server) 0.933\n",
		"reads of 4 MiB through the namespace mount, 3 servers, 2 clients / (3 x plain TCP of one link) 0.947\n",
		"reads of all files of one flat directory, 2 servers, 2 clients / (2 x one server) 0.957 goal >= 0.90: met\n",
		"reads of all files of one flat directory, 1 server, 2 clients / (1 x plain TCP of one link) 0.989\n",
		"reads of all files of one flat directory, 2 servers, 2 clients / (2 x plain TCP of one link) 0.947\n",
		"plain TCP, 2 servers, 2 clients 190.0 MB/s (190.0)\n",
		"one local file system below them in place of CephFS",
		"files of 4 KiB made: one of Howdah's servers / one plain ganesha 1.500\n",
		"files of 4 KiB made: one of Howdah's servers / the kernel's server, emulated 0.750\n",
		"CPU per GB, writes of 4 MiB, with fsync: one of Howdah's servers / one plain ganesha 1.200\n",
		"On paper, 5 servers with 100 GbE: 60.8 GB/s (12.2 each), 6.1 cores of each for NFS\n",
		"threads: 1024 / 200\n random reads, MB/s 1.190 +19 %\n 200: 10 11 1024: 12 13\n",
		"Not measured: the weather\n",
	} {
		if !strings.Contains(strings.Join(strings.Fields(text), " "), strings.Join(strings.Fields(want), " ")) {
			t.Errorf("missing %q in\n%s", want, text)
		}
	}
}

func TestARunBelowItsGoalSaysSo(t *testing.T) {
	for name, tc := range map[string]struct {
		way  Way
		rate float64
	}{
		"direct mounts are faster": {Way{Kind: DirectReads, Servers: 3, Connections: UsualConnections}, 300e6},
		// As if the clients had all gone to the same data server.
		"a hot directory is no faster": {Way{Kind: HotReads, Servers: 2, Clients: 2, Connections: UsualConnections}, 8e6},
	} {
		r := sample()
		r.Add(tc.way, tc.rate)
		if text, outcome := r.Report(); outcome != verdict.GoalsNotMet || strings.Count(text, "NOT MET") != 1 {
			t.Errorf("%s: outcome %d:\n%s", name, outcome, text)
		}
	}
}

func TestOnlyARunWithAHotDirectorySpeaksOfIt(t *testing.T) {
	r := sample()
	r.Figures = slices.DeleteFunc(r.Figures, func(f Figure) bool { return f.Kind == HotReads })
	if text, _ := r.Report(); strings.Contains(text, "CephFS") || strings.Contains(text, "flat directory") {
		t.Errorf("no hot directory was measured:\n%s", text)
	}
}

func TestASpoiltRunIsNotJudged(t *testing.T) {
	for name, spoil := range map[string]func(*Run){
		"no idle CPU":      func(r *Run) { r.Windows[0].Use.Idle = 0 },
		"a slow link":      func(r *Run) { r.Figures[0].Rounds[0] = 80e6 },
		"links together":   func(r *Run) { r.Figures[1].Rounds[0] = 200e6 },
		"links of clients": func(r *Run) { r.figure(Way{Kind: RawTCP, Servers: 2, Clients: 2}).Rounds[0] = 150e6 },
		"one of two CPUs":  func(r *Run) { r.CPUs = 1 },
		"a stolen CPU":     func(r *Run) { r.Windows[0].Use.Stolen = 0.3 },
		"a lot of reasons": func(r *Run) {
			for range 20 {
				r.Windows = append(r.Windows, verdict.Window{Name: "reads"})
			}
		},
	} {
		r := sample()
		spoil(r)
		text, outcome := r.Report()
		if outcome != verdict.Invalid || !strings.Contains(text, "INVALID") || strings.Contains(text, "goal >=") || strings.Contains(text, "On paper") || strings.Count(text, "  - ") > 9 {
			t.Errorf("%s: outcome %d:\n%s", name, outcome, text)
		}
	}
}

func TestLineThroughPoints(t *testing.T) {
	if l := fit([]float64{1, 2, 3}, []float64{3, 5, 7}); l != (line{offset: 1, slope: 2, explained: 1}) {
		t.Errorf("got %+v", l)
	}
	if l := fit([]float64{1, 2, 3, 4}, []float64{1, 3, 2, 4}); math.Abs(l.explained-0.64) > 1e-9 || math.Abs(l.residual-0.9) > 1e-9 {
		t.Errorf("scattered points: %+v, want R² 0.64 and 0.9 for the farthest", l)
	}
	if l := fit([]float64{1}, []float64{1}); l.slope != 0 {
		t.Errorf("one point has slope %v", l.slope)
	}
}

func TestOnlyMeasurementsOfLinksMustHaveIdleCPUs(t *testing.T) {
	for way, want := range map[Way]bool{
		{Kind: RawTCP, Servers: 5}:                                      true,
		{Kind: RawTCP, Servers: 2, Clients: 2}:                          true,
		{Kind: HotReads, Servers: 2, Clients: 2, Connections: 16}:       true,
		{Kind: Reads, Servers: 5, Clients: 2, Connections: 16}:          false,
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

func TestAHotDirectoryIsMeasuredWithTwoServersAndMore(t *testing.T) {
	for most, want := range map[int][]int{2: {2}, 3: {2, 3}, 4: {2, 3, 4}, 5: {2, 3, 5}} {
		if got := HotServers(most); !slices.Equal(got, want) {
			t.Errorf("up to %d: %v, want %v", most, got, want)
		}
	}
}

func TestADifferenceCountsIfTheRoundsAreApart(t *testing.T) {
	for name, tc := range map[string]struct {
		c    Comparison
		want string
	}{
		"faster":         {Comparison{OfUsual: []float64{10, 10.5}, OfOther: []float64{12.3, 12.3}}, "+20 %"},
		"they overlap":   {Comparison{OfUsual: []float64{10, 13}, OfOther: []float64{12, 12}}, "no difference: +4 %, and the rounds overlap"},
		"less time":      {Comparison{Unit: Seconds, OfUsual: []float64{4, 4}, OfOther: []float64{2, 2}}, "+100 %"},
		"slower":         {Comparison{OfUsual: []float64{10, 10}, OfOther: []float64{5, 5}}, "-50 %"},
		"a single round": {Comparison{OfUsual: []float64{10}, OfOther: []float64{5}}, "one round says nothing"},
	} {
		if got := tc.c.Finding(); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}
