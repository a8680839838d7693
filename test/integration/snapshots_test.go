package integration

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/controllers/conditions"
	"github.com/howdah/howdah/test/builders"
)

// stewarded makes a share Ready whose FileServer has a steward.
func stewarded(namespace string, share *v1alpha1.FileShare) {
	GinkgoHelper()
	provisioned(namespace, "training", 1)
	create(share)
	madeStorage(namespace, share.Name+".training")
	readyShare(share.Namespace, share.Name)
}

func newSnapshot(namespace, name, share string) *v1alpha1.FileShareSnapshot {
	return &v1alpha1.FileShareSnapshot{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       v1alpha1.FileShareSnapshotSpec{FileShareRef: v1alpha1.FileShareReference{Name: share}},
	}
}

// tellSnapshot plays the steward: it writes the status of a ShareSnapshot.
func tellSnapshot(namespace, name string, change func(*internalv1.ShareSnapshotStatus)) *internalv1.ShareSnapshot {
	GinkgoHelper()
	stored := exists(&internalv1.ShareSnapshot{}, namespace, name)
	before := stored.DeepCopy()
	change(&stored.Status)
	Expect(admin.Status().Patch(ctx, stored, client.MergeFrom(before))).To(Succeed())
	return stored
}

// stewardMade is what a steward says of a snapshot that is there.
func stewardMade(at time.Time) func(*internalv1.ShareSnapshotStatus) {
	return func(status *internalv1.ShareSnapshotStatus) {
		status.CreationTime, status.Path, status.SizeBytes = ptr.To(metav1.NewTime(at)), ".snap/_now_1099511627786", ptr.To(int64(4096))
		conditions.Set(&status.Conditions, 1, at, conditions.True(v1alpha1.ConditionReady, v1alpha1.ReasonReady, "made"))
	}
}

// stewardRemoves plays the steward's part of a removal.
func stewardRemoves(namespace, name string) {
	GinkgoHelper()
	stored := &internalv1.ShareSnapshot{}
	isGone(stored, namespace, name)
	tellSnapshot(namespace, name, func(status *internalv1.ShareSnapshotStatus) {
		conditions.Set(&status.Conditions, 1, time.Now(), conditions.True(internalv1.SnapshotRemoved, internalv1.SnapshotRemoved, "gone"))
	})
	isReallyGone(stored, namespace, name)
}

// expectSnapshot waits for the reason of a snapshot's Ready and returns the snapshot.
func expectSnapshot(namespace, name, reason string) *v1alpha1.FileShareSnapshot {
	GinkgoHelper()
	snapshot := &v1alpha1.FileShareSnapshot{}
	Eventually(func() string {
		if err := admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, snapshot); err != nil {
			return err.Error()
		}
		return conditions.Reason(snapshot.Status.Conditions, v1alpha1.ConditionReady)
	}, timeout, "50ms").Should(Equal(reason), func() string { return conditions.Message(snapshot.Status.Conditions, v1alpha1.ConditionReady) })
	return snapshot
}

func isReallyGone(object client.Object, namespace, name string) {
	GinkgoHelper()
	Eventually(func() bool {
		return apierrors.IsNotFound(admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, object))
	}, timeout, "50ms").Should(BeTrue(), "%T %s must go", object, name)
}

