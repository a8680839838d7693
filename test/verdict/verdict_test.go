package verdict

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/howdah/howdah/test/spare"
)

func TestWhatSpoilsARunIsNamed(t *testing.T) {
	for name, tc := range map[string]struct{ got, want []string }{
		"idle enough": {Window{"reads", spare.Use{Idle: 0.05, Stolen: 0.05}}.Spoilt(0.05), nil},
		"no idle CPU": {
			Window{"reads", spare.Use{Idle: 0.004}}.Spoilt(0.05),
			[]string{"reads: this machine's CPUs were idle for 0.4 % of the time; at least 5 % are needed"},
		},
		"no idle CPU is needed": {Window{"reads", spare.Use{}}.Spoilt(0), nil},
		"stolen": {
			Window{"reads", spare.Use{Idle: 0.5, Stolen: 0.2}}.Spoilt(0.05),
			[]string{"reads: the hypervisor took 20.0 % of this machine's CPUs away; at most 5 % may be"},
		},
		"a good link": {Link{"link", 18e6, 20e6}.Spoilt(0.9), nil},
		"a slow link": {
			Link{"link", 8e6, 20e6}.Spoilt(0.9),
			[]string{"link: plain TCP got 8.0 of 20.0 MB/s before anything was measured; at least 90 % are needed"},
		},
	} {
		if !slices.Equal(tc.got, tc.want) {
			t.Errorf("%s: got %q, want %q", name, tc.got, tc.want)
		}
	}
}

func TestMedian(t *testing.T) {
	for _, tc := range []struct {
		values []float64
		want   float64
	}{{nil, 0}, {[]float64{3, 1, 2}, 2}, {[]float64{4, 1, 3, 2}, 2.5}} {
		if got := Median(tc.values); got != tc.want {
			t.Errorf("the median of %v is %v, want %v", tc.values, got, tc.want)
		}
	}
}

// TestBenchmarksSayTheirExitCodes fails if a benchmark's script has another code for INVALID, or for a goal that is not met, than the others.
func TestBenchmarksSayTheirExitCodes(t *testing.T) {
	scripts, err := filepath.Glob("../../hack/bench-*.sh")
	if err != nil || len(scripts) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	judging := 0
	for _, script := range scripts {
		text, err := os.ReadFile(script)
		if err != nil {
			t.Fatal(err)
		}
		words := strings.Join(strings.Fields(strings.ReplaceAll(string(text), "#", "")), " ")
		if !strings.Contains(words, "INVALID") {
			continue
		}
		judging++
		if want := fmt.Sprintf("%d if the run is INVALID", Invalid); !strings.Contains(words, want) {
			t.Errorf("%s does not say %q", script, want)
		}
		// A goal that bench-hostile misses is a test that fails.
		if want := fmt.Sprintf(" %d if one is not", GoalsNotMet); !strings.Contains(words, want) && filepath.Base(script) != "bench-hostile.sh" {
			t.Errorf("%s does not say %q", script, want)
		}
	}
	if judging < 4 {
		t.Errorf("%d scripts judge, there were four", judging)
	}
}
