package lab

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/howdah/howdah/hack/lab/internal/plan"
	"github.com/howdah/howdah/hack/lab/internal/sys"
)

// List names the instances that exist.
func List() []string {
	files, _ := filepath.Glob(filepath.Join(StateDir, "*", "lab.json"))
	var names []string
	for _, file := range files {
		names = append(names, filepath.Base(filepath.Dir(file)))
	}
	return names
}

// UsesBase reports whether any instance starts its nodes from the base disk.
func UsesBase(disk string) bool {
	for _, name := range List() {
		l, err := Open(name, nil)
		if err != nil || l.rec.Base == disk {
			return true // A record that can't be read may name it.
		}
	}
	return false
}

// Status writes what runs and what it takes.
func (l *Lab) Status(w io.Writer) error {
	if !l.Exists() {
		return fmt.Errorf("%w: %s", plan.ErrNoLab, l.Name)
	}
	fmt.Fprintf(w, "lab %s  complete: %t  state: %s  API: https://127.0.0.1:%d\n", l.Name, l.rec.Complete, l.Dir, l.rec.Port)
	table := l.table()
	total := 0
	for _, name := range append(l.plane().Programs(), forwarder) {
		total += printProcess(w, table, name, "")
	}
	ready := l.readyNodes()
	for _, node := range l.rec.Settings.Machines() {
		note := "not ready"
		switch {
		case !node.IsNode():
			note = "outside the cluster"
		case ready[node.Name]:
			note = "Ready"
		}
		if node.CapMbit > 0 {
			note += fmt.Sprintf(", capped at %d Mbit/s", node.CapMbit)
		}
		total += printProcess(w, table, node.Name, strings.Join(node.IPs, " ")+"  "+note)
	}
	fmt.Fprintf(w, "memory in all: %d MB\n", total)
	return nil
}

func printProcess(w io.Writer, table sys.Table, name, note string) int {
	pid := table.PID(name)
	if pid == 0 {
		fmt.Fprintf(w, "  %-24s stopped  %s\n", name, note)
		return 0
	}
	memory := resident(pid)
	fmt.Fprintf(w, "  %-24s pid %-7d %5d MB  %s\n", name, pid, memory, note)
	return memory
}

func (l *Lab) readyNodes() map[string]bool {
	ready := map[string]bool{}
	client, err := l.plane().Client()
	if err != nil {
		return ready
	}
	names, _ := client.ReadyNodes() // None are ready as far as anybody can tell.
	for _, name := range names {
		ready[name] = true
	}
	return ready
}

// resident is the memory of a process in MB. A node's guest memory is a file in
// shared memory, and counts for as much as the guest has touched.
func resident(pid int) int {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	for _, line := range strings.Split(string(data), "\n") {
		var kb int
		if n, _ := fmt.Sscanf(line, "VmRSS: %d kB", &kb); n == 1 {
			return kb / 1024
		}
	}
	return 0
}
