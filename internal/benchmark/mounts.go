package benchmark

import (
	"strconv"
	"strings"
)

// NFSMount is a mount of an NFS client.
type NFSMount struct {
	// Path is the mount point.
	Path string
	// Address is the server's (mount option addr).
	Address string
	// Version is the protocol version, "4.1".
	Version string
	// Nconnect is the number of TCP connections to the server; Linux prints it only where it is not 1.
	Nconnect int
}

// NFSMounts finds the NFS mounts at and below a directory in the text of
// /proc/self/mountinfo (proc_pid_mountinfo(5)).
func NFSMounts(mountinfo, below string) []NFSMount {
	var mounts []NFSMount
	for line := range strings.Lines(mountinfo) {
		place, rest, ok := strings.Cut(line, " - ")
		fields, kind := strings.Fields(place), strings.Fields(rest)
		if !ok || len(fields) < 5 || len(kind) < 3 || kind[0] != "nfs4" && kind[0] != "nfs" {
			continue
		}
		if fields[4] != below && !strings.HasPrefix(fields[4], strings.TrimSuffix(below, "/")+"/") {
			continue
		}
		mount := NFSMount{Path: fields[4], Nconnect: 1}
		for option := range strings.SplitSeq(kind[2], ",") {
			switch key, value, _ := strings.Cut(option, "="); key {
			case "addr":
				mount.Address = value
			case "vers":
				mount.Version = value
			case "nconnect":
				if n, err := strconv.Atoi(value); err == nil {
					mount.Nconnect = n
				}
			}
		}
		mounts = append(mounts, mount)
	}
	return mounts
}
