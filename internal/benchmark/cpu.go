package benchmark

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// SpoiltPercent is the part of an accelerator's time that may be lost because its client had no CPU. With more, the run measures the
// client's node and not the share. It is half of what a run may lose in total (PassAUPercent).
const SpoiltPercent = 5.0

// starvedPercent is the percentage of free CPU below which a client is starved.
const starvedPercent = 5.0

// CPUTime is what was left of a client's CPUs since its node started.
type CPUTime struct {
	// Total is the time of the CPUs that the client may use, Left the part in which they had
	// nothing to do; in ticks.
	Total, Left uint64
	// Periods counts the periods of the pod's limit of CPU, if it has one; Throttled those in which it
	// was used up and the pod stood still.
	Periods, Throttled uint64
}

// ParseCPUTime reads /proc/stat (proc_stat(5)), which is about the whole node, also in a container. Only the
// CPUs that the client may use count: with pinned CPUs these are fewer.
func ParseCPUTime(stat string, usable func(cpu int) bool) (CPUTime, error) {
	var sum CPUTime
	for line := range strings.Lines(stat) {
		fields := strings.Fields(line)
		if len(fields) < 6 {
			continue
		}
		number, isCPU := strings.CutPrefix(fields[0], "cpu")
		cpu, err := strconv.Atoi(number)
		if !isCPU || err != nil || !usable(cpu) { // "cpu" without a number is the sum
			continue
		}
		// user nice system idle iowait irq softirq steal; what follows is a part of user.
		for i, field := range fields[1:min(len(fields), 9)] {
			ticks, err := strconv.ParseUint(field, 10, 48)
			if err != nil {
				return CPUTime{}, fmt.Errorf("/proc/stat: %w", err)
			}
			sum.Total += ticks
			if i == 3 || i == 4 { // a CPU that waits for I/O is free for others
				sum.Left += ticks
			}
		}
	}
	if sum.Total == 0 {
		return CPUTime{}, errors.New("/proc/stat has no CPU that this process may use")
	}
	return sum, nil
}

// ParseThrottling reads cpu.stat of the pod's control group into t; version 1 and 2 have the same words.
func (t *CPUTime) ParseThrottling(stat string) {
	for line := range strings.Lines(stat) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		number, err := strconv.ParseUint(value, 10, 64)
		if err != nil {
			continue
		}
		switch key {
		case "nr_periods":
			t.Periods = number
		case "nr_throttled":
			t.Throttled = number
		}
	}
}

// CPUUse is the use of a client's CPUs in a part of a run.
type CPUUse struct {
	// LeftPercent is the free part.
	LeftPercent float64 `json:"leftPercent"`
	// ThrottledPercent is in how many periods the pod used up its limit of CPU; 0 if it has none.
	ThrottledPercent float64 `json:"throttledPercent,omitempty"`
}

// Since is the use of the CPUs since an earlier time. If no time has passed, everything is free.
func (t CPUTime) Since(before CPUTime) CPUUse {
	use := CPUUse{LeftPercent: 100}
	if t.Total > before.Total {
		// A CPU's idle time may go backwards a little (proc_stat(5), iowait).
		left := t.Left - min(before.Left, t.Left)
		use.LeftPercent = min(percent(float64(left), float64(t.Total-before.Total)), 100)
	}
	if t.Periods > before.Periods && t.Throttled > before.Throttled {
		use.ThrottledPercent = min(percent(float64(t.Throttled-before.Throttled), float64(t.Periods-before.Periods)), 100)
	}
	return use
}

// Starved reports whether the client had to wait for CPU: its node had none free, or its limit was used up in most of the periods.
func (u CPUUse) Starved() bool {
	return u.LeftPercent < starvedPercent || u.ThrottledPercent > 50
}

func (u CPUUse) String() string {
	text := fmt.Sprintf("on average %.0f %% of its CPU was free", u.LeftPercent)
	if u.ThrottledPercent > 0 {
		text += fmt.Sprintf(", the pod's CPU limit was used up in %.0f %% of the periods", u.ThrottledPercent)
	}
	return text
}