var _ = Describe("A snapshot of a share", func() {
	It("is made by the steward, reported, and gone from the storage before its object is", func() {
		namespace := newNamespace()
		stewarded(namespace, builders.FileShare(namespace, "data", "training").Build())
		create(newSnapshot(namespace, "now", "data"))
		expectSnapshot(namespace, "now", v1alpha1.ReasonProgressing)
		stored := exists(&internalv1.ShareSnapshot{}, namespace, "data.now")
		fs := exists(&v1alpha1.FileServer{}, namespace, "training")
		Expect(stored.Spec).To(Equal(internalv1.ShareSnapshotSpec{
			FileServerRef: internalv1.FileServerReference{Name: "training"}, FileServerUID: v1alpha1.StorageIdentity(fs),
			FileShareRef: internalv1.FileShareReference{Name: "data"}, SnapshotName: "now",
		}))

		By("saying what the storage says, failure first")
		tellSnapshot(namespace, "data.now", func(status *internalv1.ShareSnapshotStatus) {
			conditions.Set(&status.Conditions, 1, time.Now(), conditions.False(v1alpha1.ConditionReady, v1alpha1.ReasonSnapshotFailed, "Too many links"))
		})
		failed := expectSnapshot(namespace, "now", v1alpha1.ReasonSnapshotFailed)
		Expect(conditions.Message(failed.Status.Conditions, v1alpha1.ConditionReady)).To(Equal("Too many links"))
		at := time.Now().Truncate(time.Second)
		tellSnapshot(namespace, "data.now", stewardMade(at))
		ready := expectSnapshot(namespace, "now", v1alpha1.ReasonReady)
		Expect(ready.Status.ReadyTime.Time).To(BeTemporally("==", at))
		Expect(ready.Status.Path).To(Equal(".snap/_now_1099511627786"))
		Expect(*ready.Status.SizeBytes).To(Equal(int64(4096)))

		By("staying until the steward has removed it")
		Expect(admin.Delete(ctx, ready)).To(Succeed())
		going := expectSnapshot(namespace, "now", v1alpha1.ReasonDeleting)
		Expect(conditions.Message(going.Status.Conditions, v1alpha1.ConditionReady)).To(ContainSubstring("the steward of FileServer training removes the snapshot"))
		Expect(meta.FindStatusCondition(going.Status.Conditions, v1alpha1.ConditionReady).Status).To(Equal(metav1.ConditionFalse))
		stewardRemoves(namespace, "data.now")
		isReallyGone(&v1alpha1.FileShareSnapshot{}, namespace, "now")
	})

	It("is not made again when it was lost", func() {
		namespace := newNamespace()
		stewarded(namespace, builders.FileShare(namespace, "data", "training").Build())
		create(newSnapshot(namespace, "now", "data"))
		tellSnapshot(namespace, "data.now", stewardMade(time.Now()))
		expectSnapshot(namespace, "now", v1alpha1.ReasonReady)
		Expect(admin.Delete(ctx, exists(&internalv1.ShareSnapshot{}, namespace, "data.now"))).To(Succeed())
		stewardRemoves(namespace, "data.now")
		lost := expectSnapshot(namespace, "now", v1alpha1.ReasonSnapshotLost)
		Expect(conditions.IsStalled(lost.Status.Conditions)).To(BeTrue())
		awaitQuiet(namespace)
		Expect(apierrors.IsNotFound(admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "data.now"}, &internalv1.ShareSnapshot{}))).To(BeTrue())
		Expect(admin.Delete(ctx, lost)).To(Succeed())
		isReallyGone(&v1alpha1.FileShareSnapshot{}, namespace, "now")
	})

	It("keeps the data of a share that is deleted with reclaimPolicy Delete, and nothing of one that retains", func() {
		namespace := newNamespace()
		stewarded(namespace, builders.FileShare(namespace, "data", "training").ReclaimPolicy(v1alpha1.ReclaimDelete).Build())
		create(newSnapshot(namespace, "now", "data"))
		tellSnapshot(namespace, "data.now", stewardMade(time.Now()))
		expectSnapshot(namespace, "now", v1alpha1.ReasonReady)
		Expect(admin.Delete(ctx, exists(&v1alpha1.FileShare{}, namespace, "data"))).To(Succeed())
		message := expectShare(namespace, "data", v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonDeleting)
		Eventually(func() string {
			message = shareCondition(namespace, "data", v1alpha1.ConditionReady).Message
			return message
		}, timeout, "100ms").Should(And(ContainSubstring("1 snapshot of the share"), ContainSubstring("for now;")), message)
		Expect(exportsOf(namespace, "training-0")["data"].DeletionTimestamp).To(BeNil(), "the data is not touched")

		By("going on when the snapshot is gone")
		Expect(admin.Delete(ctx, exists(&v1alpha1.FileShareSnapshot{}, namespace, "now"))).To(Succeed())
		stewardRemoves(namespace, "data.now")
		Eventually(func() string {
			return shareCondition(namespace, "data", v1alpha1.ConditionReady).Message
		}, timeout, "100ms").ShouldNot(ContainSubstring("snapshot"))
	})
})

