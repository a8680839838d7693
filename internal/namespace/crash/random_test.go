package crash

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// seeds is how many random schedules are tried: HOWDAH_CRASH_SEEDS, or some that take seconds.
func seeds(t *testing.T) (first, last uint64) {
	text := os.Getenv("HOWDAH_CRASH_SEEDS")
	if text == "" {
		return 1, 1500
	}
	from, to, ok := strings.Cut(text, "-")
	first, err := strconv.ParseUint(from, 10, 64)
	if !ok {
		return 1, first
	}
	last, err2 := strconv.ParseUint(to, 10, 64)
	if err != nil || err2 != nil {
		t.Fatalf("HOWDAH_CRASH_SEEDS is %q: give a number of seeds, or the first and the last as in 7-7", text)
	}
	return first, last
}

// chaos cuts calls at random until it has cut enough.
func chaos(random *rand.Rand, most int) func(int, *process, string) mode {
	left := random.IntN(most + 1)
	return func(int, *process, string) mode {
		if left == 0 || random.IntN(8) > 0 {
			return fine
		}
		left--
		return modes[random.IntN(len(modes))]
	}
}

// requests are what clients do at the same time, on top of each other.
var requests = []request{
	{op: "mkdir", path: "p/n"},
	{op: "mkdir", path: "p/b"},
	{op: "mkdir", path: "q/n"},
	{op: "mkdir", path: "n"},
	{op: "rmdir", path: "p/a"},
	{op: "rmdir", path: "p/full"},
	{op: "rmdir", path: "q"},
	{op: "rmdir", path: "p/n"},
	{op: "rename", path: "p/full", to: "p/n"},
	{op: "rename", path: "p/full", to: "q/full"},
	{op: "rename", path: "p/a", to: "p/full"},
	{op: "rename", path: "p/full", to: "p/a"},
	{op: "rename", path: "p", to: "n"},
	{op: "rename", path: "n", to: "p"},
	{op: "rename", path: "q", to: "n"},
	{op: "rename", path: "r/x", to: "p/x"},
	{op: "rename", path: "p/n", to: "p/full"},
}

// However clients, deaths and lost answers fall together: in the end every directory of the data servers can be reached, every
// name leads to one, and no data is gone.
func TestNoScheduleLeavesDataThatCanNotBeReached(t *testing.T) {
	first, last := seeds(t)
	for seed := first; seed <= last; seed++ {
		random := rand.New(rand.NewPCG(seed, 1))
		var asked []request
		for range 1 + random.IntN(3) {
			asked = append(asked, requests[random.IntN(len(requests))])
		}
		cutting := chaos(random, 3)
		var wrong, trail []string
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, seed, tree1)
			end := w.begin()
			// Now and then the leader's check of what there is falls into it.
			time.Sleep([]time.Duration{20 * time.Second, 10*time.Minute - 10*time.Millisecond}[random.IntN(2)])
			var delays []time.Duration // Drawn before calls are cut, which draws from the same source.
			for range asked {
				delays = append(delays, time.Duration(random.IntN(20))*time.Millisecond)
			}
			w.mu.Lock()
			w.cutting, w.trail = cutting, nil
			w.lags = lagging(seed, w.processes)
			w.mu.Unlock()
			var clients sync.WaitGroup
			for i, r := range asked {
				clients.Go(func() {
					time.Sleep(delays[i])
					w.doThrough(i, r)
				})
			}
			clients.Wait()
			time.Sleep(quiet)
			wrong = append(w.faults(), lost(w.layout())...)
			end()
			trail = w.trail
		})
		if len(wrong) > 0 {
			t.Errorf("seed %d, %v: %s", seed, asked, strings.Join(wrong, "; "))
			if first == last {
				t.Log("\n" + strings.Join(trail, "\n"))
			}
		}
	}
}

// lagging lets the servers of every other schedule learn late of changes, each as late as it is.
func lagging(seed uint64, processes []*process) map[string]time.Duration {
	random, lags := rand.New(rand.NewPCG(seed, 3)), map[string]time.Duration{}
	for _, p := range processes {
		if seed%2 == 0 {
			lags[p.name] = time.Duration(random.IntN(1000)) * time.Millisecond
		}
	}
	return lags
}

// lost are contents that are not there exactly once.
func lost(left layout) []string {
	var out []string
	have := slices.Collect(maps.Values(left))
	for _, content := range []string{"data", "others"} {
		n := 0
		for _, c := range have {
			if c == content {
				n++
			}
		}
		if n != 1 {
			out = append(out, fmt.Sprintf("%q is there %d times: %v", content, n, left))
		}
	}
	return out
}
