package main

import (
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/howdah/howdah/test/spare"
	"github.com/howdah/howdah/test/verdict"
)

// steady reads at a rate from 100 to 200 s, and at another from then until 300 s.
func steady(rate, then float64) reader {
	r := reader{failed: "-", longest: 4}
	for at := 100.0; at <= 300; at++ {
		r.at = append(r.at, at)
		r.bytes = append(r.bytes, rate*min(at-100, 100)+then*max(at-200, 0))
	}
	return r
}

// grewWell is a run that meets its goals.
func grewWell() growth {
	return growth{
		links:   []verdict.Link{{Name: "link of node1", Rate: 5.8e6, Cap: 6e6}},
		windows: []verdict.Window{{Name: "1 data server", Use: spare.Use{Idle: 0.4}}, {Name: "while it grows", Use: spare.Use{Idle: 0.3}}},
		samples: []reader{steady(3e6, 9e6), steady(2.8e6, 8e6)},
		before:  span{120, 150}, after: span{250, 280},
		labelled: 160, serving: 175, moved: 220, directories: 8,
	}
}

func TestGrowthIsJudgedByWhatTheJobGotAndNoticed(t *testing.T) {
	text, got := growthReport(grewWell(), 1, 3, 6e6)
	if got != verdict.GoalsMet || strings.Contains(text, "NOT MET") {
		t.Errorf("verdict %d of a good run:\n%s", got, text)
	}
	for _, want := range []string{
		"the job with 1 data server                                5.8 MB/s\n",
		"the job with 3 data servers                              17.0 MB/s\n",
		"new data servers serve after 15 s; 8 directories moved in 45 s; events MoveDelayed: 0\n",
		"every 10 s, MB/s: 5.8 5.8 5.8 5.8 5.8 5.8 5.8 5.8 17.0",
		"after / (3 x cap)                                       0.944  goal >= 0.85: met",
		"after / before                                          2.931\n",
		"longest wait for an open, a read or a close, s            4.0  goal <= 35: met",
		"while it grows                          30.0 % idle",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("missing %q in\n%s", want, text)
		}
	}
	for name, tc := range map[string]struct {
		spoil func(*growth)
		want  string
	}{
		"too slow": {func(g *growth) { g.samples[1] = steady(2.8e6, 6e6) }, "after / (3 x cap)                                       0.833  goal >= 0.85: NOT MET"},
		"an error": {func(g *growth) { g.samples[1].errors, g.samples[1].failed = 2, "open of /m/1/0: Stale file handle" }, "goal 0: NOT MET"},
		"its text": {func(g *growth) { g.samples[1].errors, g.samples[1].failed = 2, "open of /m/1/0: Stale file handle" }, "  - open of /m/1/0: Stale file handle\n"},
		"a wait":   {func(g *growth) { g.samples[0].longest = 36 }, "36.0  goal <= 35: NOT MET"},
		"a remount": {
			func(g *growth) { g.wrong = []string{"the share's mount was another"} },
			"  - the share's mount was another\n",
		},
		"a pod": {func(g *growth) { g.others = []string{"default/job on node4"} }, "  - default/job on node4\n"},
	} {
		t.Run(name, func(t *testing.T) {
			bad := grewWell()
			tc.spoil(&bad)
			text, got := growthReport(bad, 1, 3, 6e6)
			if got != verdict.GoalsNotMet || !strings.Contains(text, tc.want) {
				t.Errorf("verdict %d, want %q in:\n%s", got, tc.want, text)
			}
		})
	}
}

