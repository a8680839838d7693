package filesharesnapshot

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/controllers/conditions"
	"github.com/howdah/howdah/test/builders"
)

var noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

// seen is a snapshot of a share of a FileServer on volumes, of which nothing was made.
func seen() *observed {
	share := builders.FileShare("ml", "data", "training").Build()
	share.Status.Mount.Address = "10.0.0.1"
	return &observed{
		now: noon, share: share, fileServer: builders.FileServer("ml", "training").Build(),
		snapshot: &v1alpha1.FileShareSnapshot{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "now", Generation: 1},
			Spec:       v1alpha1.FileShareSnapshotSpec{FileShareRef: v1alpha1.FileShareReference{Name: "data"}},
		},
	}
}

func stored(conditions ...metav1.Condition) *internalv1.ShareSnapshot {
	return &internalv1.ShareSnapshot{
		Spec:   internalv1.ShareSnapshotSpec{FileServerRef: internalv1.FileServerReference{Name: "training"}},
		Status: internalv1.ShareSnapshotStatus{Conditions: conditions, Path: ".snap/_now_1", CreationTime: ptr.To(metav1.NewTime(noon))},
	}
}

func TestDecide(t *testing.T) {
	for name, tc := range map[string]struct {
		change        func(*observed)
		reason, words string
	}{
		"on volumes": {func(*observed) {}, v1alpha1.ReasonSnapshotsUnsupported, "spec.storage.volumes"},
		"in a Ceph whose directories exist already": {
			func(o *observed) { o.fileServer = builders.FileServer("ml", "training").Ceph().Build() },
			v1alpha1.ReasonSnapshotsUnsupported, "ceph fs subvolume snapshot create fs1 SUBVOLUME NAME",
		},
		"of no share":            {func(o *observed) { o.share, o.fileServer = nil, nil }, v1alpha1.ReasonFileShareNotFound, `"data"`},
		"of a share without one": {func(o *observed) { o.fileServer = nil }, v1alpha1.ReasonWaitingForShare, "nothing is known of it yet"},
		"of a share that goes":   {func(o *observed) { o.share.DeletionTimestamp = ptr.To(metav1.NewTime(noon)) }, v1alpha1.ReasonWaitingForShare, "being deleted"},
		"of one that is stalled": {func(o *observed) {
			// A namespace that is not allowed learns nothing of the FileServer.
			conditions.SetSummary(&o.share.Status.Conditions, 1, noon, conditions.False(v1alpha1.ConditionReady, v1alpha1.ReasonNamespaceNotAllowed, "ask"))
		}, v1alpha1.ReasonWaitingForShare, "not ready: ask"},
		"not begun": {func(o *observed) { o.stored = stored() }, v1alpha1.ReasonProgressing, "the steward of FileServer training"},
		"failed": {func(o *observed) {
			o.stored = stored(conditions.False(v1alpha1.ConditionReady, v1alpha1.ReasonSnapshotFailed, "EMLINK"))
		}, v1alpha1.ReasonSnapshotFailed, "EMLINK"},
		"made": {func(o *observed) {
			o.stored = stored(conditions.True(v1alpha1.ConditionReady, v1alpha1.ReasonReady, ""))
		}, v1alpha1.ReasonReady, ".snap/_now_1"},
		"made, share gone": {func(o *observed) {
			o.share, o.fileServer, o.stored = nil, nil, stored(conditions.True(v1alpha1.ConditionReady, v1alpha1.ReasonReady, ""))
		}, v1alpha1.ReasonReady, ".snap/_now_1"},
		"lost": {func(o *observed) { o.snapshot.Status.ReadyTime = ptr.To(metav1.NewTime(noon)) }, v1alpha1.ReasonSnapshotLost, "delete this object"},
		"being lost": {func(o *observed) {
			o.stored = stored()
			o.stored.DeletionTimestamp = ptr.To(metav1.NewTime(noon))
		}, v1alpha1.ReasonSnapshotLost, "delete this object"},
	} {
		o := seen()
		tc.change(o)
		d := decide(o)
		if d.create != nil || d.ready.Reason != tc.reason || !strings.Contains(d.ready.Message, tc.words) {
			t.Errorf("%s: creates %v, %s %q", name, d.create, d.ready.Reason, d.ready.Message)
		}
	}
}

// What is known of a snapshot is not forgotten when its share or its steward can't be asked.
func TestTheStatusKeepsWhatIsKnown(t *testing.T) {
	o := seen()
	o.stored = stored(conditions.True(v1alpha1.ConditionReady, v1alpha1.ReasonReady, ""))
	status := statusOf(o, decide(o))
	if !status.ReadyTime.Time.Equal(noon) || status.Path != ".snap/_now_1" || *status.ObservedGeneration != 1 {
		t.Fatalf("%+v", status)
	}
	o.snapshot.Status, o.stored = status, nil
	after := statusOf(o, decide(o))
	if after.ReadyTime == nil || after.Path == "" || !conditions.IsStalled(after.Conditions) {
		t.Errorf("%+v", after)
	}
}
