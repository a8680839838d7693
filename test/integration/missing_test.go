package integration

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/test/builders"
)

const oneLoss = "00000000000000aa"

// miss plays the leader, which did not find a directory on its data server.
func miss(namespace, share, path string) {
	GinkgoHelper()
	directory, ok := directoriesOf(namespace, share)[path]
	Expect(ok).To(BeTrue(), path)
	before := directory.DeepCopy()
	directory.Status.State, directory.Status.LossID, directory.Status.MissingTime = internalv1.DirectoryMissing, oneLoss, ptr.To(metav1.NewTime(time.Now()))
	Expect(admin.Status().Patch(ctx, &directory, client.MergeFrom(before))).To(Succeed())
}

// What the leader itself does is in internal/namespace/directories (missing_test.go).
var _ = Describe("A directory that is not on its data server any more", func() {
	It("makes its share not Ready, and stays in it until it is found", func() {
		namespace := newNamespace()
		servingFileServer(namespace, "fs", 2)
		create(builders.FileShare(namespace, "data", "fs").Directories("{a,b,c}").Build())
		readyShare(namespace, "data")
		uid := directoriesOf(namespace, "data")["b"].UID

		miss(namespace, "data", "b")
		message := expectShare(namespace, "data", v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonDirectoriesMissing)
		Expect(message).To(And(ContainSubstring(`1 of 3 directories are not on their data servers, which had them: "b" on fs-`), ContainSubstring("spec.acceptedLosses "+oneLoss)))
		expectShare(namespace, "data", v1alpha1.ConditionStalled, metav1.ConditionTrue, v1alpha1.ReasonDirectoriesMissing)
		keepDirectories(namespace)
		awaitQuiet(namespace)
		Expect(directoriesOf(namespace, "data")).To(HaveLen(3))
		Expect(directoriesOf(namespace, "data")["b"].UID).To(Equal(uid), "it was neither removed nor made again")

		By("deleting the share with Retain and making it again, which finds nothing better")
		Expect(admin.Delete(ctx, exists(&v1alpha1.FileShare{}, namespace, "data"))).To(Succeed())
		shareIsGone(namespace, "data", "fs")
		isNoMore(&corev1.PersistentVolumeClaim{}, namespace, "data")
		Expect(directoriesOf(namespace, "data")).To(HaveLen(3))
		create(builders.FileShare(namespace, "data", "fs").Directories("{a,b,c}").Build())
		Eventually(func() string {
			loadConfigurations(namespace, "fs")
			keepDirectories(namespace)
			takeOnVolume(namespace, "data")
			return shareCondition(namespace, "data", v1alpha1.ConditionReady).Reason
		}, timeout, "100ms").Should(Equal(v1alpha1.ReasonDirectoriesMissing))
		Expect(directoriesOf(namespace, "data")["b"].UID).To(Equal(uid))
		Expect(directoriesOf(namespace, "data")["a"].Status.State).To(Equal(internalv1.DirectoryReady), "it was looked for and found")

		By("finding it")
		found := directoriesOf(namespace, "data")["b"]
		before := found.DeepCopy()
		found.Status.State, found.Status.LossID, found.Status.MissingTime = internalv1.DirectoryReady, "", nil
		Expect(admin.Status().Patch(ctx, &found, client.MergeFrom(before))).To(Succeed())
		expectShare(namespace, "data", v1alpha1.FileShareJunctionsResolved, metav1.ConditionTrue, v1alpha1.ReasonReady)
	})

	It("is given up by its loss, also for a share of another namespace", func() {
		namespace := newNamespace()
		servingFileServer(namespace, "fs", 1)
		tenant := newNamespace()
		change(exists(&v1alpha1.FileServer{}, namespace, "fs"), func(fs *v1alpha1.FileServer) {
			fs.Spec.AllowedNamespaces = &v1alpha1.AllowedNamespaces{From: v1alpha1.NamespacesFromAll}
		})
		share := builders.FileShare(tenant, "data", "fs").Directories("a").Build()
		share.Spec.FileServerRef.Namespace = namespace
		create(share)
		Eventually(func() error {
			return admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: tenant + ".data"}, &internalv1.ShareAttachment{})
		}, timeout).Should(Succeed())
		change(exists(&v1alpha1.FileShare{}, tenant, "data"), func(s *v1alpha1.FileShare) { s.Spec.AcceptedLosses = []string{oneLoss} })
		Eventually(func() []string {
			return exists(&internalv1.ShareAttachment{}, namespace, tenant+".data").Spec.AcceptedLosses
		}, timeout).Should(Equal([]string{oneLoss}))
	})
})
