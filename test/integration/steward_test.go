package integration

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/controllers/conditions"
	"github.com/howdah/howdah/test/builders"
)

// provisioned makes a FileServer whose shares a steward makes in Ceph, and runs its pods; nobody plays the steward.
func provisioned(namespace, name string, replicas int32) *v1alpha1.FileServer {
	GinkgoHelper()
	fs := builders.FileServer(namespace, name).Replicas(replicas).Provisioned().Build()
	create(fs)
	runNamespaceServers(namespace, name)
	startDataServers(namespace, name)
	runEverything(namespace, name)
	return fs
}

// tellStorage plays the steward: it says this of a share's place.
func tellStorage(namespace, name string, condition metav1.Condition) {
	GinkgoHelper()
	object := &internalv1.ShareStorage{}
	Eventually(func() error { return admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, object) }, patience, "100ms").Should(Succeed())
	before, generation := object.DeepCopy(), object.Generation
	conditions.Set(&object.Status.Conditions, generation, time.Now(), condition)
	object.Status.ObservedGeneration = &generation
	if condition.Type == v1alpha1.ConditionReady && condition.Status == metav1.ConditionTrue {
		object.Status.Path, object.Status.User = "/volumes/howdah-uid/howdah-x/y", "howdah-share-x"
	}
	Expect(admin.Status().Patch(ctx, object, client.MergeFrom(before))).To(Succeed())
}

// madeStorage plays the steward who has made a share's place.
func madeStorage(namespace, name string) {
	GinkgoHelper()
	tellStorage(namespace, name, conditions.True(v1alpha1.ConditionReady, v1alpha1.ReasonReady, "the place is there"))
}

var _ = Describe("A share whose place a steward makes", func() {
	It("has a ShareStorage, waits for it, and is Ready with it", func() {
		namespace := newNamespace()
		provisioned(namespace, "training", 2)
		create(builders.FileShare(namespace, "data", "training").Path("/data").Build())
		Eventually(func() string { return shareCondition(namespace, "data", v1alpha1.FileShareExported).Reason }, patience, "100ms").
			Should(Equal(v1alpha1.ReasonStoragePending))
		storage := exists(&internalv1.ShareStorage{}, namespace, "data.training")
		Expect(storage.Spec).To(Equal(internalv1.ShareStorageSpec{
			FileServerRef: internalv1.FileServerReference{Name: "training"}, FileShareRef: internalv1.FileShareReference{Name: "data"}, DataPolicy: internalv1.DataRetain,
		}))
		Expect(controllerutil.ContainsFinalizer(storage, v1alpha1.StorageFinalizer)).To(BeTrue())
		Expect(metav1.GetControllerOf(storage)).NotTo(BeNil())
		madeStorage(namespace, "data.training")
		readyShare(namespace, "data")
	})

	It("keeps a ShareStorage that is deleted by accident until the steward has ended it, and asks again", func() {
		namespace := newNamespace()
		provisioned(namespace, "training", 1)
		create(builders.FileShare(namespace, "data", "training").Path("/data").Build())
		madeStorage(namespace, "data.training")
		first := exists(&internalv1.ShareStorage{}, namespace, "data.training")
		Expect(admin.Delete(ctx, first)).To(Succeed())
		Eventually(func() string { return shareCondition(namespace, "data", v1alpha1.FileShareExported).Message }, patience, "100ms").
			Should(ContainSubstring("has to end the place of an earlier share"))
		Expect(exists(&internalv1.ShareStorage{}, namespace, "data.training").Spec.DataPolicy).To(Equal(internalv1.DataRetain))
		tellStorage(namespace, "data.training", conditions.True(internalv1.StorageRemoved, internalv1.StorageRemoved, "the account is gone, the data stays"))
		Eventually(func() bool {
			again := exists(&internalv1.ShareStorage{}, namespace, "data.training")
			return again.UID != first.UID && again.DeletionTimestamp == nil
		}, patience, "100ms").Should(BeTrue())
	})

	It("waits, deleted with its data, until the exports and then the place are gone", func() {
		namespace := newNamespace()
		provisioned(namespace, "training", 1)
		share := builders.FileShare(namespace, "data", "training").Path("/data").Build()
		share.Spec.ReclaimPolicy = v1alpha1.ReclaimDelete
		create(share)
		madeStorage(namespace, "data.training")
		readyShare(namespace, "data")
		Expect(admin.Delete(ctx, share)).To(Succeed())
		Eventually(func() string { return shareCondition(namespace, "data", v1alpha1.ConditionReady).Message }, patience, "100ms").
			Should(ContainSubstring("to stop exporting the share"))
		storage := exists(&internalv1.ShareStorage{}, namespace, "data.training")
		Expect(storage.DeletionTimestamp).To(BeNil(), "the place goes after the exports")
		Expect(storage.Spec.DataPolicy).To(Equal(internalv1.DataRetain))

		By("dropping the exports")
		loadConfigurations(namespace, "training")
		Eventually(func() string { return shareCondition(namespace, "data", v1alpha1.ConditionReady).Message }, patience, "100ms").
			Should(ContainSubstring("waiting for the steward of FileServer training to remove the share's data"))
		storage = exists(&internalv1.ShareStorage{}, namespace, "data.training")
		Expect(storage.DeletionTimestamp).NotTo(BeNil())
		Expect(storage.Spec.DataPolicy).To(Equal(internalv1.DataDelete))
		tellStorage(namespace, "data.training", conditions.False(internalv1.StorageRemoved, internalv1.ReasonRemovalFailing, "Ceph refused it: snapshots"))
		Eventually(func() string { return shareCondition(namespace, "data", v1alpha1.ConditionReady).Message }, patience, "100ms").
			Should(ContainSubstring("Ceph refused it: snapshots"))
		tellStorage(namespace, "data.training", conditions.True(internalv1.StorageRemoved, internalv1.StorageRemoved, "the subvolume is in Ceph's trash"))
		isNoMore(&internalv1.ShareStorage{}, namespace, "data.training")
		isNoMore(&v1alpha1.FileShare{}, namespace, "data")
	})

	It("does not wait where the data stays, and its place's account ends later", func() {
		namespace := newNamespace()
		provisioned(namespace, "training", 1)
		share := builders.FileShare(namespace, "data", "training").Path("/data").Build()
		create(share)
		madeStorage(namespace, "data.training")
		readyShare(namespace, "data")
		Expect(admin.Delete(ctx, share)).To(Succeed())
		shareIsGone(namespace, "data", "training")
		storage := exists(&internalv1.ShareStorage{}, namespace, "data.training")
		Expect(storage.DeletionTimestamp).NotTo(BeNil())
		Expect(storage.Spec.DataPolicy).To(Equal(internalv1.DataRetain))
		tellStorage(namespace, "data.training", conditions.True(internalv1.StorageRemoved, internalv1.StorageRemoved, "the account is gone, the data stays"))
		isNoMore(&internalv1.ShareStorage{}, namespace, "data.training")
	})
})
