package ceph

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// Answers of Ceph 18.2.7: fs ls as in the lab, health as in its source (mon/health_check.h, osd/OSDMap.cc, mds/MDSMap.cc).
const fileSystems = `[{"name":"fs1","metadata_pool":"cephfs.fs1.meta","metadata_pool_id":1,"data_pool_ids":[2],"data_pools":["cephfs.fs1.data"]},
	{"name":"fs10","metadata_pool":"m","metadata_pool_id":20,"data_pool_ids":[21],"data_pools":["d"]}]`

func healthOf(code, severity, summary string, details ...string) string {
	var detail []string
	for _, text := range details {
		detail = append(detail, fmt.Sprintf(`{"message":%q}`, text))
	}
	return fmt.Sprintf(`{"status":%q,"checks":{%q:{"severity":%[1]q,"summary":{"message":%[3]q,"count":1},"detail":[%[4]s],"muted":false}},"mutes":[]}`,
		severity, code, summary, strings.Join(detail, ","))
}

func TestHealthNamesWhatIsAtFaultAndWhatToDo(t *testing.T) {
	scope, err := ScopeOf("fs1", "howdah", fileSystems)
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		answer            string
		failing, degraded string
	}{
		"well":                   {`{"status":"HEALTH_OK","checks":{},"mutes":[]}`, "", ""},
		"an OSD":                 {healthOf("OSD_DOWN", "HEALTH_WARN", "1 osds down", "osd.1 (root=default,host=node2) is down"), "", "OSDs that are down: osd.1 (root=default,host=node2); start them again, clients go on with the other copies [OSD_DOWN]"},
		"a monitor":              {healthOf("MON_DOWN", "HEALTH_WARN", "1/3 mons down", "mon.b (rank 1) addr [v2:10.0.0.2:3300/0] is down (out of quorum)"), "", "monitors out of quorum: mon.b (rank 1); start"},
		"all metadata servers":   {healthOf("MDS_ALL_DOWN", "HEALTH_ERR", "1 filesystem is offline", "fs fs1 is offline because no MDS is active for it."), "no metadata server is active", ""},
		"a damaged rank":         {healthOf("MDS_DAMAGE", "HEALTH_ERR", "1 mds daemon damaged", "fs fs1 mds.0 is damaged"), "damaged metadata: fs fs1 mds.0; see", ""},
		"another's damaged rank": {healthOf("MDS_DAMAGE", "HEALTH_ERR", "1 mds daemon damaged", "fs fs10 mds.0 is damaged"), "", ""},
		"a manager":              {healthOf("MGR_DOWN", "HEALTH_WARN", "no active mgr"), "", "no manager is active"},
		"all, and what else of it": {
			`{"checks":{"MDS_ALL_DOWN":{"detail":[{"message":"fs fs1 is offline because no MDS is active for it."}]},"FS_DEGRADED":{"detail":[{"message":"fs fs1 is degraded"}]}}}`,
			"no metadata server is active", "",
		},
		"another file system's": {healthOf("MDS_ALL_DOWN", "HEALTH_ERR", "1 filesystem is offline", "fs fs10 is offline because no MDS is active for it."), "", ""},
		"a failover":            {healthOf("FS_DEGRADED", "HEALTH_WARN", "1 filesystem is degraded", "fs fs1 is degraded"), "", "a metadata server is being replaced"},
		"no standby":            {healthOf("MDS_INSUFFICIENT_STANDBY", "HEALTH_WARN", "insufficient standby MDS daemons available", "have 0; want 1 more"), "", "no metadata server stands by"},
		"slow metadata":         {healthOf("MDS_SLOW_METADATA_IO", "HEALTH_WARN", "1 MDSs report slow metadata IOs", "mds.ceph-mds-0(mds.0): 3 slow metadata IOs are blocked > 30 secs, oldest blocked for 41 secs"), "", "mds.ceph-mds-0(mds.0) waits long for OSDs"},
		"full": {
			healthOf("POOL_FULL", "HEALTH_WARN", "3 pool(s) full", "pool 'cephfs.fs1.data' is full (no space)", "pool 'd' is full (no space)", "pool 'howdah' is full (no space)"),
			`full, so that writes end with "No space left on device": pool 'cephfs.fs1.data', pool 'howdah'; remove`, "",
		},
		"another pool is full": {healthOf("POOL_FULL", "HEALTH_WARN", "1 pool(s) full", "pool 'd' is full (no space)"), "", ""},
		"nearly full":          {healthOf("OSD_NEARFULL", "HEALTH_WARN", "2 nearfull osd(s)", "osd.2 is near full", "osd.0 is near full"), "", "nearly full OSDs: osd.0, osd.2; add OSDs"},
		"data without an OSD":  {healthOf("PG_AVAILABILITY", "HEALTH_WARN", "Reduced data availability", "pg 2.5 is stuck inactive for 34s, current state unknown"), "some data has no OSD", ""},
		"other data without an OSD": {
			healthOf("PG_AVAILABILITY", "HEALTH_WARN", "Reduced data availability", "pg 21.5 is stuck inactive for 34s, current state unknown"), "", "",
		},
		"paused":              {healthOf("OSDMAP_FLAGS", "HEALTH_WARN", "pauserd,pausewr flag(s) set"), "ceph osd unpause", ""},
		"a harmless flag":     {healthOf("OSDMAP_FLAGS", "HEALTH_WARN", "noout flag(s) set"), "", ""},
		"muted":               {strings.Replace(healthOf("OSD_DOWN", "HEALTH_WARN", "", "osd.1 is down"), `"muted":false`, `"muted":true`, 1), "", ""},
		"no concern of users": {healthOf("RECENT_CRASH", "HEALTH_WARN", "1 daemons have recently crashed"), "", ""},
	} {
		got, err := ParseHealth(scope, tc.answer)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for what, pair := range map[string][2]string{"failing": {strings.Join(got.Failing, "; "), tc.failing}, "degraded": {strings.Join(got.Degraded, "; "), tc.degraded}} {
			if message, want := pair[0], pair[1]; (want == "") != (message == "") || !strings.Contains(message, want) {
				t.Errorf("%s: %s is %q, want %q", name, what, message, want)
			}
		}
	}
}

