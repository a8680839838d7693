package integration

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/naming"
	"github.com/howdah/howdah/test/builders"
)

// hasHotCondition tells whether a share has the condition HotDirectoriesServed.
func hasHotCondition(namespace, name string) func() bool {
	return func() bool {
		share := exists(&v1alpha1.FileShare{}, namespace, name)
		return meta.FindStatusCondition(share.Status.Conditions, v1alpha1.FileShareHotDirectoriesServed) != nil
	}
}

var _ = Describe("A FileShare with hot directories", func() {
	It("is served without them on volumes, says so, and is well without the field", func() {
		namespace := newNamespace()
		servingFileServer(namespace, "training", 2)
		share := builders.FileShare(namespace, "data", "training").Directories("d0").Hot(2, "d0").Build()
		create(share)
		Expect(expectShare(namespace, "data", v1alpha1.FileShareHotDirectoriesServed, metav1.ConditionFalse, v1alpha1.ReasonHotDirectoriesUnsupported)).
			To(And(ContainSubstring("FileServer training has volumes of its own"), ContainSubstring("remove spec.hotDirectories"), ContainSubstring("spec.storage.ceph")))
		Eventually(func() metav1.ConditionStatus {
			loadConfigurations(namespace, "training")
			keepDirectories(namespace)
			takeOnVolume(namespace, "data")
			return shareCondition(namespace, "data", v1alpha1.FileShareJunctionsResolved).Status
		}, timeout, "100ms").Should(Equal(metav1.ConditionTrue))
		expectShare(namespace, "data", v1alpha1.FileShareExported, metav1.ConditionTrue, v1alpha1.ReasonReady)
		expectShare(namespace, "data", v1alpha1.ConditionStalled, metav1.ConditionTrue, v1alpha1.ReasonHotDirectoriesUnsupported)

		change(share, func(s *v1alpha1.FileShare) { s.Spec.HotDirectories = nil })
		readyShare(namespace, "data")
		Eventually(hasHotCondition(namespace, "data"), timeout, "100ms").Should(BeFalse())
	})

	It("says what is hot in Ceph, and which entry can't be used", func() {
		namespace := newNamespace()
		inCeph(namespace, "training", 2)
		runEverything(namespace, "training")
		share := builders.FileShare(namespace, "data", "training").Directories("d0").Hot(4, "d{0,1}").Build()
		create(share)
		readyShare(namespace, "data")
		Expect(expectShare(namespace, "data", v1alpha1.FileShareHotDirectoriesServed, metav1.ConditionTrue, v1alpha1.ReasonReady)).To(Equal(
			`2 directories are hot; spec.hotDirectories asks for up to 4 data servers, and FileServer training has 2 that take new directories; not there yet: "d1"`))

		By("a typing error")
		change(share, func(s *v1alpha1.FileShare) { s.Spec.HotDirectories[0].Paths = []string{"d{0-1}"} })
		Expect(expectShare(namespace, "data", v1alpha1.FileShareHotDirectoriesServed, metav1.ConditionFalse, v1alpha1.ReasonInvalidHotDirectories)).
			To(And(ContainSubstring("spec.hotDirectories[0]"), ContainSubstring("the entry is not used")))
		expectShare(namespace, "data", v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonInvalidHotDirectories)

		By("all directories")
		change(share, func(s *v1alpha1.FileShare) {
			s.Spec.HotDirectories = []v1alpha1.HotDirectories{{DataServers: 2}}
		})
		readyShare(namespace, "data")
		Expect(expectShare(namespace, "data", v1alpha1.FileShareHotDirectoriesServed, metav1.ConditionTrue, v1alpha1.ReasonReady)).
			To(Equal("all directories of the share are hot"))
	})

	It("of another Kubernetes namespace has its ShareAttachment carry them", func() {
		namespace, tenant := newNamespace(), newNamespace()
		fs := inCeph(namespace, "training", 2)
		change(fs, func(fs *v1alpha1.FileServer) {
			fs.Spec.AllowedNamespaces = &v1alpha1.AllowedNamespaces{From: v1alpha1.NamespacesFromAll}
		})
		runEverything(namespace, "training")
		share := builders.FileShare(tenant, "data", "training").OnNamespace(namespace).Hot(2, "d0").Build()
		create(share)
		key := naming.KeyOf(share)
		Eventually(func() []v1alpha1.HotDirectories {
			return exists(&internalv1.ShareAttachment{}, namespace, key).Spec.HotDirectories
		}, timeout).
			Should(Equal(share.Spec.HotDirectories))
		change(share, func(s *v1alpha1.FileShare) { s.Spec.HotDirectories = nil })
		Eventually(func() []v1alpha1.HotDirectories {
			return exists(&internalv1.ShareAttachment{}, namespace, key).Spec.HotDirectories
		}, timeout).
			Should(BeEmpty())
	})
})
