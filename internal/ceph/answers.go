package ceph

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// SubvolumeInfo is what Ceph says of a share's subvolume.
type SubvolumeInfo struct {
	// Path is that of the share's data in the file system.
	Path string
	// QuotaBytes is 0 without a quota.
	QuotaBytes, UsedBytes int64
	// Ready: it can be used. One that is being cloned or removed can't.
	Ready bool
}

// ParseInfo reads the answer to Volume.Info.
func ParseInfo(answer string) (SubvolumeInfo, error) {
	var told struct {
		Path  string          `json:"path"`
		Quota json.RawMessage `json:"bytes_quota"` // A number, or "infinite".
		Used  int64           `json:"bytes_used"`
		State string          `json:"state"`
	}
	if strings.TrimSpace(answer) == "" {
		return SubvolumeInfo{}, errSilent
	}
	if err := json.Unmarshal([]byte(answer), &told); err != nil {
		return SubvolumeInfo{}, fmt.Errorf("what Ceph says of a subvolume is no answer: %w", err)
	}
	info := SubvolumeInfo{Path: told.Path, UsedBytes: told.Used, Ready: told.State == "complete"}
	if string(told.Quota) != `"infinite"` {
		if err := json.Unmarshal(told.Quota, &info.QuotaBytes); err != nil {
			return SubvolumeInfo{}, fmt.Errorf("the quota of a subvolume is %s: %w", told.Quota, err)
		}
	}
	if info.Ready && info.Path == "" {
		return SubvolumeInfo{}, fmt.Errorf("no path is named of a subvolume: %s", answer)
	}
	return info, nil
}

// ParseKey reads a user's key, which Ceph takes now, from the answer to GetUser or CreateRecoveryUser.
func ParseKey(answer, user string) (string, error) {
	now, _, err := parseKeys(answer, user)
	return now, err
}

// ParseNewestKey reads the key that a user is to use from the same answers: the pending one, if ceph auth get-or-create-pending has made
// one. Ceph takes both until the pending one is used for the first time, which makes it the user's only key.
func ParseNewestKey(answer, user string) (string, error) {
	now, pending, err := parseKeys(answer, user)
	if pending != "" {
		return pending, err
	}
	return now, err
}

func parseKeys(answer, user string) (now, pending string, err error) {
	var told []struct {
		Entity, Key string
		Pending     string `json:"pending_key"`
	}
	if err := json.Unmarshal([]byte(answer), &told); err != nil {
		// The answer may have a key in it, so it is not quoted, nor is the fault, which could quote it.
		return "", "", fmt.Errorf("what Ceph says of user client.%s is no list of users", user)
	}
	for _, one := range told {
		if one.Entity == "client."+user && one.Key != "" {
			return one.Key, one.Pending, nil
		}
	}
	return "", "", fmt.Errorf("no key is told of user client.%s", user)
}

// Capacity is how much a file system can hold, in bytes.
type Capacity struct{ TotalBytes, UsedBytes int64 }

// ParseCapacity reads it from the answers to FileSystems and Usage: what its data pools hold, and what they could hold besides.
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
			// Pools share their disks: what one takes the others can't.
			available = max(available, pool.Stats.Available)
		}
	}
	found.TotalBytes = found.UsedBytes + available
	return found, nil
}

// FindPlaces looks in the same answers for a file system and for the pool of recovery records.
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
	var told struct {
		Pools []pool `json:"pools"`
	}
	if err := json.Unmarshal([]byte(usage), &told); err != nil {
		return nil, fmt.Errorf("reading how full Ceph's pools are: %w", err)
	}
	return told.Pools, nil
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
