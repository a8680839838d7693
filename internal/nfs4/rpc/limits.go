package rpc

import "time"

// Limits is what clients may make the server hold. The zero value of a field means its default.
type Limits struct {
	// MessageBytes is the size of the largest request, with the RPC header. Default 256 KiB.
	// A client that sends more is disconnected.
	MessageBytes int
	// Connections in total; default 4096. A connection above it is closed at once.
	Connections int
	// ConnectionsPerAddress is for one client address; default 1024: 64 mounts with
	// nconnect=16 behind one NAT.
	ConnectionsPerAddress int
	// RequestsPerConnection in flight; default 64. Reading pauses at it.
	RequestsPerConnection int
	// Requests in flight on all connections; default 1024. Reading pauses at it.
	Requests int
	// BufferBytes is for requests beyond their first 4 KiB, on all connections; default 64 MiB.
	// A client whose request doesn't fit is disconnected, and will try again.
	BufferBytes int
	// Idle is how long a connection may be silent; default 15 min (the Linux client closes
	// its own after 5 min).
	Idle time.Duration
	// Receive is how long a request may take from its first byte to its last; default 30 s.
	Receive time.Duration
	// Write is how long the client may take to accept a reply; default 30 s.
	Write time.Duration
	// Drain is how long requests in flight may take to end at shutdown; default 2 s.
	Drain time.Duration
}

func (l Limits) withDefaults() Limits {
	setDefault(&l.MessageBytes, 256<<10)
	setDefault(&l.Connections, 4096)
	setDefault(&l.ConnectionsPerAddress, 1024)
	setDefault(&l.RequestsPerConnection, 64)
	setDefault(&l.Requests, 1024)
	setDefault(&l.BufferBytes, 64<<20)
	setDefault(&l.Idle, 15*time.Minute)
	setDefault(&l.Receive, 30*time.Second)
	setDefault(&l.Write, 30*time.Second)
	setDefault(&l.Drain, 2*time.Second)
	return l
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}
