package ganesha

// Limits bound what clients may take of a data server, in all, for each address and for each network, which is an IPv6 /64 whose addresses do not
// count alone (Config.CountedAlone). All are numbers of pieces.
type Limits struct {
	// Connections are TCP connections of clients: RPC_Max_Connections.
	Connections, ConnectionsPerAddress, ConnectionsPerNetwork uint32
	// Clients are client IDs (RFC 8881 section 18.35), confirmed or not.
	Clients, ClientsPerAddress, ClientsPerNetwork uint32
	// Sessions are those of CREATE_SESSION.
	Sessions, SessionsPerClient uint32
}

const (
	// unlimitedMemory is what limits are made for where nothing limits the memory, in bytes.
	unlimitedMemory = 1 << 30
	// connectionBytes is what is reckoned for a connection. An idle one with its share of a session takes 4 KiB (TestGanesha: 200
	// clients with 16 each); the rest is for what some of them have in transit. connectionShare is the part of the memory for them all.
	connectionBytes, connectionShare = 64 << 10, 4
	// sessionBytes is what a session takes with its slots, and the client ID with it: 20,000 took 611 MiB.
	sessionBytes = 32 << 10
	// leastConnections is ganesha's own default, mostConnections what one address of a client can still make of its ports.
	leastConnections, mostConnections = 1024, 16384
	// leastPerAddress is for a node whose pods mount in networks of their own, with nconnect=16.
	leastPerAddress = 64
	// sessionsPerClient: Linux has one session for a client ID, and another for a moment when it replaces it.
	sessionsPerClient = 8
)

// LimitsFor are the limits of a data server that may use so much memory, in bytes; 0 or less means that nothing limits it. A quarter of the
// memory is for connections, an eighth for sessions: as many of them as connections, because a client has one connection at least.
func LimitsFor(memory int64) Limits {
	if memory <= 0 {
		memory = unlimitedMemory
	}
	connections := uint32(min(max(memory/connectionShare/connectionBytes, leastConnections), mostConnections))
	limits := Limits{
		Clients: connections, ClientsPerAddress: connections / 16, ClientsPerNetwork: connections / 4,
		Sessions: connections, SessionsPerClient: sessionsPerClient,
	}
	return limits.WithConnections(connections)
}

// WithConnections are the limits with as many connections as the user asks for; 0 leaves them as they are. One address may have a quarter, and
// a network half: there may be many machines in it.
func (l Limits) WithConnections(connections uint32) Limits {
	if connections > 0 {
		l.Connections = connections
		l.ConnectionsPerAddress = min(connections, max(connections/4, leastPerAddress))
		l.ConnectionsPerNetwork = min(connections, max(connections/2, leastPerAddress))
	}
	return l
}
