package supervisor

import (
	"bytes"
	"context"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/howdah/howdah/internal/child"
)

// ReapOrphans waits for orphaned processes until the context ends. Process 1 of a container inherits them, and each would stay a zombie. It does
// nothing if this is not process 1. It leaves processes to those who wait for them (package child).
func ReapOrphans(ctx context.Context) {
	if os.Getpid() != 1 {
		return
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGCHLD)
	defer signal.Stop(signals)
	for {
		select {
		case <-ctx.Done():
			return
		case <-signals:
		}
		for _, pid := range zombies() {
			// A wait for any child would take ganesha's exit from its supervisor.
			if !child.IsAwaited(pid) {
				_, _ = syscall.Wait4(pid, nil, syscall.WNOHANG, nil)
			}
		}
	}
}

// zombies are the dead children of this process.
func zombies() []int {
	var found []int
	paths, _ := filepath.Glob("/proc/[0-9]*/stat") // The pattern is well-formed.
	parent := strconv.Itoa(os.Getpid())
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // It has ended meanwhile.
		}
		// "pid (name) state parent ...": the name may have any character, so look behind its last parenthesis.
		fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
		if len(fields) < 2 || string(fields[0]) != "Z" || string(fields[1]) != parent {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path))); err == nil {
			found = append(found, pid)
		}
	}
	return found
}
