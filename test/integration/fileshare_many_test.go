package integration

import (
	"fmt"
	"strings"
	"sync/atomic"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/controllers/conditions"
	"github.com/howdah/howdah/test/builders"
)

var _ = Describe("Many shares that come and go", func() {
	It("leave the others Ready all the time", func() {
		const staying, moving = 3, 50
		namespace := newNamespace()
		servingFileServer(namespace, "fs", 2)
		for i := range staying {
			create(builders.FileShare(namespace, fmt.Sprintf("stays-%d", i), "fs").Directories("d{0..3}").Build())
			readyShare(namespace, fmt.Sprintf("stays-%d", i))
		}
		watcher, err := client.NewWithWatch(config, client.Options{Scheme: admin.Scheme()})
		Expect(err).NotTo(HaveOccurred())
		watched, err := watcher.Watch(ctx, &v1alpha1.FileShareList{}, client.InNamespace(namespace))
		Expect(err).NotTo(HaveOccurred())
		defer watched.Stop()
		var seen, unready atomic.Int64
		go func() {
			for event := range watched.ResultChan() {
				if share, ok := event.Object.(*v1alpha1.FileShare); ok && strings.HasPrefix(share.Name, "stays-") {
					seen.Add(1)
					if !conditions.IsTrue(share.Status.Conditions, v1alpha1.ConditionReady) {
						unready.Add(1)
					}
				}
			}
		}()
		exported := func(wanted int) func() bool {
			return func() bool {
				// Counted before they are loaded, so that the last ones are loaded, too.
				complete := len(exportsOf(namespace, "fs-0")) == wanted && len(exportsOf(namespace, "fs-1")) == wanted
				loadConfigurations(namespace, "fs")
				return complete
			}
		}

		By("shares being made")
		for i := range moving {
			create(builders.FileShare(namespace, fmt.Sprintf("moves-%d", i), "fs").ReclaimPolicy(v1alpha1.ReclaimDelete).Build())
		}
		Eventually(exported(staying+moving), timeout, "100ms").Should(BeTrue())
		for i := range moving {
			expectShare(namespace, fmt.Sprintf("moves-%d", i), v1alpha1.FileShareExported, metav1.ConditionTrue, v1alpha1.ReasonReady)
		}

		By("all of them being deleted at once")
		for i := range moving {
			Expect(admin.Delete(ctx, exists(&v1alpha1.FileShare{}, namespace, fmt.Sprintf("moves-%d", i)))).To(Succeed())
		}
		Eventually(exported(staying), timeout, "100ms").Should(BeTrue())

		for i := range staying {
			name := fmt.Sprintf("stays-%d", i)
			Expect(shareCondition(namespace, name, v1alpha1.ConditionReady).Status).To(Equal(metav1.ConditionTrue))
		}
		Expect(seen.Load()).To(BeNumerically(">=", staying), "the watch begins with the shares as they are")
		Expect(unready.Load()).To(BeZero(), "times that a share was seen that was not Ready")
	})
})
