package rook

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/test/builders"
)

const (
	fsid    = "6f0c2a9e-3b1d-4c55-9a77-0d6f7f0a1b2c"
	another = "00000000-0000-0000-0000-000000000001"
)

func cluster(phase, health string) *Cluster {
	c := &Cluster{}
	c.Status.Phase, c.Status.Message = phase, "Cluster created successfully"
	c.Status.Ceph.FSID, c.Status.Ceph.Health = fsid, health
	return c
}

func external() *Cluster {
	c := cluster("Connected", "HEALTH_OK")
	c.Spec.External.Enable = true
	return c
}

func resource(phase string) *Resource {
	r := &Resource{}
	r.Status.Phase = phase
	return r
}

func deleted() Metadata { return Metadata{DeletionTimestamp: "2026-11-22T00:00:00Z"} }

// whole is a cluster with nothing amiss.
func whole() Objects {
	return Objects{
		Cluster: cluster("Ready", "HEALTH_OK"), FileSystem: resource("Ready"), Group: resource("Ready"), Client: resource("Ready"),
		Monitors: map[string]string{"data": "b=10.0.0.2:6789,a=10.0.0.1:6789"},
	}
}

func TestVerdicts(t *testing.T) {
	before := Place{Monitors: []string{"10.0.0.9:6789"}, FSID: fsid}
	for name, tc := range map[string]struct {
		change func(*Objects)
		known  Place
		// words are in the fault; "" if there must be none.
		words     string
		transient bool
		mayAsk    bool
		monitors  string
	}{
		"nothing amiss":                   {change: func(*Objects) {}, mayAsk: true, monitors: "10.0.0.1:6789 10.0.0.2:6789"},
		"a warning is no fault":           {change: func(o *Objects) { o.Cluster = cluster("Ready", "HEALTH_WARN") }, mayAsk: true, monitors: "10.0.0.1:6789 10.0.0.2:6789"},
		"Rook's operator has just begun":  {change: func(o *Objects) { o.Cluster = cluster("Progressing", "HEALTH_OK") }, mayAsk: true, monitors: "10.0.0.1:6789 10.0.0.2:6789"},
		"no Rook":                         {change: func(o *Objects) { *o = Objects{NotInstalled: "CephCluster"} }, words: "Rook is not installed: the API server knows no CephCluster.ceph.rook.io"},
		"Rook removed under what runs":    {change: func(o *Objects) { *o = Objects{NotInstalled: "CephCluster"} }, known: before, words: "Rook is not installed", monitors: "10.0.0.9:6789"},
		"no right to read":                {change: func(o *Objects) { *o = Objects{Forbidden: "CephCluster"} }, words: "the operator may not read CephCluster: install Howdah with rook.enabled=true"},
		"no CephCluster":                  {change: func(o *Objects) { o.Cluster = nil }, words: "there is no CephCluster rook-ceph in Kubernetes namespace ml"},
		"no CephCluster any more":         {change: func(o *Objects) { o.Cluster = nil }, known: before, words: "there is no CephCluster", monitors: "10.0.0.9:6789"},
		"a CephCluster that goes":         {change: func(o *Objects) { o.Cluster.Metadata = deleted() }, known: before, words: "CephCluster rook-ceph is being deleted", monitors: "10.0.0.1:6789 10.0.0.2:6789"},
		"a CephCluster that has no state": {change: func(o *Objects) { o.Cluster = &Cluster{} }, words: "CephCluster rook-ceph, which has no status yet", transient: true},
		"a CephCluster that comes": {change: func(o *Objects) {
			o.Cluster = cluster("Progressing", "")
			o.Cluster.Status.Message = "Configuring Ceph Mons"
		}, words: "is Progressing: Configuring Ceph Mons", transient: true},
		"a CephCluster that can't":  {change: func(o *Objects) { o.Cluster = cluster("Failure", "") }, words: "which is Failure"},
		"another cluster by now":    {change: func(o *Objects) { o.Cluster.Status.Ceph.FSID = another }, known: before, words: "now another Ceph cluster: its fsid is " + another + ", but the shares are in " + fsid, monitors: "10.0.0.9:6789"},
		"HEALTH_ERR from the start": {change: func(o *Objects) { o.Cluster.Status.Ceph.Health = "HEALTH_ERR" }, words: "CephCluster rook-ceph is HEALTH_ERR, and Rook changes nothing"},
		"HEALTH_ERR later, monitors move": {change: func(o *Objects) {
			o.Cluster.Status.Ceph.Health = "HEALTH_ERR"
			o.Cluster.Status.Ceph.Details = map[string]HealthDetail{"OSD_FULL": {"HEALTH_ERR", "1 full osd(s)"}, "OSD_DOWN": {"HEALTH_WARN", "1 osds down"}}
		}, known: before, words: "HEALTH_ERR (OSD_FULL: 1 full osd(s)), and", monitors: "10.0.0.1:6789 10.0.0.2:6789"},
		"no monitors yet":          {change: func(o *Objects) { o.Monitors = nil }, words: "waiting for Rook to write ConfigMap rook-ceph-mon-endpoints", transient: true},
		"monitors that are none":   {change: func(o *Objects) { o.Monitors["data"] = "a=mon.example:6789,b=10.0.0.1" }, known: before, words: "names no monitor with an IP address", monitors: "10.0.0.9:6789"},
		"no file system":           {change: func(o *Objects) { o.FileSystem = nil }, words: "there is no CephFilesystem fs1 in Kubernetes namespace ml: make one"},
		"a file system that comes": {change: func(o *Objects) { o.FileSystem = resource("Progressing") }, words: "waiting for Rook to make CephFilesystem fs1 (kubectl -n ml describe cephfilesystem fs1)", transient: true},
		"a file system that fails": {change: func(o *Objects) { o.FileSystem = resource("Failure") }, known: before, words: "Rook can't make CephFilesystem fs1", monitors: "10.0.0.1:6789 10.0.0.2:6789"},
		"a file system that goes":  {change: func(o *Objects) { o.FileSystem.Metadata = deleted() }, known: before, words: "CephFilesystem fs1 is being deleted", monitors: "10.0.0.1:6789 10.0.0.2:6789"},
		"an external cluster":      {change: func(o *Objects) { o.Cluster, o.FileSystem = external(), nil }, mayAsk: true, monitors: "10.0.0.1:6789 10.0.0.2:6789"},
		"an external cluster without the admin's key": {
			change: func(o *Objects) { o.Cluster, o.FileSystem, o.Client = external(), nil, resource("Failure") },
			words:  "needs the admin's key", mayAsk: true,
		},
		"the group is asked for":   {change: func(o *Objects) { o.Group, o.Client = nil, nil }, words: "waiting for Rook to make CephFilesystemSubVolumeGroup howdah-uid-of-training", transient: true, mayAsk: true},
		"the group is deleted":     {change: func(o *Objects) { o.Group.Metadata = deleted() }, known: before, words: "CephFilesystemSubVolumeGroup howdah-uid-of-training is being deleted: Rook removes it only when", mayAsk: true, monitors: "10.0.0.1:6789 10.0.0.2:6789"},
		"the group fails":          {change: func(o *Objects) { o.Group = resource("Failure") }, words: "kubectl -n ml describe cephfilesystemsubvolumegroup howdah-uid-of-training", mayAsk: true},
		"the account is asked for": {change: func(o *Objects) { o.Client = resource("Progressing") }, words: "waiting for Rook to make CephClient howdah.uid-of-training", transient: true, mayAsk: true},
		"the account is deleted":   {change: func(o *Objects) { o.Client.Metadata = deleted() }, known: before, words: "CephClient howdah.uid-of-training is being deleted", mayAsk: true, monitors: "10.0.0.1:6789 10.0.0.2:6789"},
	} {
		fs := builders.FileServer("ml", "training").Rook().Build()
		fs.UID = "uid-of-training"
		objects := whole()
		tc.change(&objects)
		v := Judge(fs, objects, tc.known)
		if (tc.words == "") != (v.Fault == "") || !strings.Contains(v.Fault, tc.words) || v.Transient != tc.transient || v.MayAsk != tc.mayAsk {
			t.Errorf("%s: transient %v, may ask %v, %q", name, v.Transient, v.MayAsk, v.Fault)
		}
		if got := strings.Join(v.Place.Monitors, " "); got != tc.monitors || (tc.monitors != "") != (v.Place.FSID == fsid) {
			t.Errorf("%s: place %+v, not %q", name, v.Place, tc.monitors)
		}
	}
}

