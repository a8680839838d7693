package ceph

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// HealthDetail asks for the health of the cluster with the details of each check.
func HealthDetail() Command { return command(Monitor, "health", map[string]any{"detail": "detail"}) }

// Health is the health of Ceph as far as it concerns clients of one file system: sentences that say what is wrong and what to
// do, without numbers that change all the time.
type Health struct {
	// Failing has faults that make clients wait or get errors.
	Failing []string
	// Degraded has faults that clients don't notice yet, or only as a pause.
	Degraded []string
}

// Scope is the part of a cluster that Health reports about.
type Scope struct {
	FileSystem string
	// Pools has the names of the pools with data, metadata and recovery records.
	Pools []string
	// PoolIDs has the IDs of the file system's pools.
	PoolIDs []int64
}

// ScopeOf finds the pools of a file system in the answer to FileSystems, and adds recoveryPool.
func ScopeOf(fileSystem, recoveryPool, fileSystems string) (Scope, error) {
	var systems []struct {
		Name           string   `json:"name"`
		MetadataPool   string   `json:"metadata_pool"`
		MetadataPoolID int64    `json:"metadata_pool_id"`
		DataPools      []string `json:"data_pools"`
		DataPoolIDs    []int64  `json:"data_pool_ids"`
	}
	if err := json.Unmarshal([]byte(fileSystems), &systems); err != nil {
		return Scope{}, fmt.Errorf("reading Ceph's file systems: %w", err)
	}
	for _, system := range systems {
		if system.Name == fileSystem {
			return Scope{
				FileSystem: fileSystem, Pools: append(slices.Clone(system.DataPools), system.MetadataPool, recoveryPool),
				PoolIDs: append(slices.Clone(system.DataPoolIDs), system.MetadataPoolID),
			}, nil
		}
	}
	return Scope{}, fmt.Errorf("the Ceph cluster has no file system %s", fileSystem)
}

// concern is the kind of object that the details of a check name.
type concern int

const (
	anything     concern = iota
	ofFileSystem         // "fs NAME …"
	ofPools              // "pool 'NAME' …"
	ofGroups             // "pg POOLID.N …"
	paused               // OSDMAP_FLAGS: its summary has the flags.
)

// finding is a health check of Ceph (docs of 18.2: rados/operations/health-checks, cephfs/health-messages) that concerns the
// users of a file system. Other checks only concern the administrators of Ceph.
type finding struct {
	code    string
	failing bool
	about   concern
	// words is the message, with %s for the objects that the details name.
	words string
}

// findings are in the order in which they are reported, the worst first.
var findings = []finding{
	{"MDS_ALL_DOWN", true, ofFileSystem, "no metadata server is active, and everything waits: start MDS daemons (ceph fs status)"},
	{"FS_WITH_FAILED_MDS", true, ofFileSystem, "a rank has no metadata server, and what belongs to it waits: start an MDS daemon (ceph fs status)"},
	{"MDS_DAMAGE", true, anything, "damaged metadata: %s; see ceph health detail, and Ceph's disaster recovery for CephFS"},
	{"MDS_READ_ONLY", true, anything, "%s is read-only, since it could not write metadata: mend what ceph health detail says of the metadata pool, and restart that MDS"},
	{"POOL_FULL", true, ofPools, "full, so that writes end with \"No space left on device\": %s; remove files or snapshots, add OSDs, or raise the pool's quota (ceph df, ceph osd df)"},
	{"OSDMAP_FLAGS", true, paused, "reading or writing is switched off, and everything waits: ceph osd unpause"},
	{"PG_AVAILABILITY", true, ofGroups, "some data has no OSD at present that may serve it, and who wants it waits: start the OSDs that are down (ceph pg dump_stuck)"},
	{"MON_DOWN", false, anything, "monitors out of quorum: %s; start them again, the others go on as long as they are a majority"},
	{"MGR_DOWN", false, anything, "no manager is active: new shares, quotas and snapshots wait; start a manager"},
	{"FS_DEGRADED", false, ofFileSystem, "a metadata server is being replaced, and what belongs to its rank waits for it: ceph fs status"},
	{"MDS_UP_LESS_THAN_MAX", false, ofFileSystem, "fewer metadata servers are active than max_mds asks for: start MDS daemons"},
	{"MDS_INSUFFICIENT_STANDBY", false, anything, "no metadata server stands by: the next one that fails is not replaced; start an MDS daemon"},
	{"MDS_SLOW_METADATA_IO", false, anything, "%s waits long for OSDs: see ceph health detail for OSDs that are down, full or slow"},
	{"MDS_CLIENT_LATE_RELEASE", false, anything, "%s waits for a client that does not let go of files, and keeps others waiting: ceph health detail names it, and evicting it helps"},
	{"OSD_DOWN", false, anything, "OSDs that are down: %s; start them again, clients go on with the other copies"},
	{"OSD_FULL", false, anything, "full OSDs: %s; add others, or remove files or snapshots (ceph osd df)"},
	{"OSD_BACKFILLFULL", false, anything, "OSDs too full to take copies from others: %s; add OSDs, or remove files or snapshots (ceph osd df)"},
	{"POOL_BACKFILLFULL", false, ofPools, "on OSDs too full to take copies from others: %s; add OSDs, or remove files or snapshots (ceph osd df)"},
	{"OSD_NEARFULL", false, anything, "nearly full OSDs: %s; add OSDs, or remove files or snapshots, before writes end with \"No space left on device\" (ceph osd df)"},
	{"POOL_NEARFULL", false, ofPools, "nearly full, which slows writes down: %s; add OSDs, or remove files or snapshots (ceph df)"},
	{"PG_DAMAGED", false, anything, "some data is damaged in one of its copies: ceph health detail says which, ceph pg repair mends it"},
	{"PG_DEGRADED", false, anything, "some data has fewer copies than it should have, until Ceph has made them again"},
	{"SLOW_OPS", false, anything, "operations take longer than 30 s: ceph health detail says on which daemons"},
}

