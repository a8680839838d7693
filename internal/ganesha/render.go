package ganesha

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

const (
	defaultPort = 2049
	// DefaultMonitoringPort is beside the one at which the supervisor gives out what the exporter says.
	DefaultMonitoringPort = 9586
	// maxTransfer bounds one READ or WRITE in bytes: what Linux asks for at most. Connections that send longer requests than it
	// needs end (RECORD_MOST in build/patches/0301-incomplete-requests.patch). Ganesha's own is 64 MiB.
	maxTransfer = 1 << 20
	// maxSilentSeconds is how long a client that is silent is kept at most: 30 days.
	maxSilentSeconds = 30 * 24 * 60 * 60
	// FilesystemMajor is the first half of every Filesystem_Id; the second is the
	// Export_Id. Ganesha's pseudo file system is 152.152, so the major must not be 152.
	FilesystemMajor = 1
)

// Render writes the configuration file. The same model gives the same bytes. It
// fails, and writes nothing, if a value can't be carried safely or contradicts another.
func Render(config Config) (string, error) {
	if err := config.check(); err != nil {
		return "", fmt.Errorf("ganesha configuration: %w", err)
	}
	var w writer
	w.line("# Written by howdah; changes are overwritten.")
	w.core(config)
	w.nfsv4(config)
	w.block("EXPORT_DEFAULTS", func() {
		// Only clients that a CLIENT block names have access.
		w.word("Access_Type", "None")
		w.word("SecType", "sys")
		w.word("Protocols", "4")
		w.word("Transports", "TCP")
	})
	w.block("LOG", func() { w.word("Default_Log_Level", "EVENT") })
	if config.Ceph != nil {
		w.ceph(*config.Ceph)
	}
	w.gate(config.CountedAlone)
	exports := slices.Clone(config.Exports)
	slices.SortFunc(exports, func(a, b Export) int { return cmp.Compare(a.ID, b.ID) })
	for _, export := range exports {
		w.export(export)
	}
	return w.text.String(), nil
}

func (w *writer) core(config Config) {
	w.block("NFS_CORE_PARAM", func() {
		w.word("Protocols", "4")
		w.number("NFS_Port", uint64(cmp.Or(config.Port, defaultPort)))
		w.word("Enable_UDP", "false")
		w.word("mount_path_pseudo", "true")
		// PR_SET_IO_FLUSHER needs CAP_SYS_RESOURCE, which the container does not have.
		w.word("Allow_Set_Io_Flusher_Fail", "true")
		// Without it a Filesystem_Id is ignored, and file handles carry a device number that changes from node to node.
		w.word("fsid_override", "true")
		// When there are as many, an idle one of the address that has most gives way.
		limits := cmp.Or(config.Limits, LimitsFor(0))
		w.number("RPC_Max_Connections", uint64(limits.Connections))
		w.number("RPC_Max_Connections_Per_Address", uint64(limits.ConnectionsPerAddress))
		w.number("RPC_Max_Connections_Per_Network", uint64(limits.ConnectionsPerNetwork))
		if own := config.AlwaysAdmitted; own.IsValid() {
			w.word("Always_Admitted", netip.PrefixFrom(own, own.BitLen()).String())
		}
		w.word("Enable_Metrics", "true")
		w.word("Enable_Dynamic_Metrics", "true")
		// One thread answers one client after the other: only the supervisor is to be one.
		w.word("Monitoring_Addr", "127.0.0.1")
		w.number("Monitoring_Port", uint64(cmp.Or(config.MonitoringPort, DefaultMonitoringPort)))
	})
}

func (w *writer) nfsv4(config Config) {
	w.block("NFSv4", func() {
		w.word("Minor_Versions", "1, 2")
		w.number("Lease_Lifetime", uint64(config.LeaseSeconds))
		w.number("Grace_Period", uint64(config.GraceSeconds))
		if config.Ceph != nil {
			// Not rados_ng: that of 9.14 forgets every client when grace ends, and the second crash loses their state (measured).
			w.word("RecoveryBackend", "rados_cluster")
		} else {
			w.word("RecoveryBackend", "fs_ng")
			w.quoted("RecoveryRoot", config.RecoveryRoot)
		}
		w.word("Only_Numeric_Owners", "true")
		w.word("Delegations", "false")
		limits := cmp.Or(config.Limits, LimitsFor(0))
		w.number("Max_Client_Ids", uint64(limits.Clients))
		w.number("Max_Client_Ids_Per_Address", uint64(limits.ClientsPerAddress))
		w.number("Max_Client_Ids_Per_Network", uint64(limits.ClientsPerNetwork))
		w.number("Max_Sessions", uint64(limits.Sessions))
		w.number("Max_Sessions_Per_Client", uint64(limits.SessionsPerClient))
		// Silent clients are kept while there is room and no other client wants what they hold.
		w.number("Expired_Client_Threshold", uint64(limits.Clients))
		w.number("Max_Alive_Time_For_Expired_Client", maxSilentSeconds)
		w.quoted("Server_Scope", config.ServerScope)
		w.quoted("Server_Owner", config.ServerOwner)
	})
}

