package ceph

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden file again")

const uid = "8c5b9a0e-2c57-4d6e-9c0e-0d6f7f0a1b2c"

// commands has all commands that Howdah sends.
func commands() []Command {
	volume := Volume{FileSystem: "fs1", Group: Group(uid)}
	subvolume, user := Subvolume(uid, "unet3d"), ShareUser(uid, "unet3d")
	recovery := RecoveryUser(uid, 2)
	return []Command{
		volume.CreateGroup(), volume.Create(subvolume), volume.Info(subvolume), volume.Resize(subvolume, 10<<40), volume.Resize(subvolume, 0),
		volume.Authorize(subvolume, user), volume.Deauthorize(subvolume, user), volume.Evict(subvolume, user), volume.Remove(subvolume),
		GetUser(user), CreateRecoveryUser(recovery, "howdah", Node(uid, 2)), RemoveUser(recovery), Blocklist("10.0.0.7:0/1234", 2*time.Minute),
		volume.CreateSnapshot(subvolume, "before-upgrade"), volume.SnapshotInfo(subvolume, "before-upgrade"), volume.RemoveSnapshot(subvolume, "before-upgrade"),
		volume.Clone(subvolume, "before-upgrade", Subvolume(uid, "restored")), volume.CloneStatus(Subvolume(uid, "restored")), volume.CancelClone(Subvolume(uid, "restored")),
		volume.RemoveUnfinished(Subvolume(uid, "restored")),
		FileSystems(), Usage(),
	}
}

