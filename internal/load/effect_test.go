package load

import (
	"slices"
	"strings"
	"testing"
	"time"
)

var ten = time.Date(2026, 11, 25, 10, 0, 0, 0, time.UTC)

// series is a random load: pairs of a number of seconds and the operations in each.
func series(pairs ...int) *Random {
	r := &Random{From: ten}
	for i := 0; i < len(pairs); i += 2 {
		r.PerSecond = append(r.PerSecond, slices.Repeat([]int{pairs[i+1]}, pairs[i])...)
	}
	r.PerSecond = append(r.PerSecond, 1) // The last second is not a whole one.
	return r
}

func after(seconds float64) time.Time { return ten.Add(time.Duration(seconds * float64(time.Second))) }

func TestEffectOfAnEvent(t *testing.T) {
	for name, tc := range map[string]struct {
		load *Random
		want Effect
	}{
		"nothing happens": {series(30, 100, 30, 100), Effect{Before: 100, During: 100, After: 100, Least: 100, LeastAt: after(30)}},
		"a little less is no dip that needs recovery": {
			series(30, 100, 10, 91, 20, 100), Effect{Before: 100, During: 100, After: 100, Least: 91, LeastAt: after(30), DipPercent: 9},
		},
		"served as before for 2 s, then not for 4 s": {
			series(30, 100, 2, 100, 4, 0, 20, 98), Effect{Before: 100, During: 0, After: 98, Least: 0, LeastAt: after(32), DipPercent: 100, RecoverySeconds: 5.5},
		},
		"it comes back slowly": {
			series(30, 100, 2, 0, 5, 50, 20, 95), Effect{Before: 100, During: 50, After: 95, Least: 0, LeastAt: after(30), DipPercent: 100, RecoverySeconds: 6.5},
		},
		"one good second between bad ones is no recovery": {
			series(30, 100, 3, 0, 1, 100, 3, 0, 20, 100), Effect{Before: 100, During: 0, After: 100, Least: 0, LeastAt: after(30), DipPercent: 100, RecoverySeconds: 6.5},
		},
		"it stays low": {
			series(30, 100, 30, 50), Effect{Before: 100, During: 50, Least: 50, LeastAt: after(30), DipPercent: 50, RecoverySeconds: -1},
		},
		"the end comes too soon": {
			series(30, 100, 3, 0, 2, 100), Effect{Before: 100, During: 0, Least: 0, LeastAt: after(30), DipPercent: 100, RecoverySeconds: -1},
		},
		"single seconds before do not count": {
			series(10, 100, 1, 0, 19, 100, 3, 20, 9, 100), Effect{Before: 100, During: 20, After: 100, Least: 20, LeastAt: after(30), DipPercent: 80, RecoverySeconds: 2.5},
		},
		"a low second much later has another cause": {
			series(30, 100, 3, 60, 117, 100, 5, 0, 60, 100), Effect{Before: 100, During: 60, After: 100, Least: 60, LeastAt: after(30), DipPercent: 40, RecoverySeconds: 2.5},
		},
		"nothing was done before": {series(30, 0, 30, 100), Effect{During: 100, After: 100, Least: 100, LeastAt: after(30)}},
	} {
		tc.want.At = after(30.5)
		if got := tc.load.effectsOf([]time.Time{after(30.5)}); len(got) != 1 || got[0] != tc.want {
			t.Errorf("%s: got %+v, want %+v", name, got, tc.want)
		}
	}
}

func TestEffectsOfSeveralEvents(t *testing.T) {
	load := series(30, 100, 3, 0, 17, 80, 2, 40, 20, 80)
	got := load.effectsOf([]time.Time{after(50), after(30)})
	if len(got) != 2 || got[0].RecoverySeconds >= 0 || got[1].Before != 80 || got[1].Least != 40 || got[1].RecoverySeconds != 2 {
		t.Errorf("got %+v", got)
	}
	for _, outside := range []float64{-5, 0, 100} {
		if got := load.effectsOf([]time.Time{after(outside)}); len(got) != 0 {
			t.Errorf("an event after %v s has the effect %+v", outside, got)
		}
	}
}

func TestDirectoriesTogether(t *testing.T) {
	one, two := series(10, 100, 2, 0, 10, 100), series(12, 50)
	two.From = after(1.9) // Its first second counts for the third.
	got := Together(one, nil, two)
	if want := append(slices.Repeat([]int{150}, 8), 50, 50, 150, 150, 101); !got.From.Equal(two.From) || !slices.Equal(got.PerSecond, want) {
		t.Errorf("got %v from %s, want %v", got.PerSecond, got.From, want)
	}
	if Together() != nil || Together(nil) != nil {
		t.Error("nothing together is something")
	}
}

func TestTheResultHasTheEffects(t *testing.T) {
	result := Result{Run: "r", Directories: []Directory{
		{Path: "/a", Random: series(30, 100, 2, 0, 20, 100)}, {Path: "/b", Random: series(52, 100)}, {Path: "/c"},
	}}
	if got := result.WithMarks(nil); got.Together != nil || got.Directories[0].Random.Effects != nil {
		t.Errorf("without an event: %+v", got)
	}
	got := result.WithMarks([]time.Time{after(30)})
	if result.Directories[0].Random.Effects != nil {
		t.Error("the given result was changed")
	}
	text := got.Text()
	for _, want := range []string{
		"/a: event at 10:00:30.000: 100 operations per second before, lowest 0 at 10:00:30.000: a dip of 100 %; back above 90 % after 2.0 s, median 0 until then and 100 afterwards",
		"/b: event at 10:00:30.000: 100 operations per second before, lowest 100 at 10:00:30.000: a dip of 0 %; never below 90 %",
		"all directories: event at 10:00:30.000: 200 operations per second before, lowest 100 at 10:00:30.000: a dip of 50 %; back above 90 % after 2.0 s",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
	got = Result{Directories: []Directory{{Path: "/a", Random: series(30, 100, 20, 10)}}}.WithMarks([]time.Time{after(30)})
	if text := got.Text(); !strings.Contains(text, "; not back above 90 %") || got.Together != nil {
		t.Errorf("got\n%s", text)
	}
	got = Result{Directories: []Directory{{Path: "/a", Random: series(40, 0, 20, 10)}}}.WithMarks([]time.Time{after(35)})
	if text := got.Text(); !strings.Contains(text, "/a: event at 10:00:35.000: nothing was done in the half minute before it") {
		t.Errorf("got\n%s", text)
	}
}