func (w *writer) ceph(ceph Ceph) {
	w.block("RADOS_KV", func() {
		w.quoted("ceph_conf", ceph.ConfigFile)
		w.quoted("userid", ceph.RecoveryUser)
		w.quoted("pool", ceph.RecoveryPool)
		w.quoted("namespace", ceph.RecoveryNamespace)
		w.quoted("nodeid", ceph.NodeID)
	})
	w.block("CEPH", func() { w.quoted("Ceph_Conf", ceph.ConfigFile) })
	// Another server may change the same directory, and libcephfs has a coherent cache of its own.
	w.block("MDCACHE", func() { w.number("Dir_Chunk", 0) })
}

// gate writes a block that a reload reads as well.
func (w *writer) gate(countedAlone []netip.Prefix) {
	var networks []string
	for _, network := range countedAlone {
		if network = canonical(network); network.Addr().Is6() {
			networks = append(networks, network.String())
		}
	}
	if len(networks) == 0 {
		return
	}
	slices.Sort(networks)
	w.block("GATE", func() { w.word("Counted_Alone", strings.Join(slices.Compact(networks), ", ")) })
}

func (w *writer) export(export Export) {
	w.block("EXPORT", func() {
		w.number("Export_Id", uint64(export.ID))
		if export.Awaited {
			w.quoted("Path", export.Pseudo) // Ganesha wants one, and does not look there.
			w.word("Awaited", "true")
		} else {
			w.quoted("Path", export.Path)
		}
		w.quoted("Pseudo", export.Pseudo)
		w.word("Filesystem_Id", fmt.Sprintf("%d.%d", FilesystemMajor, export.ID))
		w.word("Access_Type", "None")
		w.number("MaxRead", maxTransfer)
		w.number("MaxWrite", maxTransfer)
		if !export.Awaited {
			w.storage(export)
		}
		for _, client := range export.Clients {
			w.client(client)
		}
	})
}

func (w *writer) storage(export Export) {
	if export.CephFS != nil {
		w.number("Attr_Expiration_Time", 0)
	}
	w.block("FSAL", func() {
		if export.CephFS == nil {
			w.word("Name", "VFS")
			return
		}
		w.word("Name", "CEPH")
		w.quoted("Filesystem", export.CephFS.FileSystem)
		// No cmount_path, and so a libcephfs client for each user that sees nothing but Path.
		w.quoted("User_Id", export.CephFS.User)
	})
}

func (w *writer) client(client Client) {
	addresses := make([]string, 0, len(client.Addresses))
	seen := make(map[netip.Prefix]bool, len(client.Addresses))
	for _, prefix := range client.Addresses {
		// Ganesha takes no export with an address twice in a block ("Duplicate client entry found"). A rule may well have one as a
		// node's, as the gateway of the pod, and by itself.
		if prefix = canonical(prefix); !seen[prefix] {
			seen[prefix] = true
			addresses = append(addresses, prefix.String())
		}
	}
	w.block("CLIENT", func() {
		w.word("Clients", strings.Join(addresses, ", "))
		// Else ganesha takes all versions and warns for each block that it does not serve them.
		w.word("Protocols", "4")
		w.word("Access_Type", string(client.Access))
		w.word("Squash", string(client.Squash))
		w.word("PrivilegedPort", strconv.FormatBool(client.ReservedPorts))
	})
}

// writer writes blocks and options, indented.
type writer struct {
	text  strings.Builder
	depth int
}

func (w *writer) line(text string) {
	w.text.WriteString(strings.Repeat("  ", w.depth) + text + "\n")
}

func (w *writer) block(name string, body func()) {
	w.line(name + " {")
	w.depth++
	body()
	w.depth--
	w.line("}")
}

// word writes a value that ganesha wants without quotes: an enum, a list of addresses, a boolean. Never text from outside.
func (w *writer) word(option, value string) { w.line(option + " = " + value + ";") }

func (w *writer) number(option string, value uint64) { w.word(option, strconv.FormatUint(value, 10)) }

// quoted writes text that check has passed.
func (w *writer) quoted(option, value string) { w.word(option, `"`+value+`"`) }
