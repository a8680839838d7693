package ceph

import (
	"encoding/json"
	"strconv"
	"time"
)

// Target is the kind of daemon that executes a command.
type Target string

// Targets.
const (
	Monitor Target = "mon"
	Manager Target = "mgr"
)

// Command is one of Ceph's own commands.
type Command struct {
	Target Target
	// Arguments has the command's arguments, and its name as "prefix".
	Arguments map[string]any
}

func command(target Target, name string, arguments map[string]any) Command {
	all := map[string]any{"prefix": name, "format": "json"}
	for key, value := range arguments {
		all[key] = value
	}
	return Command{target, all}
}

// Volume is the subvolume group of a file system that has a FileServer's shares. Every command names both, because the
// capabilities of a provisioning account only allow Howdah's groups.
type Volume struct{ FileSystem, Group string }

func (v Volume) command(name, subvolume string, arguments map[string]any) Command {
	c := command(Manager, name, map[string]any{"vol_name": v.FileSystem, "group_name": v.Group})
	if subvolume != "" {
		c.Arguments["sub_name"] = subvolume
	}
	for key, value := range arguments {
		c.Arguments[key] = value
	}
	return c
}

// CreateGroup makes the group. An existing group stays as it is.
func (v Volume) CreateGroup() Command { return v.command("fs subvolumegroup create", "", nil) }

// Create makes a share's subvolume. Its objects are in their own RADOS namespace; otherwise a stolen key could read the objects
// of all shares past the metadata servers. It sets no quota, because Create of an existing subvolume would reset it.
func (v Volume) Create(subvolume string) Command {
	return v.command("fs subvolume create", subvolume, map[string]any{"namespace_isolated": true, "mode": "755"})
}

// Info asks for the path, the quota and the used size of a subvolume.
func (v Volume) Info(subvolume string) Command { return v.command("fs subvolume info", subvolume, nil) }

// Resize sets the quota in bytes; 0 means none. Ceph refuses a quota below the used size.
func (v Volume) Resize(subvolume string, quota int64) Command {
	size := "infinite"
	if quota > 0 {
		size = strconv.FormatInt(quota, 10)
	}
	return v.command("fs subvolume resize", subvolume, map[string]any{"new_size": size, "no_shrink": true})
}

// Authorize lets a user read and write in the subvolume and nowhere else. It makes the user if there is none. It does not
// return the key; GetUser does.
func (v Volume) Authorize(subvolume, user string) Command {
	return v.command("fs subvolume authorize", subvolume, map[string]any{"auth_id": user, "access_level": "rw"})
}

// Deauthorize removes this permission. With its last permission the user is removed.
func (v Volume) Deauthorize(subvolume, user string) Command {
	return v.command("fs subvolume deauthorize", subvolume, map[string]any{"auth_id": user})
}

// Evict ends all sessions of a user in the subvolume, on all data servers.
func (v Volume) Evict(subvolume, user string) Command {
	return v.command("fs subvolume evict", subvolume, map[string]any{"auth_id": user})
}

// Remove moves the subvolume to Ceph's trash, which Ceph empties in the background.
func (v Volume) Remove(subvolume string) Command {
	return v.command("fs subvolume rm", subvolume, nil)
}

// GetUser asks for a user's key.
func GetUser(user string) Command {
	return command(Monitor, "auth get", map[string]any{"entity": "client." + user})
}

// CreateRecoveryUser makes the user of a data server's recovery records, which may do nothing else. It names all four kinds of
// daemons, two of them with capabilities without effect: otherwise the provisioning account could choose any capability for
// these, even "allow *".
func CreateRecoveryUser(user, pool, namespace string) Command {
	return command(Monitor, "auth get-or-create", map[string]any{"entity": "client." + user, "caps": []string{
		"mon", "allow r",
		"mgr", "allow command none",
		"mds", "allow r path=/.none",
		"osd", "allow rwx pool=" + pool + " namespace=" + namespace,
	}})
}

// RemoveUser removes a user.
func RemoveUser(user string) Command {
	return command(Monitor, "auth rm", map[string]any{"entity": "client." + user})
}

// Blocklist denies a client, by its address, all access to the cluster for a time. Its sessions with all metadata servers end
// within seconds, and its watches at once.
func Blocklist(address string, duration time.Duration) Command {
	return command(Monitor, "osd blocklist", map[string]any{
		"blocklistop": "add", "addr": address,
		// A monitor only accepts a number with a fraction.
		"expire": json.RawMessage(strconv.FormatFloat(duration.Seconds(), 'f', 1, 64)),
	})
}

// Blocklisted asks for all addresses in the blocklist. ParseBlocklist reads the answer.
func Blocklisted() Command { return command(Monitor, "osd blocklist ls", nil) }

// FileSystems asks for the file systems and their pools.
func FileSystems() Command { return command(Monitor, "fs ls", nil) }

// Usage asks for the used and free space of the pools.
func Usage() Command { return command(Monitor, "df", nil) }
