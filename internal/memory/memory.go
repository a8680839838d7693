package memory

import (
	"math"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
)

// Limit is the memory that the process may use, in bytes, by its control group; 0 if nothing limits it.
func Limit() int64 {
	for _, file := range []string{"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"} {
		text, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		// Version 1 writes a number near the largest for no limit, version 2 "max".
		if n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil && n < math.MaxInt64>>2 {
			return n
		}
	}
	return 0
}

// KeepWithin has the garbage collector keep the process below a limit in bytes, and leaves a tenth for what it does not
// count. Without a limit (0), or where GOMEMLIMIT is set, it does nothing.
func KeepWithin(limit int64) {
	if limit > 0 && os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(limit - limit/10)
	}
}
