package ceph

import (
	"context"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	internalv1ac "github.com/howdah/howdah/api/internalapi/applyconfiguration/internalapi/v1alpha1"
	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/controllers/backend/backendapi"
	"github.com/howdah/howdah/controllers/backend/ceph/rook"
	"github.com/howdah/howdah/controllers/conditions"
	"github.com/howdah/howdah/controllers/foreign"
	"github.com/howdah/howdah/test/builders"
)

const fsid = "6f0c2a9e-3b1d-4c55-9a77-0d6f7f0a1b2c"

// fixtures are objects by kind and name, or the error that there is instead.
type fixtures struct {
	objects map[string]map[string]any
	err     error
}

func (s fixtures) Get(_ context.Context, kind schema.GroupVersionKind, key client.ObjectKey) (*unstructured.Unstructured, error) {
	if object := s.objects[kind.Kind+" "+key.Name]; object != nil && s.err == nil {
		return &unstructured.Unstructured{Object: object}, nil
	}
	return nil, s.err
}

func phase(name string) map[string]any {
	return map[string]any{"status": map[string]any{"phase": name}}
}

// rookIsWell is what there is before Rook was asked for anything.
func rookIsWell() map[string]map[string]any {
	return map[string]map[string]any{
		"CephCluster rook-ceph":               {"status": map[string]any{"phase": "Ready", "ceph": map[string]any{"health": "HEALTH_OK", "fsid": fsid}}},
		"CephFilesystem fs1":                  phase("Ready"),
		"ConfigMap " + rook.MonitorsConfigMap: {"data": map[string]any{"data": "a=10.0.0.1:6789"}},
	}
}

func ofRook() *v1alpha1.FileServer {
	fs := builders.FileServer("ml", "training").Rook().Build()
	fs.UID = "uid"
	return fs
}

func observed(t *testing.T, from fixtures, observation backendapi.Observation) *Storage {
	t.Helper()
	storage, err := Backend{}.Observe(context.Background(), backendapi.Readers{Foreign: from}, observation)
	if err != nil {
		t.Fatal(err)
	}
	return storage.(*Storage)
}

func TestRookIsAskedForAnAccountAndAGroupAndNothingElse(t *testing.T) {
	d := observed(t, fixtures{objects: rookIsWell()}, backendapi.Observation{FileServer: ofRook()}).Decide(nil)
	if len(d.Owned) != 1 || len(d.Unowned) != 1 || !d.Servers.Missing || d.Again == 0 {
		t.Errorf("it is not made yet: %+v", d)
	}
	made := rookIsWell()
	made["CephFilesystemSubVolumeGroup howdah-uid"], made["CephClient howdah.uid"] = phase("Ready"), phase("Ready")
	d = observed(t, fixtures{objects: made}, backendapi.Observation{FileServer: ofRook()}).Decide(nil)
	if len(d.Owned) != 1 || len(d.Unowned) != 1 || d.Servers.Missing || d.Again != 0 {
		t.Errorf("it is made: %+v", d)
	}
	if steward := d.Servers.Steward; steward == nil || steward.Credential != "rook-ceph-client-howdah.uid" {
		t.Errorf("%+v", steward)
	}
	spec := internalv1ac.DataServerSpec()
	d.Servers.Describe(2, spec)
	if spec.Ceph.FSID == nil || *spec.Ceph.FSID != fsid || spec.Ceph.Monitors[0] != "10.0.0.1:6789" || *spec.Ceph.RecoveryUser != "howdah-rec-uid-2" || *spec.Ceph.StewardName != "training" {
		t.Errorf("%+v", spec.Ceph)
	}
}

