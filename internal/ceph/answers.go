package ceph

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// SubvolumeInfo is what Ceph reports about a share's subvolume.
type SubvolumeInfo struct {
	// Path is the path of the share's data in the file system.
	Path string
	// QuotaBytes is the quota in bytes, or 0 for none.
	QuotaBytes, UsedBytes int64
	// Ready is false while Ceph clones or removes the subvolume.
	Ready bool
}

// ParseInfo reads the answer to Volume.Info of a subvolume. The path that Ceph gives has the subvolume's name in it: one that has not would give
// a share the data of another.
func ParseInfo(answer, subvolume string) (SubvolumeInfo, error) {
	var parsed struct {
		Path  string          `json:"path"`
		Quota json.RawMessage `json:"bytes_quota"` // A number, or "infinite".
		Used  int64           `json:"bytes_used"`
		State string          `json:"state"`
	}
	if strings.TrimSpace(answer) == "" {
		return SubvolumeInfo{}, errSilent
	}
	if err := json.Unmarshal([]byte(answer), &parsed); err != nil {
		return SubvolumeInfo{}, fmt.Errorf("reading Ceph's answer about a subvolume: %w", err)
	}
	info := SubvolumeInfo{Path: parsed.Path, UsedBytes: parsed.Used, Ready: parsed.State == "complete"}
	if string(parsed.Quota) != `"infinite"` {
		if err := json.Unmarshal(parsed.Quota, &info.QuotaBytes); err != nil {
			return SubvolumeInfo{}, fmt.Errorf("the quota of a subvolume is %s: %w", parsed.Quota, err)
		}
	}
	if info.Ready && info.Path == "" {
		return SubvolumeInfo{}, fmt.Errorf("the answer of Ceph about a subvolume has no path: %s", answer)
	}
	if info.Path != "" && !slices.Contains(strings.Split(info.Path, "/"), subvolume) {
		return SubvolumeInfo{}, fmt.Errorf("the answer of Ceph about subvolume %s has the path of another one, %s; it is not used", subvolume, info.Path)
	}
	return info, nil
}

// ParseKey reads a user's current key from the answer to GetUser or CreateRecoveryUser.
func ParseKey(answer, user string) (string, error) {
	now, _, err := parseKeys(answer, user)
	return now, err
}

// ParseNewestKey reads the newest key from the same answers: the pending one, if ceph auth get-or-create-pending has made one.
// Ceph accepts both until the first use of the pending key, which makes it the only key.
func ParseNewestKey(answer, user string) (string, error) {
	now, pending, err := parseKeys(answer, user)
	if pending != "" {
		return pending, err
	}
	return now, err
}

func parseKeys(answer, user string) (now, pending string, err error) {
	var parsed []struct {
		Entity, Key string
		Pending     string `json:"pending_key"`
	}
	if err := json.Unmarshal([]byte(answer), &parsed); err != nil {
		// Quote neither the answer nor the error: they may contain a key.
		return "", "", fmt.Errorf("the answer of Ceph about user client.%s is not a list of users", user)
	}
	for _, one := range parsed {
		if one.Entity == "client."+user && one.Key != "" {
			return one.Key, one.Pending, nil
		}
	}
	return "", "", fmt.Errorf("the answer of Ceph about user client.%s has no key", user)
}

// Capacity is the capacity of a file system in bytes.
type Capacity struct{ TotalBytes, UsedBytes int64 }

// ParseCapacity computes the capacity from the answers to FileSystems and Usage: what the data pools hold, and what they could
// hold in addition.
func ParseCapacity(fileSystem, fileSystems, usage string) (Capacity, error) {
	dataPools, err := dataPoolsOf(fileSystem, fileSystems)
	if err != nil {
		return Capacity{}, err
	}
	pools, err := parsePools(usage)
	if err != nil {
		return Capacity{}, err
	}
	var found Capacity
	available := int64(0)
	for _, pool := range pools {
		if slices.Contains(dataPools, pool.Name) {
			found.UsedBytes += pool.Stats.Stored
			// Pools share their disks, so their free space can't be added up.
			available = max(available, pool.Stats.Available)
		}
	}
	found.TotalBytes = found.UsedBytes + available
	return found, nil
}

// FindPlaces checks with the same answers that a file system and the pool of recovery records exist.
func FindPlaces(fileSystem, recoveryPool, fileSystems, usage string) error {
	dataPools, err := dataPoolsOf(fileSystem, fileSystems)
	if err != nil {
		return err
	}
	pools, err := parsePools(usage)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(pools, func(p pool) bool { return p.Name == recoveryPool }) {
		return fmt.Errorf("the Ceph cluster has no pool %s for recovery records: ceph osd pool create %s && ceph osd pool application enable %s howdah",
			recoveryPool, recoveryPool, recoveryPool)
	}
	if slices.Contains(dataPools, recoveryPool) {
		return fmt.Errorf("pool %s, named for recovery records, has the data of file system %s: make another FileServer with a pool of its own for them", recoveryPool, fileSystem)
	}
	return nil
}

type pool struct {
	Name  string `json:"name"`
	Stats struct {
		Stored    int64 `json:"stored"`
		Available int64 `json:"max_avail"`
	} `json:"stats"`
}

func parsePools(usage string) ([]pool, error) {
	var parsed struct {
		Pools []pool `json:"pools"`
	}
	if err := json.Unmarshal([]byte(usage), &parsed); err != nil {
		return nil, fmt.Errorf("reading how full Ceph's pools are: %w", err)
	}
	return parsed.Pools, nil
}

func dataPoolsOf(fileSystem, fileSystems string) ([]string, error) {
	var systems []struct {
		Name      string   `json:"name"`
		DataPools []string `json:"data_pools"`
	}
	if err := json.Unmarshal([]byte(fileSystems), &systems); err != nil {
		return nil, fmt.Errorf("reading Ceph's file systems: %w", err)
	}
	var names []string
	for _, system := range systems {
		if system.Name == fileSystem {
			return system.DataPools, nil
		}
		names = append(names, system.Name)
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("the Ceph cluster has no file system %s, and no other", fileSystem)
	}
	return nil, fmt.Errorf("the Ceph cluster has no file system %s; it has: %s", fileSystem, strings.Join(names, ", "))
}
