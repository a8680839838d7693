package ceph

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// CreateSnapshot makes a snapshot of a share's subvolume. It also succeeds if a snapshot of this name exists: ask SnapshotInfo
// first.
func (v Volume) CreateSnapshot(subvolume, name string) Command {
	return v.snapshot("fs subvolume snapshot create", subvolume, name)
}

// RemoveSnapshot removes a snapshot. Ceph refuses while it is being cloned.
func (v Volume) RemoveSnapshot(subvolume, name string) Command {
	return v.snapshot("fs subvolume snapshot rm", subvolume, name)
}

// SnapshotInfo asks for a snapshot's time and clones.
func (v Volume) SnapshotInfo(subvolume, name string) Command {
	return v.snapshot("fs subvolume snapshot info", subvolume, name)
}

func (v Volume) snapshot(command, subvolume, name string) Command {
	return v.command(command, subvolume, map[string]any{"snap_name": name})
}

// snapshotTime is Ceph's format of a snapshot's time: UTC, without a time zone.
const snapshotTime = "2006-01-02 15:04:05.999999"

// SnapshotDetails is what Ceph reports about a snapshot.
type SnapshotDetails struct {
	// Created is when the snapshot was made.
	Created time.Time
	// Cloning: it is being cloned and can't be removed.
	Cloning bool
	// Clones has the subvolumes that are being made from it, as far as Ceph reports them.
	Clones []string
}

// ParseSnapshotInfo reads the answer to Volume.SnapshotInfo.
func ParseSnapshotInfo(answer string) (SnapshotDetails, error) {
	var parsed struct {
		Created string `json:"created_at"`
		Pending string `json:"has_pending_clones"`
		Clones  []struct {
			Name string `json:"name"`
		} `json:"pending_clones"`
	}
	if err := json.Unmarshal([]byte(answer), &parsed); err != nil {
		return SnapshotDetails{}, fmt.Errorf("reading Ceph's answer about a snapshot: %w", err)
	}
	created, err := time.Parse(snapshotTime, parsed.Created)
	if err != nil {
		return SnapshotDetails{}, fmt.Errorf("the time of a snapshot can't be read: %w", err)
	}
	details := SnapshotDetails{Created: created, Cloning: parsed.Pending == "yes"}
	for _, clone := range parsed.Clones {
		details.Clones = append(details.Clones, clone.Name)
	}
	return details, nil
}

// SnapshotFolder returns the path of a snapshot below any directory of its share: .snap/_NAME_NUMBER. It has this form because
// the snapshot is of a parent of the share's directory; the number is the parent's inode. names has the entries of .snap in
// the share's directory. It returns false if the snapshot is not among them.
func SnapshotFolder(names []string, snapshot string) (string, bool) {
	for _, name := range names {
		rest, found := strings.CutPrefix(name, "_"+snapshot+"_")
		if found && rest != "" && strings.Trim(rest, "0123456789") == "" {
			return ".snap/" + name, true
		}
	}
	return "", false
}
