package cluster

import "strings"

// MountSource is the server and the path of an NFS mount, from the first column of /proc/mounts. Linux shows an IPv6 address as it was
// given: in brackets by mount, and without them where a server led the client there.
func MountSource(device string) (server, path string) {
	at := strings.Index(device, ":/")
	if at < 0 {
		return device, ""
	}
	return strings.TrimSuffix(strings.TrimPrefix(device[:at], "["), "]"), device[at+1:]
}
