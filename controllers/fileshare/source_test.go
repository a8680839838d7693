package fileshare

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/controllers/conditions"
	"github.com/howdah/howdah/controllers/desired"
	"github.com/howdah/howdah/test/builders"
)

// restored is what a pass knows of a share that is to be made from a snapshot that is there, of a share that is there; 5 GiB.
func restored(edit func(*builders.FileShareBuilder)) *observed {
	share := builders.FileShare("ns", "restored", "fs").Path("/restored").FromSnapshot("now")
	if edit != nil {
		edit(share)
	}
	o := passOf(share.Build())
	o.fileServer = builders.FileServer("ns", "fs").UID("uid").Provisioned().Build()
	o.fileServer.Status.Replicas = ptr.To(int32(2))
	o.fileServer.Status.Address = "10.0.0.9"
	for i := range o.dataServers {
		o.dataServers[i].Status.Shares = nil // In Ceph they can't tell.
	}
	snapshot := &v1alpha1.FileShareSnapshot{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "now"}}
	snapshot.Spec.FileShareRef.Name, snapshot.Status.SizeBytes = "data", ptr.To(5*gi)
	conditions.Set(&snapshot.Status.Conditions, 1, decideTime, conditions.True(v1alpha1.ConditionReady, v1alpha1.ReasonReady, "there"))
	of := builders.FileShare("ns", "data", "fs").Path("/data").Build()
	o.source = sourceState{snapshot: snapshot, stored: desired.ShareSnapshot(snapshot, "", of, o.fileServer), of: of}
	return o
}

// asked is a place that the steward was asked for, of which it says this.
func (o *observed) asked(path, reason, message string) {
	o.storage = desired.ShareStorage(o.share, 0, internalv1.StorageSource{FileShareRef: internalv1.FileShareReference{Name: "data"}, SnapshotName: "now"})
	o.storage.Status.Path = path
	if reason != "" {
		o.storage.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: reason, Message: message}}
	}
}

func TestASourceThatCantBeCopiedIsReportedAndNothingIsMade(t *testing.T) {
	for name, tc := range map[string]struct {
		edit   func(*builders.FileShareBuilder)
		change func(*observed)
		reason string
		says   []string
	}{
		"no such snapshot":      {change: func(o *observed) { o.source = sourceState{} }, reason: v1alpha1.ReasonSnapshotNotFound, says: []string{`spec.source.snapshotRef: there is no FileShareSnapshot "now" in namespace "ns"`}},
		"one that is deleted":   {change: func(o *observed) { o.source.snapshot.DeletionTimestamp = &metav1.Time{Time: decideTime} }, reason: v1alpha1.ReasonSnapshotNotFound, says: []string{"now is being deleted"}},
		"one that was not made": {change: func(o *observed) { o.source.snapshot.Status.Conditions, o.source.stored = nil, nil }, reason: v1alpha1.ReasonSnapshotNotReady, says: []string{"now is not Ready: nothing is known of it yet"}},
		"one that was lost":     {change: func(o *observed) { o.source.stored = nil }, reason: v1alpha1.ReasonSnapshotNotReady, says: []string{"is not Ready"}},
		"on volumes": {change: func(o *observed) { o.fileServer = builders.FileServer("ns", "fs").Build() }, reason: v1alpha1.ReasonCloneRefused, says: []string{
			"spec.source: no share of FileServer fs can be made from a snapshot; delete this share and make it without spec.source. FileServer fs has its shares on volumes",
		}},
		"in Ceph whose directories exist already": {change: func(o *observed) { o.fileServer = builders.FileServer("ns", "fs").Ceph().Build() }, reason: v1alpha1.ReasonCloneRefused, says: []string{"sharesSecretRef"}},
		"of another FileServer":                   {change: func(o *observed) { o.source.stored.Spec.FileServerRef.Name = "archive" }, reason: v1alpha1.ReasonCloneRefused, says: []string{"on FileServer archive of namespace ns", "that fileServerRef"}},
		"of one of another namespace":             {change: func(o *observed) { o.source.stored.Namespace = "storage" }, reason: v1alpha1.ReasonCloneRefused, says: []string{"of namespace storage"}},
		"of an earlier FileServer of the name":    {change: func(o *observed) { o.source.stored.Spec.FileServerUID = "other" }, reason: v1alpha1.ReasonCloneRefused, says: []string{"an earlier FileServer fs"}},
		"another depth":                           {edit: func(b *builders.FileShareBuilder) { b.Depth(2) }, reason: v1alpha1.ReasonCloneRefused, says: []string{"of FileShare data, with layout Distributed and depth 1", "the same spec.layout and spec.depth"}},
		"another layout":                          {edit: func(b *builders.FileShareBuilder) { b.Single() }, reason: v1alpha1.ReasonCloneRefused, says: []string{"layout Distributed"}},
		"a quota that is too small":               {edit: func(b *builders.FileShareBuilder) { b.Quota("4Gi") }, reason: v1alpha1.ReasonQuotaBelowUse, says: []string{"spec.quota.size is 4Gi and FileShareSnapshot now has 5Gi in it", "to 5Gi or more"}},
		"an earlier share's place": {
			change: func(o *observed) { o.storage = desired.ShareStorage(o.share, 0, internalv1.StorageSource{}) },
			reason: v1alpha1.ReasonCloneRefused, says: []string{"ShareStorage restored.fs", "with another name"},
		},
	} {
		o := restored(tc.edit)
		if tc.change != nil {
			tc.change(o)
		}
		d := decide(o)
		if d.blocked == nil || d.blocked.reason != tc.reason {
			t.Errorf("%s: blocked: %+v", name, d.blocked)
			continue
		}
		for _, want := range tc.says {
			if !strings.Contains(d.blocked.message, want) {
				t.Errorf("%s: %q does not say %q", name, d.blocked.message, want)
			}
		}
		if d.storage.create != nil || len(d.exports.create) > 0 || len(d.claim.objects) > 0 {
			t.Errorf("%s: something is made: %+v", name, d)
		}
		status := statusOf(o, d, outcome{})
		if c := meta.FindStatusCondition(status.Conditions, v1alpha1.FileShareCloned); c == nil || c.Status != metav1.ConditionUnknown {
			t.Errorf("%s: %+v", name, c)
		}
		o.share.Status = status
		if o.share.Spec.ReclaimPolicy = v1alpha1.ReclaimDelete; removesData(o) {
			t.Errorf("%s: its deletion would take an earlier share's data along", name)
		}
	}
}