func TestAFileSystemIsMadeOnceAndNeverAgain(t *testing.T) {
	fs := builders.FileServer("ml", "training").Rook().Build()
	fs.Spec.Storage.Ceph.Rook.CreateFileSystem = v1alpha1.RookFileSystem{ReplicatedSize: 3}
	missing := whole()
	missing.FileSystem = nil
	if v := Judge(fs, missing, Place{}); !v.Create || v.MayAsk || v.Fault != "waiting for Rook to make CephFilesystem fs1" || v.Place.IsKnown() {
		t.Errorf("there is none yet: %+v", v)
	}
	if v := Judge(fs, whole(), Place{}); v.Create || !v.MayAsk {
		t.Errorf("there is one: %+v", v)
	}
	if v := Judge(fs, missing, Place{Monitors: []string{"10.0.0.1:6789"}, FSID: fsid}); v.Create || !strings.Contains(v.Fault, "had the shares' data and is missing") {
		t.Errorf("there was one: %+v", v)
	}
	ill := missing
	ill.Cluster = cluster("Ready", "HEALTH_ERR")
	if v := Judge(fs, ill, Place{}); v.Create {
		t.Errorf("Ceph is ill: %+v", v)
	}
	outside := missing
	outside.Cluster = external()
	if v := Judge(fs, outside, Place{}); v.Create || !v.MayAsk {
		t.Errorf("Rook makes none in a cluster that is external to it: %+v", v)
	}
	spec, _, err := unstructured.NestedMap(FileSystem(fs, nil).Object, "spec")
	if err != nil || spec["preserveFilesystemOnDelete"] != true {
		t.Errorf("%v, %v", spec, err)
	}
}

