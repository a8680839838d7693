package spare

import (
	"testing"
	"time"
)

func TestTimesAreJudgedWhereThereIsCPUToSpare(t *testing.T) {
	const goal, factor = 5 * time.Second, 4
	for name, tc := range map[string]struct {
		took    time.Duration
		share   float64
		stolen  float64
		verdict string
		failed  bool
	}{
		"met":                      {4 * time.Second, 1, 0.1, "4s (goal 5s: met)", false},
		"met on a busy machine":    {4 * time.Second, 0.1, 0.1, "4s (goal 5s: met)", false},
		"missed within the factor": {19 * time.Second, 1, 0.1, "19s (goal 5s: NOT MET)", false},
		"missed by more":           {21 * time.Second, 0.5, 0.1, "21s (goal 5s: NOT MET)", true},
		"missed on a busy machine": {21 * time.Second, 0.22, 0.1, "21s (goal 5s: NOT JUDGED, one more process gets only 22 % of a CPU)", false},
		"missed, stolen":           {21 * time.Second, 1, 0.31, "21s (goal 5s: NOT JUDGED, other machines of the host had 31 % of the CPUs' time)", false},
		"barely missed":            {5001 * time.Millisecond, 1, 0, "5s (goal 5s: NOT MET)", false},
	} {
		t.Run(name, func(t *testing.T) {
			verdict, failed := Judge(tc.took, goal, factor, Room{tc.share, tc.stolen})
			if verdict != tc.verdict || failed != tc.failed {
				t.Errorf("got %q, %v", verdict, failed)
			}
		})
	}
}

func TestBoundsAreWiderOnABusyMachine(t *testing.T) {
	for share, want := range map[float64]float64{1: 2, 0.5: 4, 0.4: 5, 0.1: 5, 0: 5} {
		if got := Slack(share); got != want {
			t.Errorf("a share of %v gives %v, want %v", share, got, want)
		}
	}
}
