package namespace

import (
	"os"
	"runtime/debug"

	"github.com/howdah/howdah/internal/memory"
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

// garbagePercent is how much garbage there may be beside what is in use. Most of that is the tree, which does not
// change, so looking through it a little more often costs less than the memory would.
const garbagePercent = 50

// keepWithin has the garbage collector keep the process below its limit.
func keepWithin(limit int64) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(garbagePercent)
	}
	memory.KeepWithin(limit)
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