func TestMonitors(t *testing.T) {
	for _, tc := range []struct{ data, out, want string }{
		{"a=10.0.0.1:6789", "", "10.0.0.1:6789"},
		{"b=10.0.0.2:3300,a=10.0.0.1:3300", "", "10.0.0.1:3300 10.0.0.2:3300"},
		{"a=[fd00::1]:3300", "", "[fd00::1]:3300"},
		{"a=10.0.0.1:6789,b=10.0.0.2:6789", "b", "10.0.0.1:6789"},
		{"a=10.0.0.1:6789", "a", "10.0.0.1:6789"}, // Better than none.
		{"a=10.0.0.1:6789,rubbish,c=10.0.0.3", "", "10.0.0.1:6789"},
		{"a=10.0.0.1:6789,b=10.0.0.1:6789", "", "10.0.0.1:6789"},
		{"", "", ""},
		{"a=", "", ""},
		{"a=10.0.0.1:0", "", ""},
	} {
		got, err := parseMonitors(map[string]string{"data": tc.data, "outOfQuorum": tc.out})
		if strings.Join(got, " ") != tc.want || (err == nil) != (tc.want != "") {
			t.Errorf("%q without %q: %v, %v", tc.data, tc.out, got, err)
		}
	}
}

func FuzzMonitors(f *testing.F) {
	f.Add("a=10.0.0.1:6789,b=[fd00::1]:3300", "b")
	f.Add(",=,a=::1%eth0:1", ",")
	f.Fuzz(func(t *testing.T, data, out string) {
		got, err := parseMonitors(map[string]string{"data": data, "outOfQuorum": out})
		if err == nil && (len(got) == 0 || len(got) > maxMonitors || !slices.IsSorted(got)) {
			t.Errorf("%q: %v", data, got)
		}
	})
}

func TestWhatIsAskedForIsHowdahsOwn(t *testing.T) {
	fs := builders.FileServer("ml", "training").Rook().Build()
	fs.UID = "uid-of-training"
	account, group := Client(fs, map[string]string{"a": "b"}), Group(fs, nil)
	if account.GetNamespace() != "ml" || group.GetNamespace() != "ml" || account.GetName() != "howdah.uid-of-training" || group.GetName() != "howdah-uid-of-training" {
		t.Errorf("%s/%s, %s/%s", account.GetNamespace(), account.GetName(), group.GetNamespace(), group.GetName())
	}
	caps, _, err := unstructured.NestedStringMap(account.Object, "spec", "caps")
	if err != nil || len(caps) != 2 || !strings.Contains(caps["mgr"], "vol_name=fs1 group_name=howdah-uid-of-training") || !strings.Contains(caps["mon"], "pool=howdah namespace=uid-of-training-[0-9]+") {
		t.Errorf("%v, %v", caps, err)
	}
	if pin, found, err := unstructured.NestedInt64(group.Object, "spec", "pinning", "distributed"); err != nil || !found || pin != 0 {
		t.Errorf("the group's pinning is %d, %v, %v: unset, Rook spreads it", pin, found, err)
	}
	if Secret("u") != "rook-ceph-client-howdah.u" {
		t.Error(Secret("u"))
	}
}

func TestReadTakesWhatIsUsed(t *testing.T) {
	of := func(object map[string]any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: object}
	}
	c, err := Read[Cluster](of(map[string]any{
		"kind": "CephCluster", "metadata": map[string]any{"name": "c", "deletionTimestamp": "2026-11-22T00:00:00Z"}, "spec": map[string]any{"external": map[string]any{"enable": true}, "mon": map[string]any{"count": int64(3)}},
		"status": map[string]any{"phase": "Connected", "ceph": map[string]any{"fsid": fsid, "health": "HEALTH_ERR", "details": map[string]any{"X": map[string]any{"severity": "HEALTH_ERR", "message": "m"}}}},
	}))
	if err != nil || !c.Spec.External.Enable || !c.Metadata.isDeleted() || c.Status.Ceph.FSID != fsid || c.Status.Ceph.Details["X"].Message != "m" {
		t.Errorf("%+v, %v", c, err)
	}
	if none, err := Read[Resource](nil); none != nil || err != nil {
		t.Errorf("%v, %v", none, err)
	}
	if _, err := Read[Resource](of(map[string]any{"kind": "CephClient", "metadata": map[string]any{"name": "x"}, "status": "broken"})); err == nil || !strings.Contains(err.Error(), "CephClient x has other fields") {
		t.Error(err)
	}
}
