package steward

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/ceph"
)

// An API that was restored from a backup of an hour ago shows the deletion of a share of then. Meanwhile another share of its name was made.
func TestTheEndOfAnEarlierShareLeavesTheSubvolumeOfALaterOne(t *testing.T) {
	for name, tc := range map[string]struct {
		policy internalv1.DataPolicy
		path   string
		asked  bool // Ceph is asked to remove the subvolume.
		words  string
	}{
		"the subvolume is the share's": {internalv1.DataDelete, pathOf("s"), true, "is in Ceph's trash"},
		"it is another share's":        {internalv1.DataDelete, "/volumes/g/s/earlier", false, "its subvolume stays"},
		"none was known":               {internalv1.DataDelete, "", true, "is in Ceph's trash"},
		"the data stays, whoever's":    {internalv1.DataRetain, pathOf("s"), false, "its subvolume stays"},
		"the data stays, of another's": {internalv1.DataRetain, "/volumes/g/s/earlier", false, "its subvolume stays"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "s")
			storage, key := &internalv1.ShareStorage{}, client.ObjectKey{Namespace: "ml", Name: "s"}
			read := func() {
				t.Helper()
				if err := w.api.Get(t.Context(), key, storage); err != nil {
					t.Fatal(err)
				}
			}
			read()
			storage.Finalizers, storage.Spec.DataPolicy = []string{v1alpha1.StorageFinalizer}, tc.policy
			if err := w.api.Update(t.Context(), storage); err != nil {
				t.Fatal(err)
			}
			storage.Status.Path = tc.path
			if err := w.api.Status().Update(t.Context(), storage); err != nil {
				t.Fatal(err)
			}
			if err := w.api.Delete(t.Context(), storage); err != nil {
				t.Fatal(err)
			}
			removal := "mgr fs subvolume rm " + ceph.Subvolume(uid, "s")
			w.answers[removal] = refusing(5, "asked")
			w.pass()
			read()
			removed := meta.FindStatusCondition(storage.Status.Conditions, internalv1.StorageRemoved)
			if removed == nil || strings.Contains(removed.Message, "asked") != tc.asked {
				t.Fatalf("%+v", removed)
			}
			delete(w.answers, removal)
			w.pass()
			read()
			removed = meta.FindStatusCondition(storage.Status.Conditions, internalv1.StorageRemoved)
			if removed == nil || removed.Status != "True" || !strings.Contains(removed.Message, tc.words) {
				t.Errorf("%+v", removed)
			}
		})
	}
}
