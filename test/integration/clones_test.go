package integration

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/controllers/conditions"
	"github.com/howdah/howdah/internal/naming"
	"github.com/howdah/howdah/test/builders"
)

// snapshotted makes a share data in Ceph with a snapshot now that is Ready and holds that many MiB.
func snapshotted(namespace string, mebibytes int64) {
	GinkgoHelper()
	stewarded(namespace, builders.FileShare(namespace, "data", "training").Path("/data").Build())
	create(newSnapshot(namespace, "now", "data"))
	tellSnapshot(namespace, "data.now", func(status *internalv1.ShareSnapshotStatus) {
		stewardMade(time.Now())(status)
		status.SizeBytes = ptr.To(mebibytes << 20)
	})
	expectSnapshot(namespace, "now", v1alpha1.ReasonReady)
}

// fromNow is a share to be made from that snapshot.
func fromNow(namespace string) *builders.FileShareBuilder {
	return builders.FileShare(namespace, "restored", "training").Path("/restored").FromSnapshot("now")
}

// tellClone plays the steward: Ceph says this of the copy.
func tellClone(namespace, reason, message string) {
	GinkgoHelper()
	tellStorage(namespace, "restored.training", conditions.False(v1alpha1.ConditionReady, reason, message))
}

var _ = Describe("A share from a snapshot", func() {
	It("is copied by the storage, not served before, and as any other afterwards", func() {
		namespace := newNamespace()
		snapshotted(namespace, 37)
		share := fromNow(namespace).Quota("50Mi").Build()
		create(share)
		expectShare(namespace, "restored", v1alpha1.FileShareCloned, metav1.ConditionFalse, v1alpha1.ReasonCloning)
		storage := exists(&internalv1.ShareStorage{}, namespace, "restored.training")
		Expect(storage.Spec.Source).To(Equal(internalv1.StorageSource{FileShareRef: internalv1.FileShareReference{Name: "data"}, SnapshotName: "now"}))
		Expect(storage.Spec.QuotaBytes).To(Equal(int64(50 << 20)))
		tellClone(namespace, v1alpha1.ReasonCloning, "Ceph copies snapshot now of share data since 2026-11-22T03:04:05Z: in-progress")
		Eventually(func() string { return shareCondition(namespace, "restored", v1alpha1.ConditionReady).Message }, timeout, "100ms").
			Should(Equal("Cloned: Ceph copies snapshot now of share data since 2026-11-22T03:04:05Z: in-progress"))
		Expect(shareCondition(namespace, "restored", v1alpha1.ConditionReconciling).Status).To(Equal(metav1.ConditionTrue))
		awaitQuiet(namespace)
		Expect(apierrors.IsNotFound(admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: naming.ShareClaim("restored")}, &corev1.PersistentVolumeClaim{}))).
			To(BeTrue(), "no pod can use it before")
		Expect(directoriesOf(namespace, "restored")).To(BeEmpty())

		By("being whole")
		madeStorage(namespace, "restored.training")
		tellQuota(namespace, "restored.training", 50, 37)
		Expect(expectShare(namespace, "restored", v1alpha1.FileShareCloned, metav1.ConditionTrue, v1alpha1.ReasonReady)).
			To(Equal("the share began with what snapshot now of share data had in it"))
		readyShare(namespace, "restored")

		By("losing its snapshot, and its ShareStorage by accident")
		Expect(admin.Delete(ctx, exists(&v1alpha1.FileShareSnapshot{}, namespace, "now"))).To(Succeed())
		stewardRemoves(namespace, "data.now")
		isReallyGone(&v1alpha1.FileShareSnapshot{}, namespace, "now")
		first := exists(&internalv1.ShareStorage{}, namespace, "restored.training")
		Expect(admin.Delete(ctx, first)).To(Succeed())
		tellStorage(namespace, "restored.training", conditions.True(internalv1.StorageRemoved, internalv1.StorageRemoved, "the account is gone, the data stays"))
		Eventually(func() internalv1.StorageSource {
			again := exists(&internalv1.ShareStorage{}, namespace, "restored.training")
			if again.UID == first.UID {
				return first.Spec.Source
			}
			return again.Spec.Source
		}, timeout, "100ms").Should(BeZero(), "nothing is copied over what is there")
		madeStorage(namespace, "restored.training")
		tellQuota(namespace, "restored.training", 50, 37)
		readyShare(namespace, "restored")
		Expect(shareCondition(namespace, "restored", v1alpha1.FileShareCloned).Status).To(Equal(metav1.ConditionTrue))
	})

	It("waits for its snapshot, and for room", func() {
		namespace := newNamespace()
		stewarded(namespace, builders.FileShare(namespace, "data", "training").Path("/data").Build())
		share := fromNow(namespace).Quota("10Mi").Build()
		create(share)
		Expect(expectShare(namespace, "restored", v1alpha1.FileSharePlaced, metav1.ConditionFalse, v1alpha1.ReasonSnapshotNotFound)).
			To(ContainSubstring(`there is no FileShareSnapshot "now"`))
		create(newSnapshot(namespace, "now", "data"))
		expectShare(namespace, "restored", v1alpha1.FileSharePlaced, metav1.ConditionFalse, v1alpha1.ReasonSnapshotNotReady)
		tellSnapshot(namespace, "data.now", func(status *internalv1.ShareSnapshotStatus) {
			stewardMade(time.Now())(status)
			status.SizeBytes = ptr.To(int64(37 << 20))
		})
		Expect(expectShare(namespace, "restored", v1alpha1.FileSharePlaced, metav1.ConditionFalse, v1alpha1.ReasonQuotaBelowUse)).
			To(ContainSubstring("set spec.quota.size to 37Mi or more"))
		Expect(apierrors.IsNotFound(admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "restored.training"}, &internalv1.ShareStorage{}))).To(BeTrue())
		Expect(exportsOf(namespace, "training-0")).NotTo(HaveKey("restored"))
		change(share, func(s *v1alpha1.FileShare) { s.Spec.Quota.Size = quantity("100Mi") })
		Expect(exists(&internalv1.ShareStorage{}, namespace, "restored.training").Spec.Source.SnapshotName).To(Equal("now"))
	})

	It("takes nothing along when it is deleted and was never made", func() {
		namespace := newNamespace()
		servingFileServer(namespace, "training", 1)
		share := fromNow(namespace).ReclaimPolicy(v1alpha1.ReclaimDelete).Build()
		create(share)
		expectShare(namespace, "restored", v1alpha1.FileSharePlaced, metav1.ConditionFalse, v1alpha1.ReasonCloneRefused)
		awaitQuiet(namespace)
		Expect(exportsOf(namespace, "training-0")).NotTo(HaveKey("restored"), "an empty share is not what was asked for")
		Expect(admin.Delete(ctx, share)).To(Succeed())
		isNoMore(&v1alpha1.FileShare{}, namespace, "restored")
		Expect(exportsOf(namespace, "training-0")).NotTo(HaveKey("restored"))
	})
})
