package snapshots

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/ceph"
)

const uid = "8c5b9a0e-2c57-4d6e-9c0e-0d6f7f0a1b2c"

var noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

// cluster is a fake Ceph with one subvolume. It behaves as 18.2.7 did: making a snapshot that exists succeeds, and removing a
// snapshot that is being cloned fails.
type cluster struct {
	noSubvolume bool
	snapshots   map[string]string // Ceph's answer for each, by name.
	fail        map[string]error  // By command.
	asked       []string
}

func (c *cluster) Command(_ context.Context, command ceph.Command) (string, error) {
	name := command.Arguments["prefix"].(string)
	if command.Arguments["group_name"] != "howdah-"+uid || command.Arguments["sub_name"] != ceph.Subvolume(uid, "data") || command.Arguments["vol_name"] != "fs1" {
		return "", fmt.Errorf("%v", command.Arguments)
	}
	if err := c.fail[name]; err != nil {
		return "", err
	}
	if c.noSubvolume {
		return "", syscall.ENOENT
	}
	snapshot, _ := command.Arguments["snap_name"].(string)
	answer, exists := c.snapshots[snapshot]
	switch name {
	case "fs subvolume info":
		return `{"path":"` + dataPath + `","bytes_quota":"infinite","bytes_used":4096,"state":"complete"}`, nil
	case "fs subvolume snapshot info":
		if !exists {
			return "", syscall.ENOENT
		}
		return answer, nil
	case "fs subvolume snapshot create":
		c.asked = append(c.asked, "create")
		if !exists {
			c.snapshots[snapshot] = `{"created_at":"2026-11-22 12:00:05.000001","has_pending_clones":"no"}`
		}
		return "", nil
	case "fs subvolume snapshot rm":
		c.asked = append(c.asked, "rm")
		if !exists {
			return "", syscall.ENOENT
		}
		delete(c.snapshots, snapshot)
		return "", nil
	}
	return "", errors.New(name)
}

// dataPath is where Ceph has the data of share "data".
var dataPath = "/volumes/g/" + ceph.Subvolume(uid, "data") + "/1"

func (c *cluster) List(_ context.Context, user, root, path string) ([]string, error) {
	if user != ceph.ShareUser(uid, "data") || root != dataPath || path != "/.snap" {
		return nil, fmt.Errorf("%s %s %s", user, root, path)
	}
	var names []string
	for name := range c.snapshots {
		names = append(names, "_"+name+"_1099511627786")
	}
	return names, c.fail["list"]
}

// world is an API with one ShareSnapshot.
func world(t *testing.T, c *cluster, change func(*internalv1.ShareSnapshot)) (*Reconciler, func() *internalv1.ShareSnapshot) {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := internalv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	snapshot := &internalv1.ShareSnapshot{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "data.now", Finalizers: []string{v1alpha1.StoredSnapshotFinalizer}},
		Spec: internalv1.ShareSnapshotSpec{
			FileServerRef: internalv1.FileServerReference{Name: "training"}, FileServerUID: uid,
			FileShareRef: internalv1.FileShareReference{Name: "data"}, SnapshotName: "now",
		},
	}
	if change != nil {
		change(snapshot)
	}
	if c.snapshots == nil {
		c.snapshots = map[string]string{}
	}
	api := fake.NewClientBuilder().WithScheme(scheme).WithObjects(snapshot).WithStatusSubresource(snapshot).Build()
	return &Reconciler{API: api, Ceph: c, FileSystem: "fs1", UID: uid, ShareOf: shareOf, Now: func() time.Time { return noon }}, func() *internalv1.ShareSnapshot {
		now := &internalv1.ShareSnapshot{}
		if err := api.Get(t.Context(), client.ObjectKeyFromObject(snapshot), now); err != nil {
			t.Fatal(err)
		}
		return now
	}
}

func ready(snapshot *internalv1.ShareSnapshot) string {
	if meta.FindStatusCondition(snapshot.Status.Conditions, internalv1.SnapshotRemoved) != nil {
		return "gone"
	}
	if c := meta.FindStatusCondition(snapshot.Status.Conditions, v1alpha1.ConditionReady); c != nil {
		return fmt.Sprintf("%s %s: %s", c.Status, c.Reason, c.Message)
	}
	return ""
}

func shareOf(subvolume string) string {
	if subvolume == ceph.Subvolume(uid, "restored") {
		return "restored"
	}
	return ""
}

func begun(s *internalv1.ShareSnapshot) { s.Status.BeginTime = &metav1.Time{Time: noon} }

func deleted(s *internalv1.ShareSnapshot) {
	begun(s)
	s.DeletionTimestamp = &metav1.Time{Time: noon}
}

const there = `{"created_at":"2026-11-22 11:59:00.5","has_pending_clones":"no"}`

