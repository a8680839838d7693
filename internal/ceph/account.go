package ceph

import (
	"fmt"
	"regexp"
	"strings"
)

// Account returns the cephx user, without "client.", of the provisioning account that Rook makes for a FileServer. It does
// not begin with "howdah-", because provisioning accounts of other FileServers may read the keys of users that do.
func Account(identity string) string { return "howdah." + identity }

// managed has the manager commands that a provisioning account needs, each with further restrictions. Each is also restricted
// to the FileServer's group.
var managed = []struct{ command, also string }{
	{"fs subvolumegroup create", ""}, // Rook makes no group in an external cluster.
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

// AccountCaps returns the least capabilities of that account by kind of daemon, in the grammar of Ceph's MonCap and MgrCap.
// They allow its own group of one file system, and recovery users for its own RADOS namespaces of one pool. The names of
// shares' users don't contain the FileServer, so the account may read the keys of all users that begin with "howdah-".
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
			// Name all four kinds of daemons: Ceph would accept any capability for a kind that is not named.
			fmt.Sprintf(`allow command "auth get-or-create" with entity prefix client.%s caps_mon="allow r" caps_mgr="allow command none" caps_mds="allow r path=/.none" caps_osd regex "allow rwx? pool=%s namespace=%s-[0-9]+"`,
				recovery, regexp.QuoteMeta(recoveryPool), identity),
			fmt.Sprintf(`allow command "auth rm" with entity prefix client.%s`, recovery),
			`allow command "osd blocklist" with blocklistop=add`,
		}, ", "),
		"mgr": strings.Join(mgr, ", "),
	}
}