func TestASourceThatFitsIsAskedForOnce(t *testing.T) {
	o := restored(func(b *builders.FileShareBuilder) { b.Quota("5Gi") })
	d := decide(o)
	want := internalv1.StorageSource{FileShareRef: internalv1.FileShareReference{Name: "data"}, SnapshotName: "now"}
	if d.blocked != nil || d.storage.create == nil || d.storage.create.Spec.Source != want {
		t.Fatalf("%+v, %+v", d.blocked, d.storage.create)
	}
	// The share of the snapshot may be gone: its data is there for as long as the snapshot is.
	o.source.of = nil
	if d := decide(o); d.blocked != nil || d.storage.create == nil {
		t.Errorf("%+v", d.blocked)
	}
	// Whatever becomes of the snapshot then is between Ceph and the steward.
	o.asked("", v1alpha1.ReasonCloning, "Ceph copies")
	o.source = sourceState{}
	if d := decide(o); d.blocked != nil || d.storage.create != nil || d.storage.after != nil && d.storage.after.Spec.Source != want {
		t.Errorf("%+v, %+v", d.blocked, d.storage)
	}
}

func TestACopyIsReportedUntilItIsWhole(t *testing.T) {
	for name, tc := range map[string]struct {
		path, reason, message string
		status                metav1.ConditionStatus
		want, says            string
	}{
		"no report":        {"", "", "", metav1.ConditionFalse, v1alpha1.ReasonCloning, "has not had snapshot now copied yet"},
		"Ceph copies":      {"", v1alpha1.ReasonCloning, "Ceph copies snapshot now", metav1.ConditionFalse, v1alpha1.ReasonCloning, "Ceph copies snapshot now"},
		"Ceph failed":      {"", v1alpha1.ReasonCloneFailed, "No space left", metav1.ConditionFalse, v1alpha1.ReasonCloneFailed, "No space left"},
		"other data there": {"", v1alpha1.ReasonCloneRefused, "is there already", metav1.ConditionFalse, v1alpha1.ReasonCloneRefused, "is there already"},
		"Ceph is away":     {"", internalv1.ReasonCephUnusable, "no monitor answers", metav1.ConditionFalse, v1alpha1.ReasonStorageUnusable, "no monitor answers"},
		"it is whole":      {"/volumes/g/s/1", v1alpha1.ReasonProgressing, "", metav1.ConditionTrue, v1alpha1.ReasonReady, "the share began with what snapshot now of share data had in it"},
	} {
		o := restored(nil)
		o.asked(tc.path, tc.reason, tc.message)
		status := statusOf(o, decide(o), outcome{})
		got := meta.FindStatusCondition(status.Conditions, v1alpha1.FileShareCloned)
		if got == nil || got.Status != tc.status || got.Reason != tc.want || !strings.Contains(got.Message, tc.says) {
			t.Errorf("%s: %+v", name, got)
		}
		ready := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionReady)
		if tc.path == "" && (ready.Reason != tc.want || !strings.HasPrefix(ready.Message, "Cloned: ")) {
			t.Errorf("%s: Ready is %+v", name, ready)
		}
		if claim := meta.FindStatusCondition(status.Conditions, v1alpha1.FileShareClaimAvailable); !strings.Contains(claim.Message, "to have all that its source has") {
			t.Errorf("%s: the claim is %+v", name, claim)
		}
	}
}

// A share that was copied is as any other: its snapshot may go, and a ShareStorage that is lost is made again without a source, because what is in the place
// by then is the share's own.
func TestASourceDoesNotCountAfterwards(t *testing.T) {
	o := restored(nil)
	o.asked("/volumes/g/s/1", "", "")
	o.share.Status = statusOf(o, decide(o), outcome{})
	before := *meta.FindStatusCondition(o.share.Status.Conditions, v1alpha1.FileShareCloned)
	o.storage, o.source = nil, sourceState{}
	d := decide(o)
	if d.blocked != nil || d.storage.create == nil || d.storage.create.Spec.Source != (internalv1.StorageSource{}) || d.cloned == nil || *d.cloned != before {
		t.Errorf("%+v, %+v, %+v", d.blocked, d.storage.create, d.cloned)
	}
	// Also one that an earlier share of the name left, and that is on its way out.
	o = restored(nil)
	o.asked("/volumes/g/s/0", "", "")
	o.storage.DeletionTimestamp = &metav1.Time{Time: decideTime}
	if d := decide(o); d.cloned.Status != metav1.ConditionFalse {
		t.Errorf("an earlier share's place is taken for the copy: %+v", d.cloned)
	}
	if c := planClone(passOf(builders.FileShare("ns", "data", "fs").Build()), false); c != nil {
		t.Errorf("a share without a source has the condition: %+v", c)
	}
}
