package integration

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/test/builders"
)

// eventsAbout are the reasons of the events about an object, each as often as its event was made.
func eventsAbout(namespace, kind, name string) func() []string {
	return func() []string {
		GinkgoHelper()
		var list eventsv1.EventList
		Expect(admin.List(ctx, &list, client.InNamespace(namespace))).To(Succeed())
		reasons := []string{}
		for _, event := range list.Items {
			if event.Regarding.Kind != kind || event.Regarding.Name != name {
				continue
			}
			times := 1
			if event.Series != nil {
				times = int(event.Series.Count)
			}
			for range times {
				reasons = append(reasons, event.Reason)
			}
		}
		return reasons
	}
}

var _ = Describe("One mistake", func() {
	It("makes one event, however much goes on around it, and its end another", func() {
		namespace := newNamespace()
		create(builders.FileServer(namespace, "fs").Replicas(2).Build())
		create(builders.FileShare(namespace, "s", "fs").Directories("a/b").Build())
		expectShare(namespace, "s", v1alpha1.ConditionStalled, metav1.ConditionTrue, v1alpha1.ReasonInvalidDirectories)
		By("all that the share waits for coming to pass, step by step")
		runEverything(namespace, "fs")
		expectCondition(namespace, "fs", v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady)
		expectShare(namespace, "s", v1alpha1.FileShareExported, metav1.ConditionTrue, v1alpha1.ReasonReady)
		Eventually(eventsAbout(namespace, "FileShare", "s"), timeout).Should(Equal([]string{v1alpha1.ReasonInvalidDirectories}))
		Eventually(eventsAbout(namespace, "FileServer", "fs"), timeout).Should(Equal([]string{v1alpha1.ReasonReady}))

		By("mending it")
		change(exists(&v1alpha1.FileShare{}, namespace, "s"), func(s *v1alpha1.FileShare) { s.Spec.Directories = []string{"a"} })
		share := readyShare(namespace, "s")
		for _, gone := range []string{v1alpha1.ConditionStalled, v1alpha1.ConditionReconciling} {
			Expect(shareCondition(namespace, "s", gone).Type).To(BeEmpty(), "it is there only while it is true: %+v", share.Status.Conditions)
		}
		Eventually(eventsAbout(namespace, "FileShare", "s"), timeout).Should(ConsistOf(v1alpha1.ReasonInvalidDirectories, v1alpha1.ReasonReady))
		Consistently(eventsAbout(namespace, "FileShare", "s"), "2s").Should(HaveLen(2))
	})
})
