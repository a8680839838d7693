package ganeshatest

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/howdah/howdah/internal/ganesha"
)

// fixed are the options that every data server has alike.
var fixed = map[string]map[string]string{
	"NFS_CORE_PARAM": {
		"Protocols": "4", "Enable_UDP": "false", "mount_path_pseudo": "true",
		"Allow_Set_Io_Flusher_Fail": "true", "fsid_override": "true", "Enable_Metrics": "true", "Monitoring_Addr": "127.0.0.1", "Enable_Dynamic_Metrics": "true",
	},
	"NFSv4":           {"Minor_Versions": "1, 2", "Only_Numeric_Owners": "true", "Delegations": "false"},
	"EXPORT_DEFAULTS": {"Access_Type": "None", "SecType": "sys", "Protocols": "4", "Transports": "TCP"},
	"LOG":             {"Default_Log_Level": "EVENT"},
	"EXPORT":          {"Access_Type": "None", "MaxRead": "1048576", "MaxWrite": "1048576"},
	"MDCACHE":         {"Dir_Chunk": "0"},
	"CLIENT":          {"Protocols": "4"},
}

// order is that of the blocks before the exports.
var order = []string{"NFS_CORE_PARAM", "NFSv4", "EXPORT_DEFAULTS", "LOG"}

// cephOrder is that of the blocks that follow if clients are remembered in Ceph.
var cephOrder = []string{"RADOS_KV", "CEPH", "MDCACHE"}

// Parse reads a configuration back into its model. It fails on anything that the model does not say.
func Parse(text string) (ganesha.Config, error) {
	blocks, err := parseBlocks(text)
	if err != nil {
		return ganesha.Config{}, err
	}
	if len(blocks) < len(order) {
		return ganesha.Config{}, fmt.Errorf("%d blocks are less than %d", len(blocks), len(order))
	}
	var config ganesha.Config
	order, inCeph := order, len(blocks) > len(order) && blocks[len(order)].name == cephOrder[0]
	if inCeph {
		order = slices.Concat(order, cephOrder)
		config.Ceph = &ganesha.Ceph{}
		if len(blocks) < len(order) {
			return ganesha.Config{}, fmt.Errorf("%d blocks are less than %d", len(blocks), len(order))
		}
	}
	for i, name := range order {
		r := reader{block: blocks[i]}
		r.is(name)
		switch name {
		case "NFS_CORE_PARAM":
			config.Port, config.MonitoringPort = uint16(r.number("NFS_Port", 16)), uint16(r.number("Monitoring_Port", 16))
			config.Limits.Connections = uint32(r.number("RPC_Max_Connections", 32))
			config.Limits.ConnectionsPerAddress = uint32(r.number("RPC_Max_Connections_Per_Address", 32))
			config.Limits.ConnectionsPerNetwork = uint32(r.number("RPC_Max_Connections_Per_Network", 32))
			if _, set := r.block.options["Always_Admitted"]; set {
				prefix, err := netip.ParsePrefix(r.take("Always_Admitted"))
				r.keep(err)
				config.AlwaysAdmitted = prefix.Addr()
			}
		case "NFSv4":
			config.ServerScope, config.ServerOwner = r.quoted("Server_Scope"), r.quoted("Server_Owner")
			if inCeph {
				r.same("RecoveryBackend", "rados_cluster")
			} else {
				r.same("RecoveryBackend", "fs_ng")
				config.RecoveryRoot = r.quoted("RecoveryRoot")
			}
			limits := &config.Limits
			limits.Clients, limits.ClientsPerAddress = uint32(r.number("Max_Client_Ids", 32)), uint32(r.number("Max_Client_Ids_Per_Address", 32))
			limits.ClientsPerNetwork = uint32(r.number("Max_Client_Ids_Per_Network", 32))
			limits.Sessions, limits.SessionsPerClient = uint32(r.number("Max_Sessions", 32)), uint32(r.number("Max_Sessions_Per_Client", 32))
			r.same("Expired_Client_Threshold", strconv.FormatUint(uint64(limits.Clients), 10))
			r.same("Max_Alive_Time_For_Expired_Client", "2592000")
			config.LeaseSeconds, config.GraceSeconds = int32(r.number("Lease_Lifetime", 31)), int32(r.number("Grace_Period", 31))
		case "RADOS_KV":
			*config.Ceph = ganesha.Ceph{
				ConfigFile: r.quoted("ceph_conf"), RecoveryUser: r.quoted("userid"), RecoveryPool: r.quoted("pool"),
				RecoveryNamespace: r.quoted("namespace"), NodeID: r.quoted("nodeid"),
			}
		case "CEPH":
			r.same("Ceph_Conf", `"`+config.Ceph.ConfigFile+`"`)
		}
		if err := r.end(0); err != nil {
			return config, err
		}
	}
	blocks = blocks[len(order):]
	if len(blocks) > 0 && blocks[0].name == "GATE" {
		r := reader{block: blocks[0]}
		config.CountedAlone = r.prefixes("Counted_Alone")
		if err := r.end(0); err != nil {
			return config, err
		}
		blocks = blocks[1:]
	}
	for _, b := range blocks {
		export, err := parseExport(b)
		if err != nil {
			return config, err
		}
		config.Exports = append(config.Exports, export)
	}
	return config, nil
}

