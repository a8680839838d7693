package integration

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/test/builders"
)

var _ = Describe("A data server that does not answer", func() {
	It("is reported by its FileServer and by the shares that have directories on it, long before its node is NotReady", func() {
		namespace := newNamespace()
		servingFileServer(namespace, "training", 2)
		create(builders.FileShare(namespace, "unet3d", "training").Directories("d{0..3}").Build())
		readyShare(namespace, "unet3d")

		By("a namespace server saying so")
		silent := exists(&internalv1.DataServer{}, namespace, "training-1")
		before := silent.DeepCopy()
		silent.Status.Unreachable = internalv1.Unreachable{SinceTime: &metav1.Time{Time: time.Date(2026, 11, 22, 3, 4, 5, 0, time.UTC)}, SeenBy: "training-namespace-x"}
		silent.Status.NodeName = "node-b"
		Expect(admin.Status().Patch(ctx, silent, client.MergeFrom(before))).To(Succeed())

		Expect(expectCondition(namespace, "training", v1alpha1.FileServerServersAvailable, metav1.ConditionFalse, v1alpha1.ReasonServersNotReady)).
			To(ContainSubstring("training-1 is Unavailable (does not answer since 2026-11-22T03:04:05Z"))
		Expect(fileServerCondition(namespace, "training", v1alpha1.ConditionReady).Status).To(Equal(metav1.ConditionFalse), "it served before")
		Expect(expectShare(namespace, "unet3d", v1alpha1.FileShareExported, metav1.ConditionFalse, v1alpha1.ReasonDataServersUnavailable)).To(And(
			ContainSubstring("1 of 2 data servers"), ContainSubstring("training-1 (on node node-b, no answer since 2026-11-22T03:04:05Z)")))
		Expect(shareCondition(namespace, "unet3d", v1alpha1.ConditionReady).Status).To(Equal(metav1.ConditionFalse))

		By("it answering again")
		silent = exists(&internalv1.DataServer{}, namespace, "training-1")
		before = silent.DeepCopy()
		silent.Status.Unreachable = internalv1.Unreachable{}
		Expect(admin.Status().Patch(ctx, silent, client.MergeFrom(before))).To(Succeed())
		readyShare(namespace, "unet3d")
		expectCondition(namespace, "training", v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady)
	})
})
