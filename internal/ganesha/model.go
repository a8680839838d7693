package ganesha

import (
	"net/netip"
	"slices"
)

// Config is what a data server's ganesha.conf says. Everything that is the same
// for every data server is not in the model; Render adds it.
type Config struct {
	// Port is the TCP port of NFS; 0 means 2049.
	Port uint16
	// MonitoringPort is the TCP port of ganesha's Prometheus exporter on the loopback interface; 0 means DefaultMonitoringPort.
	MonitoringPort uint16

	// ServerScope and ServerOwner are what EXCHANGE_ID answers (RFC 8881 section
	// 2.10.4). Two servers with the same owner and scope are one server to a client, which trunks them.
	ServerScope, ServerOwner string
	// LeaseSeconds is Lease_Lifetime, GraceSeconds is Grace_Period, at least the lease.
	LeaseSeconds, GraceSeconds int32
	// Limits bound what clients may take; no Limits mean those of LimitsFor(0).
	Limits Limits
	// AlwaysAdmitted is the address that may connect while no export admits it, and that no limit for an address counts for
	// (build/patches/0300-gate.patch). Of others, those connect that an export admits.
	AlwaysAdmitted netip.Addr
	// CountedAlone are networks of IPv6 addresses that each count as a client of their own. Of all other addresses of IPv6 a /64 is one client
	// (build/patches/0350-a-network-is-one-client.patch). Those of IPv4 count alone, and are not written. A reload takes a new list.
	CountedAlone []netip.Prefix
	// RecoveryRoot is the directory below which ganesha remembers its clients across restarts. "" with Ceph, which does.
	RecoveryRoot string
	// Ceph is how ganesha reaches a Ceph cluster; nil if it needs none.
	Ceph *Ceph

	// Exports may be in any order; they are written in the order of their ids.
	Exports []Export
}

// Ceph is how ganesha reaches a Ceph cluster, and where in it its clients are remembered (RecoveryBackend rados_cluster). No key is
// in it: libraries find the users' keyrings by ConfigFile.
type Ceph struct {
	// ConfigFile is the path of ceph.conf.
	ConfigFile string
	// RecoveryUser is the cephx user, without "client.", that owns the recovery records.
	RecoveryUser string
	// RecoveryPool is the RADOS pool that has them, RecoveryNamespace this server's own namespace in it: servers that share one are
	// in grace together whenever one of them restarts.
	RecoveryPool, RecoveryNamespace string
	// NodeID is the server's name in the records, and in the sessions of its CephFS clients: unique in the Ceph cluster, or
	// one server has the other's clients blocklisted.
	NodeID string
}

// CephFS is where an export's directory is, if it is in Ceph. Each user is a client of its own, so that what a share's user
// may not reach no forged handle reaches: never give two shares one user.
type CephFS struct {
	// FileSystem is the name of the Ceph file system.
	FileSystem string
	// User is the cephx user without "client.".
	User string
}

// Export is one exported directory.
type Export struct {
	// ID is Export_Id, and with it Filesystem_Id: unique, because it is in file handles. 0 is ganesha's pseudo root.
	ID uint16
	// Path is the directory in ganesha's file system, or in CephFS.
	Path string
	// Pseudo is the path that clients see.
	Pseudo string
	// Clients are looked at in order; the first that has the client's address
	// counts (measured in TestTheFirstClientBlockCounts of internal/dataserver). A client in none has no access.
	Clients []Client
	// CephFS is set if the directory is in CephFS; nil means a file system that is mounted here.
	CephFS *CephFS
	// Awaited is true if the export is not to be made yet: nothing of it is served, and its clients wait
	// (build/patches/0438-clients-wait-for-shares.patch). It needs no Path.
	Awaited bool
}

// Served are the exports that are to be made.
func (c Config) Served() []Export {
	return slices.DeleteFunc(slices.Clone(c.Exports), func(export Export) bool { return export.Awaited })
}

// Client lets some addresses in.
type Client struct {
	// Addresses are prefixes; their host bits are dropped, and IPv4-mapped IPv6 ones are written
	// as IPv4, because ganesha converts a client's mapped address to IPv4 before it compares.
	Addresses []netip.Prefix
	// Access tells what the clients may do.
	Access Access
	// Squash tells which users are mapped to the anonymous user.
	Squash Squash
	// ReservedPorts accepts them from source ports below 1024 only (ganesha's PrivilegedPort).
	ReservedPorts bool
}

// Access is ganesha's Access_Type.
type Access string

// Access values.
const (
	ReadWrite Access = "RW"
	ReadOnly  Access = "RO"
	// AccessNone refuses clients that a later block would let in.
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
