package ceph

import (
	"encoding/json"
	"strconv"
	"time"
)

// Target is who carries out a command.
type Target string

// Targets.
const (
	Monitor Target = "mon"
	Manager Target = "mgr"
)

// Command is one of Ceph's own commands.
type Command struct {
	Target Target
	// Arguments are the command's, "prefix" is its name.
	Arguments map[string]any
}

func command(target Target, name string, arguments map[string]any) Command {
	all := map[string]any{"prefix": name, "format": "json"}
	for key, value := range arguments {
		all[key] = value
	}
	return Command{target, all}
}

// Volume is where the shares of a FileServer are: a subvolume group of a file system. Every command names both, because the caps
// of a provisioning account let it into groups of Howdah's only.
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

// CreateGroup makes the group; one that exists stays.
func (v Volume) CreateGroup() Command { return v.command("fs subvolumegroup create", "", nil) }

// Create makes a share's subvolume. Its objects are in a RADOS namespace of their own, or who steals its key
// could read those of all shares past the metadata servers. No quota here: Create of one that exists would set it again.
func (v Volume) Create(subvolume string) Command {
	return v.command("fs subvolume create", subvolume, map[string]any{"namespace_isolated": true, "mode": "755"})
}

// Info asks for the path, the size and the use of a subvolume.
func (v Volume) Info(subvolume string) Command { return v.command("fs subvolume info", subvolume, nil) }

// Resize sets the quota in bytes; 0 is none. A quota below what is used is refused by Ceph.
func (v Volume) Resize(subvolume string, quota int64) Command {
	size := "infinite"
	if quota > 0 {
		size = strconv.FormatInt(quota, 10)
	}
	return v.command("fs subvolume resize", subvolume, map[string]any{"new_size": size, "no_shrink": true})
}

// Authorize makes the user, or gives it the right to read and write in the subvolume, and nowhere else. It tells no key: GetUser does.
func (v Volume) Authorize(subvolume, user string) Command {
	return v.command("fs subvolume authorize", subvolume, map[string]any{"auth_id": user, "access_level": "rw"})
}

// Deauthorize takes the right away again, and with the last one the user.
func (v Volume) Deauthorize(subvolume, user string) Command {
	return v.command("fs subvolume deauthorize", subvolume, map[string]any{"auth_id": user})
}

// Evict ends all sessions of a user in the subvolume, those of every data server.
func (v Volume) Evict(subvolume, user string) Command {
	return v.command("fs subvolume evict", subvolume, map[string]any{"auth_id": user})
}

// Remove moves the subvolume to Ceph's own trash, which is emptied in the background.
func (v Volume) Remove(subvolume string) Command {
	return v.command("fs subvolume rm", subvolume, nil)
}

// GetUser asks for a user's key.
func GetUser(user string) Command {
	return command(Monitor, "auth get", map[string]any{"entity": "client." + user})
}

// CreateRecoveryUser makes the user of a data server's recovery records, which may do nothing else. All four kinds of daemons are
// named, with caps that mean nothing for two of them: what a provisioning account's caps leave open could be anything, "allow *"
// among it.
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

// Blocklist shuts a client out of the cluster for a time, by its address. All its sessions with all metadata servers end within
// seconds, and its watches at once.
func Blocklist(address string, duration time.Duration) Command {
	return command(Monitor, "osd blocklist", map[string]any{
		"blocklistop": "add", "addr": address,
		// A number without a fraction is no number of seconds to a monitor.
		"expire": json.RawMessage(strconv.FormatFloat(duration.Seconds(), 'f', 1, 64)),
	})
}

// FileSystems asks for the file systems with their pools.
func FileSystems() Command { return command(Monitor, "fs ls", nil) }

// Usage asks how full the pools are.
func Usage() Command { return command(Monitor, "df", nil) }
