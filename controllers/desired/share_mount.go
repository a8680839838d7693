package desired

import (
	"strings"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/naming"
)

// OptionAnyPort has the client come from any port, and not from one of the 359 below 1024 that Linux takes for NFS. The connection tracking of
// the client's node leads a port for up to two minutes to the address that it has led to before, even if that pod is gone. With a port of so few a client
// comes upon one of those again and again, and loses 6 s each time (docs/design/2026-11-27-client-ports.md).
const OptionAnyPort = "noresvport"

// MountOptions are the options that Howdah recommends for every mount of a share. reservedPorts: a share of the FileServer accepts reserved ports only.
//
//   - vers=4.1: referrals and sessions; nconnect=16: as many TCP connections to each
//     server, because one connection is one stream and one CPU at both ends.
//   - hard: a restarting server is a stall, not an error in the middle of a file.
//   - nosuid, nodev: a client that may write can make set-user-ID programs and device nodes for all others; theirs are not to work.
//   - acdirmin=1, acdirmax=2: the client asks for a directory's change attribute again after 1 to 2 s (the kernel's
//     defaults are 30 to 60 s, nfs(5)), so that a new share or directory is seen within 3 s by clients that have the tree mounted. Namespace servers give no
//     delegations and send no notifications, so asking is the only way. It costs a GETATTR for each directory in use every 1 to 2 s, and none for files.
//
// The mounts that the client makes when it follows a referral inherit all of them.
func MountOptions(reservedPorts bool) []string {
	options := []string{"vers=4.1", "nconnect=16", "hard", "nosuid", "nodev", "acdirmin=1", "acdirmax=2"}
	if !reservedPorts {
		options = append(options, OptionAnyPort)
	}
	return options
}

// ShareMount is how to mount a share; address is that of the namespace servers. reservedPorts is as for MountOptions.
func ShareMount(share *v1alpha1.FileShare, address string, reservedPorts bool) v1alpha1.ShareMount {
	host := address
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	options := MountOptions(reservedPorts)
	mount := v1alpha1.ShareMount{
		Address: address,
		Path:    share.Spec.Path,
		Options: options,
		Command: "mount -t nfs4 -o " + strings.Join(options, ",") + " " + host + ":" + share.Spec.Path + " /mnt",
	}
	if !naming.IsProvisioned(share) {
		mount.ClaimName = naming.ShareClaim(share.Name)
	}
	return mount
}
