package hostile

import (
	"cmp"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

const (
	// envMinutes is how long make fuzz-ganesha sends new sequences, envSeed the first seed of them.
	envMinutes, envSeed = "HOWDAH_FUZZ_MINUTES", "HOWDAH_FUZZ_SEED"
	// stepsOfSeed are sent by each lane of a seed in make fuzz-ganesha, stepsInTest in make test.
	stepsOfSeed, stepsInTest = 4000, 600
)

// knownSeeds ran when something was found, or are here so that each set of lanes is among them; what else was found is an attack of
// TestAttacks.
var knownSeeds = []uint64{1, 2, 3, 4}

// lanesOf are the clients of a seed. Where none of them may change the share, it must be as before.
func lanesOf(seed uint64) []role {
	all := map[string]role{}
	for _, r := range roles {
		all[r.address] = r
	}
	switch seed % 4 {
	case 0:
		return []role{all[readWrite], all[readWrite], all[readOnly], all[guest]}
	case 1:
		return []role{all[unlisted], all[guest], all[readOnly]}
	case 2:
		return []role{all[readWrite], all[readOnly], all[unlisted]}
	default:
		return []role{all[readOnly], all[readOnly], all[guest]}
	}
}

// TestFuzz sends random sequences. A seed always gives the same decisions; what several connections do at once depends on the moment.
func TestFuzz(t *testing.T) {
	if !isInside(t) {
		return
	}
	minutes, _ := strconv.ParseFloat(os.Getenv(envMinutes), 64) // Unset is 0.
	if minutes == 0 {
		for _, seed := range knownSeeds {
			t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) { run(t, seed, stepsInTest) })
		}
		return
	}
	seed, _ := strconv.ParseUint(os.Getenv(envSeed), 10, 64) // Unset is 0.
	seed = cmp.Or(seed, uint64(time.Now().UnixMilli()))
	began, runs, steps := time.Now(), 0, int64(0)
	for ; time.Since(began).Minutes() < minutes && !t.Failed(); seed++ {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) { steps += run(t, seed, stepsOfSeed) })
		runs++
		t.Logf("FIGURE fuzzed for %s: %d seeds, %d steps", time.Since(began).Round(time.Second), runs, steps)
	}
}

// run is one seed on a server of its own. It returns the number of steps.
func run(t *testing.T, seed uint64, stepsOfLane int) int64 {
	began := time.Now()
	w := begin(t)
	starting := time.Since(began)
	before := w.contents(share)
	watched := w.watching()
	lanes := make([]*lane, 0, 4)
	changes := false
	var all sync.WaitGroup
	var steps atomic.Int64
	began = time.Now()
	for i, r := range lanesOf(seed) {
		changes = changes || r.changes
		l := newLane(w, r, seed, uint64(i))
		lanes = append(lanes, l)
		all.Go(func() { l.run(stepsOfLane, &steps) })
	}
	all.Wait()
	watched.end()
	took := time.Since(began)
	now, _, err := w.server.Memory()
	if err != nil {
		now = 0 // It has ended, which is reported below.
	}
	var silent []string
	for _, l := range lanes {
		silent = append(silent, l.silent...)
		l.end()
	}
	findings, err := w.server.Findings()
	must(t, err)
	t.Logf("FIGURE seed %d: %d steps in %s, the bystander waited for %s at most, memory %d MiB", seed, steps.Load(), took.Round(time.Millisecond), watched.longest.Round(time.Millisecond), now>>20)
	if dead := w.server.Ended(); dead != nil || findings != "" || len(silent) > 0 {
		log := w.server.Log()
		t.Errorf("seed %d: %v\nwithout an answer: %v\nsanitizers: %s\nthe end of the log: %s", seed, dead, silent, findings[:min(len(findings), 20000)], log[max(0, len(log)-2000):])
		for _, l := range lanes {
			t.Logf("the last steps of %s: %s", l.name, strings.Join(l.last, "\n  "))
		}
	}
	watched.unharmed(t, answersWithin)
	if !changes {
		w.unchanged(share, before)
	}
	began = time.Now()
	w.server.Stop()
	t.Logf("FIGURE seed %d: started in %s, stopped in %s", seed, starting.Round(time.Millisecond), time.Since(began).Round(time.Millisecond))
	w.endedWell()
	w.logFindings(len(findings))
	return steps.Load()
}
