package kernels

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// cpuPeriod is how often a limited group gets its part of a CPU. The kernel gives no less than a millisecond of it.
const cpuPeriod = 20 * time.Millisecond

// cpuGroups are cgroups, one for each server, that can be held to a part of a CPU. They are in a folder of the run's own, and go with it.
type cpuGroups struct {
	folder string
	// unified is cgroup v2.
	unified bool
	names   []string
}

// newCPUGroups makes the folder. It fails where this process may not, or where no controller is.
func newCPUGroups(t *testing.T) (*cpuGroups, error) {
	t.Helper()
	name := filepath.Base(needed(t, "HOWDAH_KERNELS_SCRATCH"))
	g := &cpuGroups{folder: filepath.Join("/sys/fs/cgroup/cpu", name)}
	if _, err := os.Stat("/sys/fs/cgroup/cgroup.controllers"); err == nil {
		g.folder, g.unified = filepath.Join("/sys/fs/cgroup", name), true
		if err := os.WriteFile("/sys/fs/cgroup/cgroup.subtree_control", []byte("+cpu"), 0); err != nil {
			return nil, err
		}
	}
	if err := os.Mkdir(g.folder, 0o755); err != nil {
		return nil, err
	}
	t.Cleanup(func() {
		if err := g.remove(); err != nil {
			t.Errorf("removing %s: %v", g.folder, err)
		}
	})
	if g.unified {
		if err := os.WriteFile(filepath.Join(g.folder, "cgroup.subtree_control"), []byte("+cpu"), 0); err != nil {
			return nil, err
		}
	}
	return g, nil
}

// remove moves all processes out, and removes the groups.
func (g *cpuGroups) remove() (all error) {
	outside := filepath.Join(filepath.Dir(g.folder), "cgroup.procs")
	for _, name := range append(g.names, "") {
		group := filepath.Join(g.folder, name)
		text, err := os.ReadFile(filepath.Join(group, "cgroup.procs"))
		all = errors.Join(all, err)
		for _, process := range strings.Fields(string(text)) {
			_ = os.WriteFile(outside, []byte(process), 0) // It may have ended.
		}
		all = errors.Join(all, os.Remove(group))
	}
	return all
}

// add puts processes into a group, with all that they start from now on.
func (g *cpuGroups) add(t *testing.T, name string, processes ...int) {
	t.Helper()
	group := filepath.Join(g.folder, name)
	if err := os.Mkdir(group, 0o755); err != nil {
		t.Fatal(err)
	}
	g.names = append(g.names, name)
	for _, process := range processes {
		if err := os.WriteFile(filepath.Join(group, "cgroup.procs"), []byte(strconv.Itoa(process)), 0); err != nil {
			t.Fatal(err)
		}
	}
}

// limit holds each group to a part of a CPU, in percent; 0 is no limit.
func (g *cpuGroups) limit(t *testing.T, percent int) {
	t.Helper()
	period, quota := cpuPeriod.Microseconds(), cpuPeriod.Microseconds()*int64(percent)/100
	for _, name := range g.names {
		files := []struct{ name, value string }{
			{"cpu.cfs_period_us", strconv.FormatInt(period, 10)}, {"cpu.cfs_quota_us", strconv.FormatInt(quota, 10)},
		}
		if percent == 0 {
			files[1].value = "-1"
		}
		if g.unified {
			files = []struct{ name, value string }{{"cpu.max", fmt.Sprintf("%d %d", quota, period)}}
			if percent == 0 {
				files[0].value = fmt.Sprintf("max %d", period)
			}
		}
		for _, file := range files {
			if err := os.WriteFile(filepath.Join(g.folder, name, file.name), []byte(file.value), 0); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// cpuSeconds is the CPU time that processes have used, with all their threads (proc_pid_stat(5), utime and stime). It has steps of 10 ms.
func cpuSeconds(t *testing.T, processes []int) (seconds float64) {
	t.Helper()
	const ticks = 100 // of a second: USER_HZ.
	for _, process := range processes {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", process))
		if err != nil {
			t.Fatal(err)
		}
		// The name may have spaces and brackets.
		fields := strings.Fields(string(text)[strings.LastIndexByte(string(text), ')')+1:])
		for _, field := range fields[11:13] {
			used, err := strconv.ParseFloat(field, 64)
			if err != nil {
				t.Fatal(err)
			}
			seconds += used / ticks
		}
	}
	return seconds
}
