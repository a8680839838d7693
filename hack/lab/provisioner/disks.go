package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// disks are the volumes of a node: a file system in a file for each, on a loop device.
type disks struct {
	// images has the files, mounts the mount points.
	images, mounts string
}

// The mount points are not on the disk of the images: what is mounted below a folder that is itself bound
// elsewhere would be mounted there, too.
var nodeDisks = disks{images: "/data/images", mounts: "/var/lib/howdah-lab/volumes"}

const imageSuffix = ".img"

// path is where a volume is mounted.
func (d disks) path(volume string) string { return filepath.Join(d.mounts, filepath.Base(volume)) }

func (d disks) image(volume string) string {
	return filepath.Join(d.images, filepath.Base(volume)+imageSuffix)
}

// ensure makes a volume of a size in bytes and mounts it. An existing volume is not changed.
func (d disks) ensure(volume string, size int64) error {
	if _, err := os.Stat(d.image(volume)); errors.Is(err, fs.ErrNotExist) {
		if err := d.format(volume, size); err != nil {
			return err
		}
	} else if err != nil {
		return err
	}
	if err := d.mount(volume); err != nil {
		return err
	}
	// Pods of any user may write, as with other provisioners.
	return os.Chmod(d.path(volume), 0o777)
}

// format makes the file under another name first, so that there is never half a file system to mount.
func (d disks) format(volume string, size int64) error {
	if err := os.MkdirAll(d.images, 0o700); err != nil {
		return err
	}
	temp := d.image(volume) + ".tmp"
	if err := os.WriteFile(temp, nil, 0o600); err != nil {
		return err
	}
	if err := os.Truncate(temp, size); err != nil {
		return err
	}
	// A new sparse file is all zeros: nothing is to be zeroed, now or later, so even 1 TiB takes a few MiB.
	// Nothing is kept back for root, as with the volumes that kubelet formats.
	if _, err := tool("mkfs.ext4", "-q", "-F", "-m", "0", "-E", "nodiscard,assume_storage_prezeroed=1", temp); err != nil {
		return err
	}
	return os.Rename(temp, d.image(volume))
}

// mount does nothing if the volume is mounted.
func (d disks) mount(volume string) error {
	mounted, err := isMountPoint(d.path(volume))
	if mounted || err != nil {
		return err
	}
	if err := os.MkdirAll(d.path(volume), 0o700); err != nil {
		return err
	}
	device, err := d.device(volume)
	if err != nil {
		return err
	}
	if device == "" {
		// Past the page cache of the node's disk, which would hold everything a second time.
		if device, err = tool("losetup", "--find", "--show", "--direct-io=on", d.image(volume)); err != nil {
			return err
		}
	}
	// What a volume grows by is all zeros, too.
	_, err = tool("mount", "-t", "ext4", "-o", "noatime,noinit_itable", device, d.path(volume))
	return err
}

// device is the loop device of a volume, "" if it has none.
func (d disks) device(volume string) (string, error) {
	return tool("losetup", "--noheadings", "--output", "NAME", "--associated", d.image(volume))
}

// mountAll mounts what there is, and goes on after a failure.
func (d disks) mountAll() error {
	images, err := filepath.Glob(d.image("*"))
	if err != nil {
		return err
	}
	var failures []error
	for _, image := range images {
		failures = append(failures, d.mount(strings.TrimSuffix(filepath.Base(image), imageSuffix)))
	}
	return errors.Join(failures...)
}

// grow makes a volume larger while it is in use. One that is as large already stays as it is.
func (d disks) grow(volume string, size int64) error {
	info, err := os.Stat(d.image(volume))
	if err != nil {
		return err
	}
	if info.Size() < size {
		if err := os.Truncate(d.image(volume), size); err != nil {
			return err
		}
	}
	device, err := d.device(volume)
	if err != nil {
		return err
	}
	if device == "" {
		return fmt.Errorf("%s has no loop device", volume)
	}
	// Both again even if the file is as large already: an earlier try may have ended between them.
	if _, err := tool("losetup", "--set-capacity", device); err != nil {
		return err
	}
	_, err = tool("resize2fs", device)
	return err
}

// remove takes a volume away with its data.
func (d disks) remove(volume string) error {
	mounted, err := isMountPoint(d.path(volume))
	if err != nil {
		return err
	}
	if mounted {
		if _, err := tool("umount", d.path(volume)); err != nil {
			return err
		}
	}
	device, err := d.device(volume)
	if err != nil {
		return err
	}
	if device != "" {
		if _, err := tool("losetup", "--detach", device); err != nil {
			return err
		}
	}
	for _, path := range []string{d.path(volume), d.image(volume)} {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

func isMountPoint(path string) (bool, error) {
	table, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return false, err
	}
	for line := range strings.Lines(string(table)) {
		// The fifth field is the mount point. The names of volumes have nothing that is escaped there.
		if fields := strings.Fields(line); len(fields) > 4 && fields[4] == path {
			return true, nil
		}
	}
	return false, nil
}

// tool runs a program of the node and returns what it printed.
func tool(name string, args ...string) (string, error) {
	output, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, strconv.Quote(strings.TrimSpace(string(output))))
	}
	return strings.TrimSpace(string(output)), nil
}
