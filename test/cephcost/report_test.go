package main

import (
	"strings"
	"testing"

	"github.com/howdah/howdah/test/spare"
	"github.com/howdah/howdah/test/verdict"
)

// even is a run in which every way is as good as every other.
func even() figures {
	f := figures{}
	for _, way := range ways {
		for _, measure := range measures {
			f.add(way, measure, 10)
			f.add(way, measure, 20)
		}
	}
	return f
}

func quiet() []window {
	return []window{{verdict.Window{Name: "before", Use: spare.Use{Idle: 0.8}}, true}, {verdict.Window{Name: "round 1, read", Use: spare.Use{Idle: 0}}, false}}
}

func TestEveryRatioIsPrintedWithItsLimit(t *testing.T) {
	text, result := report(even(), quiet(), 2)
	if result != verdict.GoalsMet {
		t.Errorf("%v", result)
	}
	for _, want := range []string{
		"ceph-fuse, no server between                  15.0   (10.0 20.0)",
		"Howdah, 1 data server / one plain ganesha, as Rook's CephNFS\n  sequential write, MB/s                         1.00  limit >= 0.90: kept",
		"memory of the serving processes, MB            1.00  limit <= 1.50: kept",
		"Howdah, 3 data servers / ceph-fuse, no server between\n  sequential write, MB/s                         1.00\n",
		"80 % idle at the least",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

func TestALimitThatIsNotKeptIsTheVerdict(t *testing.T) {
	for measure, value := range map[string]float64{readRate: 13, createRate: 13, writeCPU: 18, memory: 23} {
		f := even()
		f[howdahOne][measure] = []float64{value}
		if text, result := report(f, quiet(), 1); result != verdict.GoalsNotMet || strings.Count(text, "NOT KEPT") != 1 {
			t.Errorf("%s of %.0f: %v", measure, value, result)
		}
	}
	f := even()
	f[howdahThree][readRate] = []float64{1} // It has none.
	if _, result := report(f, quiet(), 1); result != verdict.GoalsMet {
		t.Errorf("%v", result)
	}
}

func TestARunOnABusyMachineIsInvalid(t *testing.T) {
	for name, w := range map[string]window{
		"busy at rest": {verdict.Window{Name: "round 1, before read", Use: spare.Use{Idle: 0.3}}, true},
		"stolen":       {verdict.Window{Name: "round 1, read", Use: spare.Use{Idle: 0.3, Stolen: 0.1}}, false},
	} {
		f := even()
		f[howdahOne][readRate] = []float64{1}
		text, result := report(f, append(quiet(), w), 1)
		if result != verdict.Invalid || !strings.Contains(text, "INVALID") || strings.Contains(text, "limit >=") {
			t.Errorf("%s: %v\n%s", name, result, text)
		}
	}
}

func TestTheLabMayGoOnForAWhileAndAnotherLoadMayNot(t *testing.T) {
	for busyFor, want := range map[int]struct {
		idle  float64
		looks int
	}{0: {0.8, 1}, 3: {0.8, 4}, restTries: {0.3, restTries}} {
		looks := 0
		w, err := awaitIdle(func() (window, error) {
			looks++
			if looks <= busyFor {
				return window{verdict.Window{Name: "before read", Use: spare.Use{Idle: 0.3}}, true}, nil
			}
			return window{verdict.Window{Name: "before read", Use: spare.Use{Idle: 0.8}}, true}, nil
		})
		if err != nil || w.Use.Idle != want.idle || looks != want.looks {
			t.Errorf("busy for %d looks: %v after %d, %v", busyFor, w, looks, err)
		}
	}
}

func TestARunThatBeginsOnABusyMachineEndsThere(t *testing.T) {
	text, result := report(nil, []window{{verdict.Window{Name: "before anything was made", Use: spare.Use{Idle: 0.1}}, true}}, 2)
	if result != verdict.Invalid || strings.Contains(text, "ceph-fuse") || !strings.Contains(text, "before anything was made: this machine's CPUs were idle for 10.0 %") {
		t.Errorf("%v\n%s", result, text)
	}
}

func TestWhatWasNotMeasuredHasNoRatio(t *testing.T) {
	f := even()
	delete(f[plain], memory)
	if text, _ := report(f, quiet(), 1); !strings.Contains(text, "memory of the serving processes, MB               -\n") {
		t.Error(text)
	}
}
