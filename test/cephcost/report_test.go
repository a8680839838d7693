package main

import (
	"strings"
	"testing"

	"github.com/howdah/howdah/test/spare"
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
	return []window{{"before", true, spare.Use{Idle: 0.8}}, {"round 1, read", false, spare.Use{Idle: 0}}}
}

func TestEveryRatioIsPrintedWithItsLimit(t *testing.T) {
	text, result := report(even(), quiet(), 2)
	if result != limitsKept {
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
		if text, result := report(f, quiet(), 1); result != limitsNotKept || strings.Count(text, "NOT KEPT") != 1 {
			t.Errorf("%s of %.0f: %v", measure, value, result)
		}
	}
	f := even()
	f[howdahThree][readRate] = []float64{1} // It has none.
	if _, result := report(f, quiet(), 1); result != limitsKept {
		t.Errorf("%v", result)
	}
}

func TestARunOnABusyMachineIsInvalid(t *testing.T) {
	for name, w := range map[string]window{
		"busy at rest": {"round 1, before read", true, spare.Use{Idle: 0.3}},
		"stolen":       {"round 1, read", false, spare.Use{Idle: 0.3, Stolen: 0.1}},
	} {
		f := even()
		f[howdahOne][readRate] = []float64{1}
		text, result := report(f, append(quiet(), w), 1)
		if result != invalid || !strings.Contains(text, "INVALID") || strings.Contains(text, "limit >=") {
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
				return window{"before read", true, spare.Use{Idle: 0.3}}, nil
			}
			return window{"before read", true, spare.Use{Idle: 0.8}}, nil
		})
		if err != nil || w.use.Idle != want.idle || looks != want.looks {
			t.Errorf("busy for %d looks: %v after %d, %v", busyFor, w, looks, err)
		}
	}
}

func TestARunThatBeginsOnABusyMachineEndsThere(t *testing.T) {
	text, result := report(nil, []window{{"before anything was made", true, spare.Use{Idle: 0.1}}}, 2)
	if result != invalid || strings.Contains(text, "ceph-fuse") || !strings.Contains(text, "before anything was made: this machine's CPUs were idle for 10 %") {
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