func TestCommands(t *testing.T) {
	var lines strings.Builder
	for _, c := range commands() {
		text, err := json.Marshal(c.Arguments)
		if err != nil {
			t.Fatal(err)
		}
		lines.WriteString(string(c.Target) + " " + string(text) + "\n")
	}
	if *update {
		if err := os.WriteFile("testdata/commands", []byte(lines.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile("testdata/commands")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), lines.String()); diff != "" {
		t.Error(diff)
	}
}

// The lab's provisioning account has the least capabilities that suffice. They name the commands that are sent.
func TestEveryCommandIsInTheCapsOfTheLeastAccount(t *testing.T) {
	text, err := os.ReadFile("../../hack/lab/ceph/accounts.json")
	if err != nil {
		t.Fatal(err)
	}
	var accounts map[string]map[Target][]string
	if err := json.Unmarshal(text, &accounts); err != nil {
		t.Fatal(err)
	}
	caps := accounts["howdah-provisioner"]
	readOnly := map[string]bool{"fs ls": true, "df": true} // mon "allow r"
	for _, c := range commands() {
		name := c.Arguments["prefix"].(string)
		covered := readOnly[name]
		for _, granted := range caps[c.Target] {
			covered = covered || strings.HasPrefix(granted, `allow command "`+name+`"`)
		}
		if !covered {
			t.Errorf("no cap for %s is granted to the %s", name, c.Target)
		}
		for argument, start := range map[string]string{"group_name": "howdah", "target_group_name": "howdah", "auth_id": "howdah-", "entity": "client.howdah-"} {
			if value, given := c.Arguments[argument]; given && !strings.HasPrefix(value.(string), start) {
				t.Errorf("%s of %s is %v, and the caps are for those that start with %s", argument, name, value, start)
			}
		}
	}
}

// The account that Rook makes has no more capabilities than the lab's, which test/ceph attacks, and has those for all commands
// that are sent.
func TestTheAccountOfOneFileServerHasTheLeastCapsNarrowed(t *testing.T) {
	text, err := os.ReadFile("../../hack/lab/ceph/accounts.json")
	if err != nil {
		t.Fatal(err)
	}
	var accounts map[string]map[string][]string
	if err := json.Unmarshal(text, &accounts); err != nil {
		t.Fatal(err)
	}
	widened := strings.NewReplacer("group_name="+Group(uid), "group_name prefix howdah", "howdah-rec-"+uid+"-", "howdah-rec-", "namespace="+uid+"-[0-9]+", "namespace=[a-z0-9-]+")
	caps := AccountCaps(uid, "fs1", "howdah")
	for daemon, granted := range caps {
		for _, one := range strings.Split(granted, ", ") {
			if !slices.Contains(accounts["howdah-provisioner"][daemon], widened.Replace(one)) {
				t.Errorf("the lab's account has no such cap for %s: %s", daemon, one)
			}
			if daemon == "mgr" && !strings.Contains(one, Group(uid)) {
				t.Errorf("it is for any group: %s", one)
			}
		}
	}
	readOnly := []string{"fs ls", "df"}
	for _, c := range commands() {
		if name := c.Arguments["prefix"].(string); !slices.Contains(readOnly, name) && !strings.Contains(caps[string(c.Target)], fmt.Sprintf("allow command %q", name)) {
			t.Errorf("no cap for %s", name)
		}
	}
	if account := "client." + Account(uid); strings.HasPrefix(account, "client.howdah-") {
		t.Errorf("another FileServer's account may read the key of %s", account)
	}
	if strings.Contains(AccountCaps(uid, "fs1", "a.b")["mon"], "pool=a.b ") {
		t.Error("a dot in a pool's name stands for any character")
	}
}

func TestNamesAreOfOneShareOrServer(t *testing.T) {
	seen := map[string]bool{}
	for _, name := range []string{
		Subvolume(uid, "a"), Subvolume(uid, "b"), Subvolume("other", "a"), ShareUser(uid, "a"), ShareUser(uid, "b"), ShareUser("other", "a"),
		RecoveryUser(uid, 0), RecoveryUser(uid, 1), RecoveryUser(uid, 11), RecoveryUser("other", 1),
	} {
		if seen[name] {
			t.Errorf("%s is twice", name)
		}
		seen[name] = true
		if len(name) > 64 {
			t.Errorf("%s has %d characters; ganesha takes 64 of a user", name, len(name))
		}
	}
}

func TestInfo(t *testing.T) {
	for name, tc := range map[string]struct {
		answer string
		want   SubvolumeInfo
		wrong  string
	}{
		"with a quota":    {`{"path":"/volumes/g/s/1","bytes_quota":1024,"bytes_used":7,"state":"complete"}`, SubvolumeInfo{"/volumes/g/s/1", 1024, 7, true}, ""},
		"without one":     {`{"path":"/volumes/g/s/1","bytes_quota":"infinite","bytes_used":7,"state":"complete"}`, SubvolumeInfo{"/volumes/g/s/1", 0, 7, true}, ""},
		"being cloned":    {`{"bytes_quota":"infinite","bytes_used":0,"state":"in-progress"}`, SubvolumeInfo{}, ""},
		"of another one":  {`{"path":"/volumes/g/s2/1","bytes_quota":"infinite","state":"complete"}`, SubvolumeInfo{}, "another one"},
		"without a path":  {`{"bytes_quota":"infinite","state":"complete"}`, SubvolumeInfo{}, "no path"},
		"an odd quota":    {`{"path":"/s","bytes_quota":"much","state":"complete"}`, SubvolumeInfo{}, "quota"},
		"something else":  {`Error`, SubvolumeInfo{}, "reading Ceph's answer"},
		"without a quota": {`{"path":"/s","state":"complete"}`, SubvolumeInfo{}, "quota"},
	} {
		got, err := ParseInfo(tc.answer, "s")
		if tc.wrong == "" && (err != nil || got != tc.want) || tc.wrong != "" && (err == nil || !strings.Contains(err.Error(), tc.wrong)) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

func TestKey(t *testing.T) {
	for answer, want := range map[string]string{
		`[{"entity":"client.howdah-a","key":"AQ==","caps":{"mon":"allow r"}}]`: "AQ==",
		`[{"entity":"client.other","key":"AQ=="}]`:                             "",
		`[{"entity":"client.howdah-a"}]`:                                       "",
		`[]`:                                                                   "",
	} {
		if got, err := ParseKey(answer, "howdah-a"); got != want || (err == nil) != (want != "") {
			t.Errorf("%s: %q, %v", answer, got, err)
		}
	}
	if _, err := ParseKey(`[{"entity":"client.howdah-a","key":"SECRET"`, "howdah-a"); err == nil || strings.Contains(err.Error(), "SECRET") {
		t.Errorf("a key in an error: %v", err)
	}
}

// ceph auth get-or-create-pending makes a second key, which replaces the first one at its first use.
func TestThePendingKeyIsTheNewest(t *testing.T) {
	const answer = `[{"entity":"client.a","key":"OLD==","pending_key":"NEW==","caps":{}}]`
	now, err := ParseKey(answer, "a")
	newest, worse := ParseNewestKey(answer, "a")
	if now != "OLD==" || newest != "NEW==" || err != nil || worse != nil {
		t.Errorf("%s, %v; %s, %v", now, err, newest, worse)
	}
	if newest, err := ParseNewestKey(`[{"entity":"client.a","key":"OLD=="}]`, "a"); newest != "OLD==" || err != nil {
		t.Errorf("%s, %v", newest, err)
	}
}

func TestCapacityIsThatOfTheDataPools(t *testing.T) {
	const systems = `[{"name":"fs1","metadata_pool":"m","data_pools":["d1","d2"]},{"name":"fs2","data_pools":["x"]}]`
	const pools = `{"pools":[{"name":"m","stats":{"stored":5,"max_avail":900}},{"name":"d1","stats":{"stored":100,"max_avail":900}},
		{"name":"d2","stats":{"stored":20,"max_avail":300}},{"name":"x","stats":{"stored":7,"max_avail":900}}]}`
	got, err := ParseCapacity("fs1", systems, pools)
	if err != nil || got != (Capacity{1020, 120}) {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := ParseCapacity("fs3", systems, pools); err == nil || !strings.Contains(err.Error(), `no file system fs3; it has: fs1, fs2`) {
		t.Errorf("%v", err)
	}
}

func TestPlacesAreFoundOrNamed(t *testing.T) {
	const systems = `[{"name":"fs1","data_pools":["d1"]}]`
	const pools = `{"pools":[{"name":"d1"},{"name":"howdah"}]}`
	for _, tc := range []struct{ fileSystem, pool, systems, want string }{
		{"fs1", "howdah", systems, ""},
		{"fs2", "howdah", systems, "no file system fs2; it has: fs1"},
		{"fs2", "howdah", "[]", "no file system fs2, and no other"},
		{"fs1", "recovery", systems, "ceph osd pool create recovery && ceph osd pool application enable recovery howdah"},
		{"fs1", "d1", systems, "has the data of file system fs1"},
	} {
		err := FindPlaces(tc.fileSystem, tc.pool, tc.systems, pools)
		if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s and pool %s: %v", tc.fileSystem, tc.pool, err)
		}
	}
}

func TestAServerJoinsItsGraceObjectOnceAndAlone(t *testing.T) {
	made, err := JoinGrace(nil, "a-0")
	if err != nil {
		t.Fatal(err)
	}
	want := &Change{Create: true, Data: []byte{1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, Set: map[string][]byte{"a-0": {2}}}
	if diff := cmp.Diff(want, made); diff != "" {
		t.Error(diff)
	}
	object := &Object{Data: made.Data, Keys: made.Set, Version: 3}
	if again, err := JoinGrace(object, "a-0"); again != nil || err != nil {
		t.Errorf("a member joins again: %+v, %v", again, err)
	}
	if object.InGrace() || object.NeedsGrace("a-0") {
		t.Error("a new server is in grace")
	}
	empty := &Object{Data: made.Data, Version: 7}
	if joined, err := JoinGrace(empty, "a-0"); err != nil || joined.Version != 7 || joined.Create || joined.Data != nil || joined.Set["a-0"][0] != 2 {
		t.Errorf("joining an object that is there: %+v, %v", joined, err)
	}
	for name, broken := range map[string]*Object{
		"not a grace object": {Data: []byte("text")},
		"server b-1":         {Data: made.Data, Keys: map[string][]byte{"a-0": {2}, "b-1": {2}}},
	} {
		if change, err := JoinGrace(broken, "a-0"); change != nil || err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %+v, %v", name, change, err)
		}
	}
	recovering := &Object{Data: []byte{3, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0}, Keys: map[string][]byte{"a-0": {3}}}
	if !recovering.InGrace() || !recovering.NeedsGrace("a-0") {
		t.Error("a server that recovers is not in grace")
	}
}

func TestTheDeadAreNamedOnce(t *testing.T) {
	if diff := cmp.Diff([]string{"10.0.0.1:0/1", "10.0.0.1:0/2"}, Dead([]Watcher{{"10.0.0.1:0/2"}, {"10.0.0.1:0/1"}, {"10.0.0.1:0/2"}})); diff != "" {
		t.Error(diff)
	}
}
