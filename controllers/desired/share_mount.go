package desired

import (
	"strings"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/naming"
)

// MountOptions are the options that Howdah recommends for every mount of a share.
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
func MountOptions() []string {
	return []string{"vers=4.1", "nconnect=16", "hard", "nosuid", "nodev", "acdirmin=1", "acdirmax=2"}
}

// ShareMount is how to mount a share; address is that of the namespace servers.
func ShareMount(share *v1alpha1.FileShare, address string) v1alpha1.ShareMount {
	host := address
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	mount := v1alpha1.ShareMount{
		Address: address,
		Path:    share.Spec.Path,
		Options: MountOptions(),
		Command: "mount -t nfs4 -o " + strings.Join(MountOptions(), ",") + " " + host + ":" + share.Spec.Path + " /mnt",
	}
	if !naming.IsProvisioned(share) {
		mount.ClaimName = naming.ShareClaim(share.Name)
	}
	return mount
}
