package rpc

import (
	"cmp"
	"time"
)

// Limits is what clients may make the server hold. The zero value of a field means its default. Every limit on
// what all clients hold together has one beside it for a single client address, so that no client can take it all.
type Limits struct {
	// MessageBytes is the size of the largest request, with the RPC header. Default 256 KiB.
	// A client that sends more is disconnected.
	MessageBytes int
	// Connections in total; default 4096. At the limit a newcomer takes the place of an idle connection of the
	// address that has the most; only an address that itself has the most is refused.
	Connections int
	// ConnectionsPerAddress is for one client address; default half of Connections.
	ConnectionsPerAddress int
	// RequestsPerConnection being executed; default 64. Reading pauses at it.
	RequestsPerConnection int
	// Requests being executed on all connections, and on those of one address; default 1024 and a quarter
	// of Requests. Reading pauses at them.
	Requests, RequestsPerAddress int
	// BufferBytes is for requests beyond their first 4 KiB, on all connections, and on those of one address;
	// default 32 MiB and a quarter of BufferBytes. A client whose request doesn't fit is disconnected, and will try again.
	BufferBytes, BufferBytesPerAddress int
	// ReplyBytes is for replies that clients have not taken yet, of all connections and of one address; default
	// 32 MiB and a quarter of ReplyBytes. Where they are used up, connections that do not read are closed.
	ReplyBytes, ReplyBytesPerAddress int
	// ReplyBytesPerConnection pauses reading until the client has read; default 256 KiB.
	ReplyBytesPerConnection int
	// Greeting is how long a new connection may take until its first request is there; default 30 s.
	Greeting time.Duration
	// Idle is how long a connection may be silent; default 15 min (the Linux client closes
	// its own after 5 min).
	Idle time.Duration
	// Receive is how long a request may take from its first byte to its last; default 30 s.
	Receive time.Duration
	// Write is how long the client may take to accept a reply; default 30 s.
	Write time.Duration
	// Stuck is how long a client may accept nothing while replies are short of memory; default 500 ms.
	Stuck time.Duration
	// Drain is how long requests in flight may take to end at shutdown; default 2 s.
	Drain time.Duration
}

func (l Limits) withDefaults() Limits {
	l.MessageBytes = cmp.Or(l.MessageBytes, 256<<10)
	l.Connections = cmp.Or(l.Connections, 4096)
	l.ConnectionsPerAddress = cmp.Or(l.ConnectionsPerAddress, (l.Connections+1)/2)
	l.RequestsPerConnection = cmp.Or(l.RequestsPerConnection, 64)
	l.Requests = cmp.Or(l.Requests, 1024)
	l.RequestsPerAddress = cmp.Or(l.RequestsPerAddress, (l.Requests+3)/4)
	l.BufferBytes = cmp.Or(l.BufferBytes, 32<<20)
	l.BufferBytesPerAddress = cmp.Or(l.BufferBytesPerAddress, l.BufferBytes/4)
	l.ReplyBytes = cmp.Or(l.ReplyBytes, 32<<20)
	l.ReplyBytesPerAddress = cmp.Or(l.ReplyBytesPerAddress, l.ReplyBytes/4)
	l.ReplyBytesPerConnection = cmp.Or(l.ReplyBytesPerConnection, 256<<10)
	l.Greeting = cmp.Or(l.Greeting, 30*time.Second)
	l.Idle = cmp.Or(l.Idle, 15*time.Minute)
	l.Receive = cmp.Or(l.Receive, 30*time.Second)
	l.Write = cmp.Or(l.Write, 30*time.Second)
	l.Stuck = cmp.Or(l.Stuck, 500*time.Millisecond)
	l.Drain = cmp.Or(l.Drain, 2*time.Second)
	return l
}
