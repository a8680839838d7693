package ceph

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// CreateSnapshot makes a snapshot of a share's subvolume. Ceph calls it done, too, if there is one of that name: ask SnapshotInfo first.
func (v Volume) CreateSnapshot(subvolume, name string) Command {
	return v.snapshot("fs subvolume snapshot create", subvolume, name)
}

// RemoveSnapshot removes one. Ceph refuses while it is being cloned.
func (v Volume) RemoveSnapshot(subvolume, name string) Command {
	return v.snapshot("fs subvolume snapshot rm", subvolume, name)
}

// SnapshotInfo asks when one was made.
func (v Volume) SnapshotInfo(subvolume, name string) Command {
	return v.snapshot("fs subvolume snapshot info", subvolume, name)
}

func (v Volume) snapshot(command, subvolume, name string) Command {
	return v.command(command, subvolume, map[string]any{"snap_name": name})
}

// snapshotTime is how Ceph writes when a snapshot was made: UTC, without saying so.
const snapshotTime = "2006-01-02 15:04:05.999999"

// SnapshotDetails is what Ceph says of a snapshot.
type SnapshotDetails struct {
	// Created is its moment.
	Created time.Time
	// Cloning: copies are being made of it, and it can't be removed.
	Cloning bool
	// Clones are the subvolumes that are being made of it, as far as Ceph tells.
	Clones []string
}

// ParseSnapshotInfo reads the answer to Volume.SnapshotInfo.
func ParseSnapshotInfo(answer string) (SnapshotDetails, error) {
	var told struct {
		Created string `json:"created_at"`
		Pending string `json:"has_pending_clones"`
		Clones  []struct {
			Name string `json:"name"`
		} `json:"pending_clones"`
	}
	if err := json.Unmarshal([]byte(answer), &told); err != nil {
		return SnapshotDetails{}, fmt.Errorf("what Ceph says of a snapshot is no answer: %w", err)
	}
	created, err := time.Parse(snapshotTime, told.Created)
	if err != nil {
		return SnapshotDetails{}, fmt.Errorf("the time of a snapshot can't be read: %w", err)
	}
	details := SnapshotDetails{Created: created, Cloning: told.Pending == "yes"}
	for _, clone := range told.Clones {
		details.Clones = append(details.Clones, clone.Name)
	}
	return details, nil
}

// SnapshotFolder is where users find a snapshot, below any directory of its share: .snap/_NAME_NUMBER. Ceph calls it so because it is one of a directory
// above the share's own; the number is that directory's inode. names are those in the .snap of the share's directory; false: it is not among them.
func SnapshotFolder(names []string, snapshot string) (string, bool) {
	for _, name := range names {
		rest, found := strings.CutPrefix(name, "_"+snapshot+"_")
		if found && rest != "" && strings.Trim(rest, "0123456789") == "" {
			return ".snap/" + name, true
		}
	}
	return "", false
}
