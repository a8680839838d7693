package engine

import (
	"log/slog"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/howdah/howdah/internal/benchmark"
)

// cpuWindow is the length of the windows for which the client is starved or not.
const cpuWindow = time.Second

// cpuWatch records when this client was starved of CPU.
type cpuWatch struct {
	read  func() (benchmark.CPUTime, error)
	first benchmark.CPUTime
	last  benchmark.CPUTime
	at    time.Time

	starved []span
	end     chan struct{}
	ended   chan struct{}
}

// span is a part of a run.
type span struct{ from, to time.Time }

// watchCPU starts a watch; nil if the use of the CPU can't be read.
func watchCPU(read func() (benchmark.CPUTime, error), log *slog.Logger) *cpuWatch {
	if read == nil {
		read = readCPUTime
	}
	first, err := read()
	if err != nil {
		log.Warn("can't read whether this client has enough CPU", "error", err)
		return nil
	}
	w := &cpuWatch{read: read, first: first, last: first, at: time.Now(), end: make(chan struct{}), ended: make(chan struct{})}
	go w.watch()
	return w
}

func (w *cpuWatch) watch() {
	defer close(w.ended)
	ticker := time.NewTicker(cpuWindow)
	defer ticker.Stop()
	for {
		select {
		case <-w.end:
			w.look()
			return
		case <-ticker.C:
			w.look()
		}
	}
}

// look ends a window. One that can't be read becomes a part of the next.
func (w *cpuWatch) look() {
	now, err := w.read()
	if err != nil {
		return
	}
	to := time.Now()
	if now.Since(w.last).Starved() {
		w.starved = append(w.starved, span{w.at, to})
	}
	w.last, w.at = now, to
}

// stop ends the watch. It returns the use of the CPUs in total, nil if that is not known, and the times in which the client was starved.
func (w *cpuWatch) stop() (*benchmark.CPUUse, []span) {
	if w == nil {
		return nil, nil
	}
	close(w.end)
	<-w.ended
	use := w.last.Since(w.first)
	return &use, w.starved
}

// overlaps is for how long each of the waits coincided with starved spans; both are in order, and
// spans of one of them do not overlap.
func overlaps(waits, starved []span) []time.Duration {
	times := make([]time.Duration, len(waits))
	for i, wait := range waits {
		for len(starved) > 0 && !starved[0].to.After(wait.from) {
			starved = starved[1:]
		}
		for _, s := range starved {
			if !s.from.Before(wait.to) {
				break
			}
			from, to := wait.from, wait.to
			if s.from.After(from) {
				from = s.from
			}
			if s.to.Before(to) {
				to = s.to
			}
			times[i] += to.Sub(from)
		}
	}
	return times
}

// lost is the time that this client lost for lack of CPU, in the first step of an epoch and in all others: the time that its accelerators
// waited for batches while it was starved, and the time that computations ended late. In each step the accelerator that lost most counts,
// because the others wait for it.
func lost(epochs []measuredEpoch, starved []span) (first, others time.Duration) {
	var most []time.Duration
	for _, e := range epochs {
		for step, waited := range overlaps(e.waits, starved) {
			if step == len(most) {
				most = append(most, 0)
			}
			most[step] = max(most[step], waited+e.late[step])
		}
	}
	for step, d := range most {
		if step == 0 {
			first = d
		} else {
			others += d
		}
	}
	return first, others
}

// readCPUTime reads the use of the CPUs of this process's node, and of its pod's limit.
func readCPUTime() (benchmark.CPUTime, error) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return benchmark.CPUTime{}, err
	}
	usable := func(int) bool { return true }
	var set unix.CPUSet
	if unix.SchedGetaffinity(0, &set) == nil {
		usable = set.IsSet
	}
	now, err := benchmark.ParseCPUTime(string(text), usable)
	// In a pod these are the pod's own; version 2, and version 1. Without a limit the periods are 0.
	for _, path := range []string{"/sys/fs/cgroup/cpu.stat", "/sys/fs/cgroup/cpu/cpu.stat"} {
		if text, err := os.ReadFile(path); err == nil {
			now.ParseThrottling(string(text))
			break
		}
	}
	return now, err
}