func TestASnapshotIsMadeOnce(t *testing.T) {
	c := &cluster{}
	reconciler, now := world(t, c, nil)
	for range 3 {
		if err := reconciler.Pass(t.Context(), now()); err != nil {
			t.Fatal(err)
		}
	}
	got := now()
	if !slices.Equal(c.asked, []string{"create"}) || ready(got) != "True Ready: the snapshot is there" || got.Status.Path != ".snap/_now_1099511627786" ||
		*got.Status.SizeBytes != 4096 || !got.Status.CreationTime.Equal(&metav1.Time{Time: noon.Add(5 * time.Second)}) || !got.Status.BeginTime.Equal(&metav1.Time{Time: noon}) {
		t.Errorf("%v %q %+v", c.asked, ready(got), got.Status)
	}
}

func TestPass(t *testing.T) {
	for name, tc := range map[string]struct {
		cluster cluster
		change  func(*internalv1.ShareSnapshot)
		// asked are the changing commands that Ceph got, status is the condition Ready; "gone": the object may be deleted.
		asked, status string
		fails         bool
	}{
		"made by a steward that died then": {cluster{snapshots: map[string]string{"now": there}}, begun, "", "True Ready", false},
		"not made by Howdah":               {cluster{snapshots: map[string]string{"now": there}}, nil, "", "False NameTaken: the share has a snapshot now in Ceph already, of 2026-11-22T11:59:00Z", true},
		"no place yet":                     {cluster{noSubvolume: true}, nil, "", "False SnapshotFailed: the share has no place in Ceph yet", true},
		"too many": {
			cluster{fail: map[string]error{"fs subvolume snapshot create": syscall.EMLINK}}, nil, "", "False SnapshotFailed: Ceph did not make the snapshot: too many links", true,
		},
		"Ceph is away": {cluster{fail: map[string]error{"fs subvolume snapshot info": syscall.ETIMEDOUT}}, nil, "", "False SnapshotFailed: asking Ceph", true},
		"the share can't be looked at": {
			cluster{snapshots: map[string]string{"now": there}, fail: map[string]error{"list": syscall.EACCES}}, begun, "", "False SnapshotFailed: looking for the snapshot", true,
		},
		"removed":            {cluster{snapshots: map[string]string{"now": there, "other": there}}, deleted, "rm", "gone", false},
		"removed before":     {cluster{}, deleted, "", "gone", false},
		"never made":         {cluster{}, func(s *internalv1.ShareSnapshot) { s.DeletionTimestamp = &metav1.Time{Time: noon} }, "", "gone", false},
		"removed, not ours":  {cluster{snapshots: map[string]string{"now": there}}, func(s *internalv1.ShareSnapshot) { s.DeletionTimestamp = &metav1.Time{Time: noon} }, "", "gone", false},
		"removed with share": {cluster{noSubvolume: true}, deleted, "", "gone", false},
		"being cloned": {
			cluster{snapshots: map[string]string{"now": strings.Replace(there, `"no"`, `"yes"`, 1)}}, deleted, "", "False SnapshotFailed: the snapshot is being copied to another subvolume", true,
		},
		"being cloned, Ceph tells to where": {
			cluster{snapshots: map[string]string{"now": strings.Replace(there, `"no"`, `"yes","pending_clones":[{"name":"`+ceph.Subvolume(uid, "restored")+`"},{"name":"theirs"}]`, 1)}},
			deleted, "",
			"False SnapshotFailed: the snapshot is being copied to FileShare restored, subvolume theirs; it is removed when that is done", true,
		},
		"not removed": {
			cluster{snapshots: map[string]string{"now": there}, fail: map[string]error{"fs subvolume snapshot rm": syscall.EBUSY}},
			deleted, "",
			"False SnapshotFailed: Ceph did not remove the snapshot", true,
		},
	} {
		reconciler, now := world(t, &tc.cluster, tc.change)
		err := reconciler.Pass(t.Context(), now())
		got := ready(now())
		if (err != nil) != tc.fails || strings.Join(tc.cluster.asked, " ") != tc.asked || !strings.HasPrefix(got, tc.status) {
			t.Errorf("%s: %v; asked %v; %s", name, err, tc.cluster.asked, got)
		}
		if _, kept := tc.cluster.snapshots["now"]; name == "removed, not ours" && !kept {
			t.Errorf("%s: it is gone", name)
		}
	}
}

// A steward that was cut off may know an object that was deleted and replaced by another one.
func TestNothingIsRemovedThatAnotherOneHasMade(t *testing.T) {
	c := &cluster{snapshots: map[string]string{"now": there}}
	reconciler, now := world(t, c, begun)
	old := now()
	deleted(old)
	if err := reconciler.Pass(t.Context(), old); err == nil || len(c.asked) > 0 {
		t.Errorf("%v, %v", err, c.asked)
	}
}