func TestGrowthOnABusyMachineIsNotJudged(t *testing.T) {
	for name, disturb := range map[string]func(*growth){
		"no CPU to spare": func(g *growth) { g.windows[1].Use.Idle = 0.01 },
		"stolen":          func(g *growth) { g.windows[0].Use.Stolen = 0.2 },
		"a slow link":     func(g *growth) { g.links[0].Rate = 3e6 },
		"a slow link, so that nothing was measured": func(g *growth) { *g = growth{links: []verdict.Link{{Name: "link", Rate: 3e6, Cap: 6e6}}} },
	} {
		t.Run(name, func(t *testing.T) {
			bad := grewWell()
			bad.samples[0].errors = 1
			disturb(&bad)
			text, got := growthReport(bad, 1, 3, 6e6)
			if got != verdict.Invalid || strings.Contains(text, "goal") || strings.Contains(text, "NaN") || !strings.Contains(text, "INVALID") {
				t.Errorf("verdict %d:\n%s", got, text)
			}
		})
	}
}

func TestReadersAreRead(t *testing.T) {
	readers, err := parseReaders("==> /tmp/readers/0 <==\n10.5 0\n12.5 4000\n14.5 4000\nend 0 1.25 11 -\n\n" +
		"==> /tmp/readers/1 <==\n10.5 100\nend 2 3.5 12.5 open of /m/1/0: Stale file handle\n")
	if err != nil || len(readers) != 2 {
		t.Fatalf("%v, %v", readers, err)
	}
	if r := readers[1]; r.errors != 2 || r.longest != 3.5 || r.when != 12.5 || r.failed != "open of /m/1/0: Stale file handle" {
		t.Errorf("%+v", r)
	}
	for when, want := range map[float64]float64{0: 0, 10.5: 0, 11.5: 2000, 12.5: 4000, 13: 4000, 20: 4000} {
		if got := readers[0].until(when); math.Abs(got-want) > 1e-6 {
			t.Errorf("at %v it had read %v, want %v", when, got, want)
		}
	}
	if got := rateOf(readers, span{10.5, 12.5}); got != 2000 {
		t.Errorf("rate %v", got)
	}
	for _, text := range []string{"==> /r/0 <==\n10 0\n", "==> /r/0 <==\nFatal\nend 0 1 1 -\n", "==> /r/0 <==\nend 0 1 1 -\n12 1\n"} {
		if readers, err := parseReaders(text); err == nil {
			t.Errorf("%q: %+v", text, readers)
		}
	}
}

// TestTheReadersOfTheJob runs what runs in the client, on files here.
func TestTheReadersOfTheJob(t *testing.T) {
	perl, err := exec.LookPath("perl")
	if err != nil {
		t.Fatal("no perl, which Debian always has (perl-base), and the client's image as well")
	}
	dir := t.TempDir()
	for _, name := range []string{"a", "b", "out"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	// Those of b are too short.
	for file, size := range map[string]int{"a/0": 300_000, "a/1": 300_000, "b/0": 299_000, "b/1": 299_000} {
		if err := os.WriteFile(filepath.Join(dir, file), make([]byte, size), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	// Direct I/O of other file systems wants aligned memory, which NFS does not.
	script := strings.ReplaceAll(readersScript, " | O_DIRECT", "")
	command := exec.Command(perl, "-e", script, "2", "2", "300000", filepath.Join(dir, "out"), filepath.Join(dir, "a"), filepath.Join(dir, "b"))
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	logs := filepath.Join(dir, "out", "*")
	// A reader that has begun a file comes to its end.
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if output, err := exec.Command("sh", "-c", "grep -l ' [1-9]' "+logs).Output(); err == nil && strings.Count(string(output), "\n") == 4 {
			break
		}
	}
	if err := command.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := command.Wait(); err != nil {
		t.Fatal(err)
	}
	output, err := exec.Command("sh", "-c", "tail -n +1 "+logs).Output()
	if err != nil {
		t.Fatal(err)
	}
	readers, err := parseReaders(string(output))
	if err != nil || len(readers) != 4 {
		t.Fatalf("%v in %s", err, output)
	}
	for i, r := range readers {
		if r.until(math.Inf(1)) == 0 {
			t.Errorf("reader %d read nothing: %s", i, output)
		}
		if short := i >= 2; short != (r.errors > 0) || short != strings.Contains(r.failed, " has 299000 bytes") {
			t.Errorf("reader %d: %d errors, %q", i, r.errors, r.failed)
		}
	}
}
