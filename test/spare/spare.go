// Package spare tells how much of this machine's CPU is free. Benchmarks and the end-to-end suite ask it before they
// judge a figure: on a machine that has other things to do, a goal that was missed says nothing.
package spare

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Times are what all CPUs together did since the machine started.
type Times struct{ idle, stolen, total uint64 }

// Now reads them.
func Now() (Times, error) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return Times{}, err
	}
	return parse(string(text))
}

// parse takes the first line of /proc/stat (proc_stat(5)): user nice system idle iowait irq softirq steal; what
// follows is counted in user and nice already.
func parse(text string) (Times, error) {
	line, _, _ := strings.Cut(text, "\n")
	fields := strings.Fields(line)
	if len(fields) < 9 || fields[0] != "cpu" {
		return Times{}, fmt.Errorf("/proc/stat begins with %q", line)
	}
	var t Times
	for i, field := range fields[1:9] {
		n, err := strconv.ParseUint(field, 10, 64)
		if err != nil {
			return Times{}, fmt.Errorf("/proc/stat: %w", err)
		}
		t.total += n
		switch i {
		case 3, 4:
			t.idle += n
		case 7:
			t.stolen += n
		}
	}
	return t, nil
}

// Use is what became of the CPU in a while, in fractions of all CPUs.
type Use struct {
	Idle float64
	// Stolen is what the hypervisor gave to other machines.
	Stolen float64
}

// Since is the use since an earlier moment.
func (t Times) Since(before Times) Use {
	total := float64(t.total - before.total)
	if total == 0 {
		return Use{}
	}
	return Use{Idle: float64(t.idle-before.idle) / total, Stolen: float64(t.stolen-before.stolen) / total}
}

// Share tries for a while how much of a CPU one more process gets: nearly 1 if a CPU is free,
// 2/9 beside eight endless loops on two CPUs.
func Share(while time.Duration) (float64, error) {
	// The thread's own time is compared with the wall's.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before, err := threadTime()
	if err != nil {
		return 0, err
	}
	began := time.Now()
	for time.Since(began) < while {
		// Nothing: it is to use the CPU.
	}
	wall := time.Since(began)
	after, err := threadTime()
	return min(float64(after-before)/float64(wall), 1), err
}

func threadTime() (time.Duration, error) {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_THREAD, &usage); err != nil {
		return 0, errors.Join(errors.New("the thread's CPU time"), err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano()), nil
}
