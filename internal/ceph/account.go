package ceph

import (
	"fmt"
	"regexp"
	"strings"
)

// Account is the cephx user, without "client.", as which the steward of a FileServer makes places, where Rook makes it. It does not begin
// with "howdah-": the account of another FileServer may read the keys of users that do.
func Account(identity string) string { return "howdah." + identity }

// managed are the commands of managers that a provisioning account needs, each with the group of the FileServer; what else must be said of
// one is behind it.
var managed = []struct{ command, also string }{
	{"fs subvolumegroup create", ""}, // Rook makes none in a cluster that is external to it.
	{"fs subvolume create", ""},
	{"fs subvolume info", ""},
	{"fs subvolume resize", ""},
	{"fs subvolume rm", ""},
	{"fs subvolume authorize", " auth_id prefix " + prefix},
	{"fs subvolume deauthorize", " auth_id prefix " + prefix},
	{"fs subvolume evict", ""},
	{"fs subvolume snapshot create", ""},
	{"fs subvolume snapshot ls", ""},
	{"fs subvolume snapshot info", ""},
	{"fs subvolume snapshot rm", ""},
	{"fs subvolume snapshot clone", " target_group_name=GROUP"},
	{"fs clone status", ""},
	{"fs clone cancel", ""},
}

// AccountCaps are the least caps of that account, by kind of daemon, in the grammar of Ceph's MonCap and MgrCap: its own group of one file
// system, and recovery users of its own RADOS namespaces of one pool. Keys of users are those of shares, whose names don't tell the
// FileServer: so it may read those of all that begin with "howdah-".
func AccountCaps(identity, fileSystem, recoveryPool string) map[string]string {
	group := Group(identity)
	mgr := make([]string, 0, len(managed))
	for _, m := range managed {
		mgr = append(mgr, fmt.Sprintf("allow command %q with vol_name=%s group_name=%s%s", m.command, fileSystem, group, strings.ReplaceAll(m.also, "GROUP", group)))
	}
	recovery := prefix + "rec-" + identity + "-"
	return map[string]string{
		"mon": strings.Join([]string{
			"allow r",
			fmt.Sprintf(`allow command "auth get" with entity prefix client.%s`, prefix),
			// All four kinds of daemons are named, or Ceph would take any cap for the one that is not.
			fmt.Sprintf(`allow command "auth get-or-create" with entity prefix client.%s caps_mon="allow r" caps_mgr="allow command none" caps_mds="allow r path=/.none" caps_osd regex "allow rwx? pool=%s namespace=%s-[0-9]+"`,
				recovery, regexp.QuoteMeta(recoveryPool), identity),
			fmt.Sprintf(`allow command "auth rm" with entity prefix client.%s`, recovery),
			`allow command "osd blocklist" with blocklistop=add`,
		}, ", "),
		"mgr": strings.Join(mgr, ", "),
	}
}