func parseExport(b *block) (ganesha.Export, error) {
	r := reader{block: b}
	r.is("EXPORT")
	export := ganesha.Export{ID: uint16(r.number("Export_Id", 16)), Path: r.quoted("Path"), Pseudo: r.quoted("Pseudo")}
	r.same("Filesystem_Id", fmt.Sprintf("%d.%d", ganesha.FilesystemMajor, export.ID))
	if _, awaited := b.options["Awaited"]; awaited {
		r.same("Awaited", "true")
		r.same("Path", `"`+export.Pseudo+`"`)
		export.Path, export.Awaited = "", true
		if err := r.end(len(b.blocks)); err != nil {
			return export, err
		}
		var err error
		export.Clients, err = parseClients(b.blocks)
		return export, err
	}
	if len(b.blocks) == 0 {
		return export, fmt.Errorf("export %d has no FSAL", export.ID)
	}
	fsal := reader{block: b.blocks[0]}
	fsal.is("FSAL")
	switch name := fsal.word("Name"); name {
	case "VFS":
	case "CEPH":
		r.same("Attr_Expiration_Time", "0")
		export.CephFS = &ganesha.CephFS{FileSystem: fsal.quoted("Filesystem"), User: fsal.quoted("User_Id")}
	default:
		r.keep(fmt.Errorf("FSAL %s is not known here", name))
	}
	if err := r.end(len(b.blocks)); err != nil {
		return export, err
	}
	if err := fsal.end(0); err != nil {
		return export, err
	}
	var err error
	export.Clients, err = parseClients(b.blocks[1:])
	return export, err
}

func parseClients(blocks []*block) (clients []ganesha.Client, err error) {
	for _, child := range blocks {
		r := reader{block: child}
		r.is("CLIENT")
		client := ganesha.Client{Access: ganesha.Access(r.word("Access_Type")), Squash: ganesha.Squash(r.word("Squash"))}
		reserved, err := strconv.ParseBool(r.word("PrivilegedPort"))
		r.keep(err)
		client.ReservedPorts = reserved
		client.Addresses = r.prefixes("Clients")
		if err := r.end(0); err != nil {
			return clients, err
		}
		clients = append(clients, client)
	}
	return clients, nil
}

// reader takes options out of a block; the first fault stays.
type reader struct {
	block *block
	taken []string
	fault error
}

func (r *reader) keep(err error) {
	if r.fault == nil && err != nil {
		r.fault = fmt.Errorf("block %s: %w", r.block.name, err)
	}
}

// is checks the block's name and its fixed options.
func (r *reader) is(name string) {
	if r.block.name != name {
		r.keep(fmt.Errorf("is not %s", name))
	}
	for option, value := range fixed[name] {
		r.same(option, value)
	}
}

func (r *reader) take(option string) string {
	value, found := r.block.options[option]
	if !found {
		r.keep(fmt.Errorf("has no %s", option))
	}
	r.taken = append(r.taken, option)
	return value
}

func (r *reader) same(option, want string) {
	if value := r.take(option); value != want {
		r.keep(fmt.Errorf("%s is %s, not %s", option, value, want))
	}
}

func (r *reader) word(option string) string {
	value := r.take(option)
	if strings.ContainsAny(value, `" ,`) {
		r.keep(fmt.Errorf("%s is no single word: %s", option, value))
	}
	return value
}

func (r *reader) quoted(option string) string {
	value := r.take(option)
	if len(value) < 2 || value[0] != '"' || value[len(value)-1] != '"' || strings.Count(value, `"`) != 2 {
		r.keep(fmt.Errorf("%s is no quoted string: %s", option, value))
		return ""
	}
	return value[1 : len(value)-1]
}

func (r *reader) number(option string, bits int) uint64 {
	value, err := strconv.ParseUint(r.take(option), 10, bits)
	r.keep(err)
	return value
}

func (r *reader) prefixes(option string) (found []netip.Prefix) {
	for text := range strings.SplitSeq(r.take(option), ", ") {
		prefix, err := netip.ParsePrefix(text)
		r.keep(err)
		found = append(found, prefix)
	}
	return found
}

// end fails if something went wrong or something was not taken.
func (r *reader) end(blocks int) error {
	for option := range r.block.options {
		if !slices.Contains(r.taken, option) {
			r.keep(fmt.Errorf("has %s, which the model does not", option))
		}
	}
	if len(r.block.blocks) != blocks {
		r.keep(fmt.Errorf("has %d blocks, not %d", len(r.block.blocks), blocks))
	}
	return r.fault
}
