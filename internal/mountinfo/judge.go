package mountinfo

import (
	"fmt"
	"slices"
	"strings"
)

// Volume is a directory that should be a file system of its own.
type Volume struct {
	// Path is where it is, clean and absolute.
	Path string
	// MountID is the ID of the mount that a process gets to there.
	MountID int
	// Again is where else the volume is mounted; "" if nowhere.
	Again string
}

// ownTypes are the types of which all of a file system can be had by mounting its root, and a part of it shows
// in the table of mounts: those that a node mounts from a disk of its own. Of network file systems (nfs, ceph, …) a
// part looks like the whole, and of stacked ones (overlay, fuse) what is below does not show.
var ownTypes = []string{"btrfs", "ext2", "ext3", "ext4", "f2fs", "xfs", "zfs"}

// Shared tells of each volume what its file system has besides the volume, or may have: "" if the volume is a file system of its
// own. The text follows "claim X ".
func Shared(mounts []Mount, volumes []Volume) []string {
	own := make([]Mount, len(volumes))
	verdicts := make([]string, len(volumes))
	for i, volume := range volumes {
		own[i], verdicts[i] = wholeFileSystem(mounts, volume)
	}
	for i := range volumes {
		if verdicts[i] == "" {
			verdicts[i] = sharedWith(mounts, volumes, own, i)
		}
	}
	return verdicts
}

// wholeFileSystem looks whether the volume is the root of a file system.
func wholeFileSystem(mounts []Mount, volume Volume) (Mount, string) {
	at := slices.IndexFunc(mounts, func(m Mount) bool { return m.ID == volume.MountID })
	if at < 0 {
		return Mount{}, "is on a mount that the kernel does not list, so nothing is known of its file system"
	}
	mount := mounts[at]
	switch {
	case mount.Point != volume.Path:
		return mount, fmt.Sprintf("is not mounted; %s is a directory of the file system (%s) at %s", volume.Path, mount.Type, mount.Point)
	case mount.Root != "/":
		return mount, fmt.Sprintf("is the directory %s of a larger file system (%s on %s)", mount.Root, mount.Type, mount.Source)
	case !slices.Contains(ownTypes, mount.Type):
		return mount, fmt.Sprintf("is on a file system of type %s (%s), of which it can be a part without showing it", mount.Type, mount.Source)
	}
	return mount, ""
}

// sharedWith looks for other uses of the file system of volume i, as far as they can be seen from here.
func sharedWith(mounts []Mount, volumes []Volume, own []Mount, i int) string {
	for j := range own {
		if j != i && own[j].Device == own[i].Device {
			return fmt.Sprintf("is on the same file system (%s on %s) as %s", own[i].Type, own[i].Source, volumes[j].Path)
		}
	}
	for _, mount := range mounts {
		if mount.Device != own[i].Device || within(mount.Point, volumes[i].Path) || volumes[i].Again != "" && within(mount.Point, volumes[i].Again) {
			continue
		}
		// What else a pod has from a disk (its emptyDirs, /etc/hosts) is the kubelet's, and so is the disk.
		return fmt.Sprintf("is a whole file system (%s on %s), but one that has the node's own files, too: %s is of it", own[i].Type, own[i].Source, mount.Point)
	}
	return ""
}

// within tells whether a path is a directory or below it.
func within(path, directory string) bool {
	return path == directory || strings.HasPrefix(path, directory+"/")
}
