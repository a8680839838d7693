package volumes

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/internal/mountinfo"
	"github.com/howdah/howdah/internal/naming"
	"github.com/howdah/howdah/internal/serverpod"
)

// claimOf is the name of a volume's claim.
func claimOf(server *internalv1.DataServer, index int32) string {
	ordinal, ours := naming.DataServerOrdinal(server.Spec.FileServerRef.Name, server.Name)
	if !ours {
		return fmt.Sprintf("of volume %d", index) // The name is wrong; this is refused elsewhere.
	}
	return naming.VolumeClaim(server.Spec.FileServerRef.Name, ordinal, index)
}

// sharedVolumes returns for each volume what else is on its file system, "" if nothing is, and the ID of the file system.
func sharedVolumes(where layout, count int32) (shared, fileSystems []string, err error) {
	volumes := make([]mountinfo.Volume, 0, count)
	for index := range count {
		path := where.volume(index)
		id, err := mountID(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil, fmt.Errorf("volume %d is not mounted: %w", index, err)
		}
		if err != nil {
			return nil, nil, fmt.Errorf("reading where volume %d is mounted: %w", index, err)
		}
		volumes = append(volumes, mountinfo.Volume{Path: path, MountID: id, Again: serverpod.GaneshaRoot + path})
	}
	table, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, nil, fmt.Errorf("reading the file systems of the volumes: %w", err)
	}
	mounts, err := mountinfo.Parse(string(table))
	if err != nil {
		return nil, nil, fmt.Errorf("reading the file systems of the volumes: %w", err)
	}
	for _, volume := range volumes {
		device := ""
		if at := slices.IndexFunc(mounts, func(m mountinfo.Mount) bool { return m.ID == volume.MountID }); at >= 0 {
			device = mounts[at].Device
		}
		fileSystems = append(fileSystems, fileSystemID(device))
	}
	return mountinfo.Shared(mounts, volumes), fileSystems, nil
}

// mountID returns the ID of the mount at the path. The table of mounts alone is ambiguous if one mount covers another.
func mountID(path string) (int, error) {
	descriptor, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	defer func() { _ = unix.Close(descriptor) }()
	info, err := os.Open(fmt.Sprintf("/proc/self/fdinfo/%d", descriptor))
	if err != nil {
		return 0, err
	}
	defer func() { _ = info.Close() }()
	lines := bufio.NewScanner(info)
	for lines.Scan() {
		if value, found := strings.CutPrefix(lines.Text(), "mnt_id:"); found {
			return strconv.Atoi(strings.TrimSpace(value))
		}
	}
	return 0, errors.Join(lines.Err(), errors.New("the kernel reports no mnt_id"))
}