// implied has the findings that another one implies: without any metadata server, fewer are active than max_mds, too.
var implied = map[string][]string{
	"MDS_ALL_DOWN":       {"FS_WITH_FAILED_MDS", "FS_DEGRADED", "MDS_UP_LESS_THAN_MAX", "MDS_INSUFFICIENT_STANDBY"},
	"FS_WITH_FAILED_MDS": {"FS_DEGRADED", "MDS_UP_LESS_THAN_MAX", "MDS_INSUFFICIENT_STANDBY"},
	"POOL_FULL":          {"POOL_BACKFILLFULL", "POOL_NEARFULL"},
}

type check struct {
	Severity string `json:"severity"`
	Summary  struct {
		Message string `json:"message"`
	} `json:"summary"`
	Detail []struct {
		Message string `json:"message"`
	} `json:"detail"`
	Muted bool `json:"muted"`
}

// ParseHealth reads the answer to HealthDetail.
func ParseHealth(scope Scope, answer string) (Health, error) {
	var parsed struct {
		Checks map[string]check `json:"checks"`
	}
	if err := json.Unmarshal([]byte(answer), &parsed); err != nil {
		return Health{}, fmt.Errorf("reading the health of the Ceph cluster: %w", err)
	}
	var health Health
	skipped := map[string]bool{}
	for _, f := range findings {
		found, there := parsed.Checks[f.code]
		if !there || found.Muted || skipped[f.code] {
			continue
		}
		objects, concerned := f.concerns(scope, found)
		if !concerned {
			continue
		}
		for _, code := range implied[f.code] {
			skipped[code] = true
		}
		sentence := f.words
		if strings.Contains(sentence, "%s") {
			sentence = fmt.Sprintf(sentence, list(objects))
		}
		sentence += " [" + f.code + "]"
		if f.failing {
			health.Failing = append(health.Failing, sentence)
		} else {
			health.Degraded = append(health.Degraded, sentence)
		}
	}
	return health, nil
}

// concerns reports whether a check is about the scope, and which objects its details name.
func (f finding) concerns(scope Scope, found check) (objects []string, is bool) {
	if f.about == paused {
		return nil, strings.Contains(found.Summary.Message, "pauserd") || strings.Contains(found.Summary.Message, "pausewr")
	}
	for _, detail := range found.Detail {
		text := detail.Message
		if strings.HasPrefix(text, "fs ") && !strings.HasPrefix(text, "fs "+scope.FileSystem+" ") {
			continue // Another file system or pool.
		}
		switch f.about {
		case ofFileSystem:
			is = is || strings.HasPrefix(text, "fs ")
			continue
		case ofGroups:
			is = is || slices.ContainsFunc(scope.PoolIDs, func(id int64) bool { return strings.HasPrefix(text, fmt.Sprintf("pg %d.", id)) })
			continue
		case ofPools:
			if !slices.ContainsFunc(scope.Pools, func(name string) bool { return strings.HasPrefix(text, "pool '"+name+"' ") }) {
				continue
			}
		}
		objects = append(objects, object(text))
		is = true
	}
	slices.Sort(objects)
	return slices.Compact(objects), is || f.about == anything && len(found.Detail) == 0
}

// object returns the object at the start of a detail, as in "osd.1 (root=default,host=node2) is down" or
// "mds.a(mds.0): 3 slow metadata IOs are blocked".
func object(detail string) string {
	for _, end := range []string{" is ", ": ", " addr ", " has "} {
		if at := strings.Index(detail, end); at > 0 {
			detail = detail[:at]
		}
	}
	return detail
}

// list joins the first objects.
func list(objects []string) string {
	const most = 5
	if len(objects) == 0 {
		return "something (ceph health detail names it)"
	}
	text := strings.Join(objects[:min(len(objects), most)], ", ")
	if more := len(objects) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
