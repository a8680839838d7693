package integration

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
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

var _ = Describe("A data server whose ganesha is killed", func() {
	It("has an event with the reason and the time until it served, at most one each minute", func() {
		namespace := newNamespace()
		create(builders.FileServer(namespace, "fs").Replicas(1).Build())
		runEverything(namespace, "fs")
		end := func(count, served int64) {
			GinkgoHelper()
			server := exists(&internalv1.DataServer{}, namespace, "fs-0")
			before, now := server.DeepCopy(), metav1.NewTime(time.Now().Truncate(time.Second))
			server.Status.LastEnd = &v1alpha1.ServerEnd{
				EndTime: &now, Cause: v1alpha1.EndGanesha, Message: "ganesha was killed by signal SIGSEGV", Count: &count, ServedAfterMilliseconds: &served,
			}
			Expect(admin.Status().Patch(ctx, server, client.MergeFrom(before))).To(Succeed())
		}
		end(1, 612)
		for kind, name := range map[string]string{"FileServer": "fs", "DataServer": "fs-0"} {
			Eventually(eventsAbout(namespace, kind, name), timeout).Should(ContainElement(string(v1alpha1.EndGanesha)), kind)
		}
		Expect(exists(&v1alpha1.FileServer{}, namespace, "fs").Status.Servers[0].LastEnd.Count).To(HaveValue(BeEquivalentTo(1)))
		var list eventsv1.EventList
		Expect(admin.List(ctx, &list, client.InNamespace(namespace))).To(Succeed())
		for _, event := range list.Items {
			if event.Reason == string(v1alpha1.EndGanesha) {
				Expect(event.Note).To(Equal("fs-0: ganesha was killed by signal SIGSEGV; served again after 0.6 s"))
			}
		}
		By("killing it again at once")
		end(2, 700)
		end(3, 800)
		Consistently(eventsAbout(namespace, "DataServer", "fs-0"), "2s").Should(HaveLen(1))
	})
})
