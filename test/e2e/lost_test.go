package e2e

import (
	"context"
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
)

// backWithin is the promise for ShareDirectories that were lost.
const backWithin = time.Minute

// owners are the data servers of a share's directories, by path, as far as they are ready.
func owners(ctx context.Context, share string) (map[string]string, error) {
	list := &internalv1.ShareDirectoryList{}
	if err := c.List(ctx, list, client.InNamespace(c.Namespace), client.MatchingLabels{v1alpha1.FileShareLabel: share}); err != nil {
		return nil, err
	}
	found := map[string]string{}
	for i := range list.Items {
		if directory := &list.Items[i]; directory.Spec.DataServerRef.Name != "" && directory.State() == internalv1.DirectoryReady {
			found[directory.Spec.Path] = directory.Spec.DataServerRef.Name
		}
	}
	return found, nil
}

func loseDirectories(ctx context.Context, share string) {
	GinkgoHelper()
	Expect(c.DeleteAllOf(ctx, &internalv1.ShareDirectory{}, client.InNamespace(c.Namespace), client.MatchingLabels{v1alpha1.FileShareLabel: share})).To(Succeed())
}

var _ = Describe("ShareDirectories that are lost", Label("lost"), func() {
	It("are all back within a minute, where the data is", func(ctx SpecContext) {
		lost := newShare("lost", "/lost", 1, "d{0..5}")
		lost.Spec.ReclaimPolicy = v1alpha1.ReclaimDelete
		Expect(c.Create(ctx, lost)).To(Succeed())
		Eventually(ctx, func() error { return shareReady(ctx, "lost") }).Should(Succeed())
		Eventually(ctx, func() error { _, err := c.Shell(ctx, clientA, "ls /tree/lost/d5"); return err }).Should(Succeed())
		shell(ctx, clientA, "cd /tree/lost && mkdir x y z && for d in *; do echo $d > $d/name; done")
		before, err := owners(ctx, "lost")
		Expect(err).NotTo(HaveOccurred())
		Expect(before).To(HaveLen(9))

		loseDirectories(ctx, "lost")
		start := time.Now()
		Eventually(ctx, func() (map[string]string, error) { return owners(ctx, "lost") }).WithPolling(200 * time.Millisecond).Should(Equal(before))
		expectWithin("all ShareDirectories of a share are back after they were deleted", time.Since(start), backWithin)
		Eventually(ctx, func() error { return shareReady(ctx, "lost") }).Should(Succeed())
		Eventually(ctx, func() (string, error) { return c.Shell(ctx, clientB, "cat /tree/lost/*/name") }).
			Should(Equal("d0\nd1\nd2\nd3\nd4\nd5\nx\ny\nz\n"))
		Expect(c.Delete(ctx, lost)).To(Succeed())
		Expect(c.WaitGone(ctx, lost)).To(Succeed())
	}, SpecTimeout(bound(4*time.Minute)))

	It("do not place a Single share again while the data server that has its data is away", Label(volumesHaveOwner), func(ctx SpecContext) {
		single := newShare("kept", "/kept", 1)
		single.Spec.Depth, single.Spec.Layout = 0, v1alpha1.LayoutSingle
		Expect(c.Create(ctx, single.DeepCopy())).To(Succeed())
		Eventually(ctx, func() error { return shareReady(ctx, "kept") }).Should(Succeed())
		Eventually(ctx, func() error { _, err := c.Shell(ctx, clientA, "echo precious > /tree/kept/file && sync"); return err }).Should(Succeed())
		before, err := owners(ctx, "kept")
		Expect(err).NotTo(HaveOccurred())
		server := before["."]
		Expect(server).NotTo(BeEmpty())

		By("deleting the share, its ShareDirectory, and the pod of the data server, which has no node to come back to")
		Expect(c.Delete(ctx, single.DeepCopy())).To(Succeed())
		Expect(c.WaitGone(ctx, single.DeepCopy())).To(Succeed())
		loseDirectories(ctx, "kept")
		pod := &corev1.Pod{}
		Expect(c.Get(ctx, server, pod)).To(Succeed())
		_, err = c.Kubectl(ctx, "cordon", pod.Spec.NodeName)
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func(ctx SpecContext) {
			_, err := c.Kubectl(ctx, "uncordon", pod.Spec.NodeName)
			Expect(err).NotTo(HaveOccurred())
		}, NodeTimeout(bound(time.Minute)))
		_, err = c.Kubectl(ctx, "delete", "pod", server, "--grace-period=1")
		Expect(err).NotTo(HaveOccurred())

		By("making the share again")
		Expect(c.Create(ctx, single.DeepCopy())).To(Succeed())
		inventoried := func() (string, error) {
			object := &v1alpha1.FileShare{}
			err := c.Get(ctx, "kept", object)
			condition := meta.FindStatusCondition(object.Status.Conditions, v1alpha1.FileShareInventoried)
			if err != nil || condition == nil {
				return "", err
			}
			return fmt.Sprintf("%s: %s", condition.Status, condition.Message), nil
		}
		Eventually(ctx, inventoried).Should(SatisfyAll(HavePrefix("False: "), ContainSubstring("waiting for "+server+" (")))
		Consistently(ctx, func() (map[string]string, error) { return owners(ctx, "kept") }, "5s").Should(BeEmpty(), "placed while %s may have the data", server)

		By("seeing the data server again")
		_, err = c.Kubectl(ctx, "uncordon", pod.Spec.NodeName)
		Expect(err).NotTo(HaveOccurred())
		Eventually(ctx, func() error { return shareReady(ctx, "kept") }).WithTimeout(bound(2 * time.Minute)).Should(Succeed())
		Expect(owners(ctx, "kept")).To(Equal(map[string]string{".": server}))
		Eventually(ctx, func() (string, error) {
			output, err := c.Shell(ctx, clientB, "cat /tree/kept/file")
			return strings.TrimSpace(output), err
		}).Should(Equal("precious"))
		change := &v1alpha1.FileShare{}
		Expect(c.Get(ctx, "kept", change)).To(Succeed())
		doomed := change.DeepCopy()
		doomed.Spec.ReclaimPolicy = v1alpha1.ReclaimDelete
		Expect(c.Patch(ctx, doomed, client.MergeFrom(change))).To(Succeed())
		Expect(c.Delete(ctx, doomed)).To(Succeed())
		Expect(c.WaitGone(ctx, doomed)).To(Succeed())
		Eventually(ctx, func() (bool, error) {
			object := &v1alpha1.FileServer{}
			err := c.Get(ctx, fileServer, object)
			return meta.IsStatusConditionTrue(object.Status.Conditions, v1alpha1.ConditionReady), err
		}).Should(BeTrue())
	}, SpecTimeout(bound(6*time.Minute)))
})
