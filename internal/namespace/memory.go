package namespace

import (
	"math"
	"os"
	"runtime/debug"
	"strconv"
	"strings"

	"github.com/howdah/howdah/internal/nfs4/rpc"
	"github.com/howdah/howdah/internal/nfs4/session"
)

const (
	// unlimitedMemory is what limits are made for where the pod has none.
	unlimitedMemory = 512 << 20
	// connectionBytes is what a connection costs while it is idle, with its share of the garbage collector's slack:
	// measured by make bench-hostile with 5,000 of them.
	connectionBytes = 16 << 10
	// clientBytes is what a client with its session costs, without replies that are kept for it.
	clientBytes = 4 << 10
	// mostConnections is what is never of use to one server.
	mostConnections = 1 << 15
)

// memoryLimit is the memory that the process may use, in bytes; 0 if nothing limits it.
func memoryLimit() int64 {
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

// garbagePercent is how much garbage there may be beside what is in use. Most of that is the tree, which does not
// change, so looking through it a little more often costs less than the memory would.
const garbagePercent = 50

// keepWithin has the garbage collector keep the process below its limit, and leaves a tenth for what it does not count.
func keepWithin(memory int64) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(garbagePercent)
	}
	if memory > 0 && os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(memory - memory/10)
	}
}

// limitsFor fills in the limits that are not given, for a process with so much memory. A quarter of it is for clients,
// in equal parts for connections, client IDs, requests and replies, with what is kept of them for retries; the rest
// is for the tree and the caches of the API's objects.
func limitsFor(memory int64, calls *rpc.Limits, sessions *session.Limits) {
	if memory <= 0 {
		memory = unlimitedMemory
	}
	part := int(memory / 16)
	setDefault(&calls.Connections, min(part*2/connectionBytes, mostConnections))
	setDefault(&calls.Requests, max(64, min(part/(32<<10), 1024)))
	setDefault(&calls.BufferBytes, part/4) // Clients send nothing large to a server of directories.
	setDefault(&calls.ReplyBytes, part/2)
	setDefault(&sessions.Clients, part/2/clientBytes)
	setDefault(&sessions.Sessions, part/2/clientBytes)
	setDefault(&sessions.CachedBytes, part/2)
}