func TestWithoutRookNothingIsMadeAndWhatThereIsStays(t *testing.T) {
	gone := fixtures{err: foreign.ErrNotInstalled}
	d := observed(t, gone, backendapi.Observation{FileServer: ofRook()}).Decide(nil)
	if !d.Servers.Missing || d.Servers.Describe != nil || d.Servers.Steward != nil || d.Owned != nil || d.Unowned != nil || d.Again == 0 {
		t.Errorf("%+v", d)
	}
	known := internalv1.DataServer{}
	known.Spec.Ceph = internalv1.CephFileSystem{Monitors: []string{"10.0.0.9:6789"}, FSID: fsid}
	d = observed(t, gone, backendapi.Observation{FileServer: ofRook(), DataServers: map[string]internalv1.DataServer{"training-0": known}}).Decide(nil)
	if d.Servers.Missing || d.Servers.Steward == nil || d.Owned != nil {
		t.Errorf("%+v", d)
	}
}

func TestTheConditionPutsRookFirst(t *testing.T) {
	serving := func() map[string]internalv1.DataServer {
		one := server("training-0", 1, metav1.ConditionTrue, "Ready", "")
		one.Spec.Ceph = internalv1.CephFileSystem{Monitors: []string{"10.0.0.1:6789"}, FSID: fsid}
		return map[string]internalv1.DataServer{"training-0": one}
	}
	steward := func(condition metav1.Condition) *internalv1.Steward {
		s := &internalv1.Steward{}
		s.Spec.Ceph.FSID, s.Spec.Ceph.Monitors = fsid, []string{"10.0.0.1:6789"}
		conditions.Set(&s.Status.Conditions, 1, metav1.Now().Time, condition)
		return s
	}
	works := steward(conditions.True(v1alpha1.ConditionReady, v1alpha1.ReasonReady, "works"))
	fails := steward(conditions.False(v1alpha1.ConditionReady, internalv1.ReasonCephUnusable, "there is no Secret"))
	asked := func() map[string]map[string]any {
		objects := rookIsWell()
		objects["CephFilesystemSubVolumeGroup howdah-uid"], objects["CephClient howdah.uid"] = phase("Ready"), phase("Ready")
		return objects
	}
	ill := asked()
	ill["CephCluster rook-ceph"] = map[string]any{"status": map[string]any{"phase": "Ready", "ceph": map[string]any{"health": "HEALTH_ERR", "fsid": fsid}}}
	for name, tc := range map[string]struct {
		from    fixtures
		servers map[string]internalv1.DataServer
		steward *internalv1.Steward
		want    string
	}{
		"all is well":                       {fixtures{objects: asked()}, serving(), works, "True Ready 1 of 1 data servers use Ceph file system fs1"},
		"Rook has still to make them":       {fixtures{objects: rookIsWell()}, nil, fails, "False Progressing waiting for Rook to make CephFilesystemSubVolumeGroup howdah-uid"},
		"the same, and all serve":           {fixtures{objects: rookIsWell()}, serving(), works, "True Ready 1 of 1 data servers use"},
		"Ceph is ill, and nothing serves":   {fixtures{objects: ill}, nil, fails, "False RookNotReady CephCluster rook-ceph is HEALTH_ERR"},
		"Ceph is ill, and all serve":        {fixtures{objects: ill}, serving(), works, "True RookNotReady 1 of 1 data servers use Ceph file system fs1; CephCluster rook-ceph is HEALTH_ERR"},
		"Rook is well, and the steward not": {fixtures{objects: asked()}, nil, fails, "False CephUnusable the steward can't work: there is no Secret"},
	} {
		s := observed(t, tc.from, backendapi.Observation{FileServer: ofRook(), DataServers: tc.servers, Steward: tc.steward})
		c := s.Condition(1, backendapi.Decision{})
		if got := string(c.Status) + " " + c.Reason + " " + c.Message; !strings.HasPrefix(got, tc.want) {
			t.Errorf("%s: %s", name, got)
		}
	}
}

func TestAFileServerOfRookHasASteward(t *testing.T) {
	b, fs := Backend{}, ofRook()
	if enforces, why := b.EnforcesSizes(fs); !b.HasSteward(fs) || !b.MakesShares(fs) || !enforces || b.SnapshotRefusal(fs) != "" {
		t.Error(why)
	}
}
