package integration

import (
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/test/builders"
)

// tellQuota plays the steward: it says what the storage keeps a share to, and what is used, in MiB.
func tellQuota(namespace, name string, quota, used int64) {
	GinkgoHelper()
	object := exists(&internalv1.ShareStorage{}, namespace, name)
	before := object.DeepCopy()
	object.Status.QuotaBytes, object.Status.UsedBytes = ptr.To(quota<<20), ptr.To(used<<20)
	Expect(admin.Status().Patch(ctx, object, client.MergeFrom(before))).To(Succeed())
}

// askedOf is the quota that a steward is asked for, in MiB.
func askedOf(namespace, name string) func() int64 {
	return func() int64 { return exists(&internalv1.ShareStorage{}, namespace, name).Spec.QuotaBytes >> 20 }
}

// hasQuotaCondition tells whether a share has the condition QuotaEnforced.
func hasQuotaCondition(namespace, name string) func() bool {
	return func() bool {
		share := exists(&v1alpha1.FileShare{}, namespace, name)
		return meta.FindStatusCondition(share.Status.Conditions, v1alpha1.FileShareQuotaEnforced) != nil
	}
}

var _ = Describe("A FileShare with a quota", func() {
	It("is served without it where the storage can't keep it, says so, and is well without the field", func() {
		namespace := newNamespace()
		servingFileServer(namespace, "training", 2)
		share := builders.FileShare(namespace, "data", "training").Directories("d0").Quota("1Gi").Build()
		create(share)
		Expect(expectShare(namespace, "data", v1alpha1.FileShareQuotaEnforced, metav1.ConditionFalse, v1alpha1.ReasonQuotaUnsupported)).
			To(And(ContainSubstring("the volumes of FileServer training"), ContainSubstring("remove spec.quota")))
		Eventually(func() metav1.ConditionStatus {
			loadConfigurations(namespace, "training")
			keepDirectories(namespace)
			takeOnVolume(namespace, "data")
			return shareCondition(namespace, "data", v1alpha1.FileShareJunctionsResolved).Status
		}, timeout, "100ms").Should(Equal(metav1.ConditionTrue))
		expectShare(namespace, "data", v1alpha1.FileShareExported, metav1.ConditionTrue, v1alpha1.ReasonReady)
		expectShare(namespace, "data", v1alpha1.ConditionStalled, metav1.ConditionTrue, v1alpha1.ReasonQuotaUnsupported)
		Expect(exists(share, namespace, "data").Status.Quota).To(BeZero())

		change(share, func(s *v1alpha1.FileShare) { s.Spec.Quota = v1alpha1.ShareQuota{} })
		readyShare(namespace, "data")
		Eventually(hasQuotaCondition(namespace, "data"), timeout, "100ms").Should(BeFalse())

		By("getting one later, while it is used")
		change(share, func(s *v1alpha1.FileShare) { s.Spec.Quota.Size = quantity("1Gi") })
		expectShare(namespace, "data", v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonQuotaUnsupported)
		Expect(exportsOf(namespace, "training-0")["data"].DeletionTimestamp).To(BeNil())
	})

	It("is asked of the steward, changed while it is used, and left as it was where that would be below what is used", func() {
		const storage = "data.training"
		namespace := newNamespace()
		provisioned(namespace, "training", 1)
		share := builders.FileShare(namespace, "data", "training").Quota("100Mi").Build()
		create(share)
		madeStorage(namespace, storage)
		Expect(askedOf(namespace, storage)()).To(Equal(int64(100)), "the steward can set it before anybody writes")
		expectShare(namespace, "data", v1alpha1.FileShareQuotaEnforced, metav1.ConditionFalse, v1alpha1.ReasonProgressing)
		tellQuota(namespace, storage, 100, 0)
		readyShare(namespace, "data")
		expectShare(namespace, "data", v1alpha1.FileShareQuotaEnforced, metav1.ConditionTrue, v1alpha1.ReasonReady)
		Eventually(func() string {
			_, volume := claimAndVolume(namespace, "data")
			capacity := volume.Spec.Capacity[corev1.ResourceStorage]
			return capacity.String()
		}, timeout, "100ms").Should(Equal("100Mi"), "the volume shows the quota")

		By("using most of it")
		tellQuota(namespace, storage, 100, 90)
		Expect(expectShare(namespace, "data", v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonQuotaNearlyUsed)).To(ContainSubstring("85 % of 100Mi"))
		Expect(exists(share, namespace, "data").Status.Quota.Used.String()).To(Equal("90Mi"))

		By("raising it")
		change(share, func(s *v1alpha1.FileShare) { s.Spec.Quota.Size = quantity("200Mi") })
		Eventually(askedOf(namespace, storage), timeout, "100ms").Should(Equal(int64(200)))
		expectShare(namespace, "data", v1alpha1.ConditionReconciling, metav1.ConditionTrue, v1alpha1.ReasonProgressing)
		tellQuota(namespace, storage, 200, 90)
		expectShare(namespace, "data", v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady)

		By("lowering it below what is used")
		change(share, func(s *v1alpha1.FileShare) { s.Spec.Quota.Size = quantity("50Mi") })
		Expect(expectShare(namespace, "data", v1alpha1.ConditionStalled, metav1.ConditionTrue, v1alpha1.ReasonQuotaBelowUse)).
			To(ContainSubstring("spec.quota.size is 50Mi and the share's files take 90Mi: the quota stays 200Mi"))
		Expect(askedOf(namespace, storage)()).To(Equal(int64(200)))
		Expect(exists(share, namespace, "data").Status.Quota.Size.String()).To(Equal("200Mi"))

		By("removing files")
		tellQuota(namespace, storage, 200, 40)
		Eventually(askedOf(namespace, storage), timeout, "100ms").Should(Equal(int64(50)))
		tellQuota(namespace, storage, 50, 40)
		expectShare(namespace, "data", v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady)

		By("taking it away")
		change(share, func(s *v1alpha1.FileShare) { s.Spec.Quota = v1alpha1.ShareQuota{} })
		Eventually(askedOf(namespace, storage), timeout, "100ms").Should(BeZero())
		expectShare(namespace, "data", v1alpha1.FileShareQuotaEnforced, metav1.ConditionFalse, v1alpha1.ReasonProgressing)
		tellQuota(namespace, storage, 0, 40)
		Eventually(hasQuotaCondition(namespace, "data"), timeout, "100ms").Should(BeFalse())
		expectShare(namespace, "data", v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady)
		Expect(exists(share, namespace, "data").Status.Quota.Used.String()).To(Equal("40Mi"), "what is used is known without a quota, too")
	})

	It("keeps the user's own words, so that GitOps sees no change", func() {
		namespace := newNamespace()
		servingFileServer(namespace, "training", 1)
		for name, size := range map[string]any{"a": "1.5Gi", "b": "10G", "c": int64(1073741824)} {
			object := parse(namespace, fileShareYAML(name, "/"+name, fmt.Sprintf("quota: {size: %v}", size)))
			Expect(admin.Create(ctx, object)).To(Succeed())
			expectShare(namespace, name, v1alpha1.FileShareQuotaEnforced, metav1.ConditionFalse, v1alpha1.ReasonQuotaUnsupported)
			Expect(admin.Get(ctx, client.ObjectKeyFromObject(object), object)).To(Succeed())
			Expect(object.GetFinalizers()).NotTo(BeEmpty(), "the operator has written to it")
			stored, _, err := unstructured.NestedFieldNoCopy(object.UnstructuredContent(), "spec", "quota", "size")
			Expect(err).NotTo(HaveOccurred())
			Expect(stored).To(Equal(size))
		}
	})
})