var _ = Describe("What stands for a snapshot where its FileServer is", func() {
	It("only that FileServer's steward may report on, and only the operator may delete", func() {
		namespace := newNamespace()
		of := func(fileServer string) *internalv1.ShareSnapshot {
			create(builders.FileServer(namespace, fileServer).Replicas(1).Provisioned().Build())
			exists(&internalv1.Steward{}, namespace, fileServer)
			snapshot := &internalv1.ShareSnapshot{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "of-" + fileServer}}
			snapshot.Spec.FileServerRef.Name, snapshot.Spec.FileServerUID, snapshot.Spec.FileShareRef.Name, snapshot.Spec.SnapshotName = fileServer, "u", "data", "now"
			create(snapshot)
			return snapshot
		}
		own, foreign := of("training"), of("archive")
		steward := asPod(namespace, "training-steward", "training-steward-5d8f-x7")
		const begun = `{"beginTime":"2026-11-22T00:00:00Z"}`
		Eventually(func() error { return patchStatus(steward, own, begun) }, timeout, "100ms").Should(Succeed())
		Expect(steward.Get(ctx, client.ObjectKeyFromObject(own), own)).To(Succeed())
		Expect(patchStatus(steward, foreign, begun)).To(beRefused("writes its objects only"))
		Expect(steward.Delete(ctx, own.DeepCopy())).To(beRefused(byRole))
		Expect(steward.Patch(ctx, own.DeepCopy(), client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":[]}}`)))).To(beRefused(byRole))
	})
})

var _ = Describe("A schedule of snapshots", func() {
	It("makes the last one that was missed, and keeps as many as spec.keep says", func() {
		namespace := newNamespace()
		stewarded(namespace, builders.FileShare(namespace, "data", "training").Build())
		schedule := &v1alpha1.FileShareSnapshotSchedule{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "hourly"}}
		// At the same minute of each hour, half an hour ago for the last time.
		last := time.Now().Add(-30 * time.Minute).UTC().Truncate(time.Minute)
		schedule.Spec.FileShareRef.Name, schedule.Spec.Schedule, schedule.Spec.Retention.KeepLast = "data", last.Format("4")+" * * * *", 1
		create(schedule)
		count := func() int {
			var list v1alpha1.FileShareSnapshotList
			Expect(admin.List(ctx, &list, client.InNamespace(namespace), client.MatchingLabels{v1alpha1.SnapshotScheduleLabel: "hourly"})).To(Succeed())
			return len(list.Items)
		}
		Eventually(func() *metav1.Time {
			return exists(schedule, namespace, "hourly").Status.NextScheduleTime
		}, timeout, "50ms").ShouldNot(BeNil())
		Expect(schedule.Status.NextScheduleTime.Time).To(BeTemporally("==", last.Add(time.Hour)))
		Expect(count()).To(BeZero(), "what was before the schedule was not missed")

		// One of the day before, which it made, and one that it did not make.
		old := newSnapshot(namespace, "hourly-2026-01-01-0000", "data")
		old.Labels = map[string]string{v1alpha1.SnapshotScheduleLabel: "hourly"}
		create(old)
		create(newSnapshot(namespace, "by-hand", "data"))
		for _, name := range []string{old.Name, "by-hand"} {
			tellSnapshot(namespace, "data."+name, stewardMade(time.Now().Add(-24*time.Hour)))
			expectSnapshot(namespace, name, v1alpha1.ReasonReady)
		}

		By("as if it had been there for ten hours")
		Eventually(func() error { // The operator writes this status, too.
			before := exists(schedule, namespace, "hourly").DeepCopy()
			schedule.Status.EffectiveTime = ptr.To(metav1.NewTime(time.Now().Add(-10 * time.Hour)))
			// A clock was ahead: the schedule does not stop until then.
			schedule.Status.LastScheduleTime = ptr.To(metav1.NewTime(time.Now().Add(20 * 24 * time.Hour)))
			return admin.Status().Patch(ctx, schedule, client.MergeFrom(before))
		}, timeout).Should(Succeed())
		change(schedule, func(s *v1alpha1.FileShareSnapshotSchedule) { s.Annotations = map[string]string{"look": "again"} })
		change(exists(&v1alpha1.FileShareSnapshot{}, namespace, old.Name), func(s *v1alpha1.FileShareSnapshot) { s.Annotations = map[string]string{"look": "again"} })
		name := "hourly-" + last.Format("2006-01-02-1504")
		tellSnapshot(namespace, "data."+name, stewardMade(time.Now()))
		expectSnapshot(namespace, name, v1alpha1.ReasonReady)
		isGone(&v1alpha1.FileShareSnapshot{}, namespace, old.Name)
		stewardRemoves(namespace, "data."+old.Name)
		isReallyGone(&v1alpha1.FileShareSnapshot{}, namespace, old.Name)
		awaitQuiet(namespace)
		Expect(count()).To(Equal(1))
		Expect(exists(&v1alpha1.FileShareSnapshot{}, namespace, "by-hand").DeletionTimestamp).To(BeNil())
		Expect(exists(schedule, namespace, "hourly").Status.LastScheduleTime.Time).To(BeTemporally("==", last))
		Expect(conditions.IsTrue(schedule.Status.Conditions, v1alpha1.ScheduleClocksAgree)).To(BeTrue(), conditions.Message(schedule.Status.Conditions, v1alpha1.ScheduleClocksAgree))

		By("leaving them when it is deleted")
		Expect(admin.Delete(ctx, schedule)).To(Succeed())
		isReallyGone(&v1alpha1.FileShareSnapshotSchedule{}, namespace, "hourly")
		awaitQuiet(namespace)
		Expect(count()).To(Equal(1))
	})
})
