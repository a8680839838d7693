package steward

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/internal/ceph"
)

func TestAPlaceIsToBeACloneUntilItWasThere(t *testing.T) {
	m := &placeMaker{uid: "uid", volume: ceph.Volume{FileSystem: "fs1", Group: ceph.Group("uid")}}
	storage := &internalv1.ShareStorage{ObjectMeta: metav1.ObjectMeta{Namespace: "ml"}}
	storage.Spec.FileShareRef.Name = "restored"
	if m.unfinished(storage) != nil {
		t.Error("a share without a source is taken for a clone")
	}
	storage.Spec.Source = internalv1.StorageSource{FileShareRef: internalv1.FileShareReference{Name: "team.data"}, SnapshotName: "now"}
	clone := m.unfinished(storage)
	if clone == nil || clone.Subvolume != ceph.Subvolume("uid", "restored") || clone.Source != ceph.Subvolume("uid", "team.data") || clone.Share != "data" || clone.Begun != nil {
		t.Errorf("%+v", clone)
	}
	begun := metav1.NewTime(time.Date(2026, 11, 22, 18, 0, 0, 0, time.UTC))
	storage.Status.CloneBeginTime = &begun
	if clone := m.unfinished(storage); !clone.Begun.Equal(begun.Time) {
		t.Errorf("%+v", clone)
	}
	// Whatever the source is then: if the subvolume is missing it is lost, and is never cloned again.
	storage.Status.Path = "/volumes/g/s/1"
	if m.unfinished(storage) != nil {
		t.Error("a place that was there is to be a clone again")
	}
}
