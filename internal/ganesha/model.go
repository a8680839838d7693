package ganesha

import "net/netip"

// Config is what a data server's ganesha.conf says. Everything that is the same
// for every data server is not in the model; Render adds it.
type Config struct {
	// Port is the TCP port of NFS; 0 means 2049.
	Port uint16
	// MonitoringPort is the TCP port of ganesha's Prometheus exporter; 0 means 9587.
	MonitoringPort uint16

	// ServerScope and ServerOwner are what EXCHANGE_ID answers (RFC 8881 section
	// 2.10.4). Two servers with the same owner and scope are one server to a client, which trunks them.
	ServerScope, ServerOwner string
	// LeaseSeconds is Lease_Lifetime, GraceSeconds is Grace_Period, at least the lease.
	LeaseSeconds, GraceSeconds int32
	// MaxConnections is RPC_Max_Connections; 0 means DefaultMaxConnections.
	MaxConnections uint32
	// RecoveryRoot is the directory below which ganesha remembers its clients across restarts.
	RecoveryRoot string

	// Exports may be in any order; they are written in the order of their ids.
	Exports []Export
}

// Export is one exported directory.
type Export struct {
	// ID is Export_Id, and with it Filesystem_Id: unique, because it is in file handles. 0 is ganesha's pseudo root.
	ID uint16
	// Path is the directory in ganesha's file system.
	Path string
	// Pseudo is the path that clients see.
	Pseudo string
	// Clients are looked at in order; the first that has the client's address
	// counts (measured in TestTheFirstClientBlockCounts of internal/instance). A client in none has no access.
	Clients []Client
}

// Client lets some addresses in.
type Client struct {
	// Addresses are prefixes; their host bits are dropped, and IPv4-mapped IPv6 ones are written
	// as IPv4, because ganesha converts a client's mapped address to IPv4 before it compares.
	Addresses []netip.Prefix
	// Access tells what the clients may do.
	Access Access
	// Squash tells which users are mapped to nobody.
	Squash Squash
	// ReservedPorts takes them from source ports below 1024 only (ganesha's PrivilegedPort).
	ReservedPorts bool
}

// Access is ganesha's Access_Type.
type Access string

// Access values.
const (
	ReadWrite Access = "RW"
	ReadOnly  Access = "RO"
	// AccessNone keeps clients out whom a later block would let in.
	AccessNone Access = "None"
)

// Squash is ganesha's Squash.
type Squash string

// Squash values.
const (
	SquashNone Squash = "No_Root_Squash"
	SquashRoot Squash = "Root_Squash"
	SquashAll  Squash = "All_Squash"
)