// A message that changes without a reason would cause a write to the API each time.
func TestHealthMessagesHaveNoChangingNumbers(t *testing.T) {
	scope, err := ScopeOf("fs1", "howdah", fileSystems)
	if err != nil {
		t.Fatal(err)
	}
	say := func(seconds int) Health {
		t.Helper()
		answer := healthOf("MDS_SLOW_METADATA_IO", "HEALTH_WARN", fmt.Sprintf("%d slow", seconds), fmt.Sprintf("mds.a(mds.0): %d slow metadata IOs are blocked > 30 secs", seconds))
		got, err := ParseHealth(scope, answer)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	if a, b := say(31), say(99); !slices.Equal(a.Degraded, b.Degraded) || len(a.Degraded) != 1 {
		t.Errorf("%q, %q", a, b)
	}
}

func TestManyObjectsAreCounted(t *testing.T) {
	var details []string
	for i := range 8 {
		details = append(details, fmt.Sprintf("osd.%d is near full", i))
	}
	got, err := ParseHealth(Scope{}, healthOf("OSD_NEARFULL", "HEALTH_WARN", "", details...))
	if err != nil || len(got.Degraded) != 1 || !strings.Contains(got.Degraded[0], ": osd.0, osd.1, osd.2, osd.3, osd.4 and 3 more;") {
		t.Errorf("%q, %v", got.Degraded, err)
	}
}

func TestTheScopeIsOneFileSystem(t *testing.T) {
	scope, err := ScopeOf("fs1", "howdah", fileSystems)
	if err != nil || !slices.Equal(scope.Pools, []string{"cephfs.fs1.data", "cephfs.fs1.meta", "howdah"}) || !slices.Equal(scope.PoolIDs, []int64{2, 1}) {
		t.Errorf("%+v, %v", scope, err)
	}
	if _, err := ScopeOf("fs2", "howdah", fileSystems); err == nil {
		t.Error("a file system that there is not")
	}
}
