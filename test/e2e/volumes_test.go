package e2e

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/test/cluster"
)

const brim = "brim"

// sizeInside is the size in MiB that df shows of the share.
func sizeInside(ctx context.Context) (int, error) {
	output, err := c.Shell(ctx, brim, "df -m --output=size /brim | tail -1")
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(output))
}

// beAbout matches sizes of a file system that was asked for: a small one needs some of it for itself.
func beAbout(asked int) OmegaMatcher {
	return And(BeNumerically("<=", asked), BeNumerically(">=", asked*8/10))
}

func brimServer(ctx context.Context) *v1alpha1.FileServer {
	GinkgoHelper()
	object := &v1alpha1.FileServer{}
	Expect(c.Get(ctx, brim, object)).To(Succeed())
	return object
}

// Each volume must be a file system of its own here, with its size, its end and its growth. On a cluster where volumes are directories of the
// nodes' disks these are the disk's, and there is nothing to see.
var _ = Describe("Volumes of a size", Label("volumes", volumesHaveSizes), Ordered, func() {
	BeforeAll(func(ctx SpecContext) {
		if sharedFileSystems {
			Skip("HOWDAH_E2E_SHARED_FILE_SYSTEMS=yes: volumes have no size of their own")
		}
		small := newFileServer(ctx, brim, 1)
		small.Spec.Storage.Volumes.Size = new(resource.MustParse("64Mi"))
		Expect(c.Create(ctx, small)).To(Succeed())
		single := newShare(brim, "/brim", 0)
		single.Spec.FileServerRef.Name, single.Spec.Layout = brim, v1alpha1.LayoutSingle
		single.Spec.ReclaimPolicy = v1alpha1.ReclaimDelete
		Expect(c.Create(ctx, single)).To(Succeed())
		Eventually(ctx, func() error { return shareReady(ctx, brim) }).Should(Succeed())
		Expect(c.RunClient(ctx, cluster.ClientPod{Name: brim, Claims: map[string]string{"/brim": brim}})).To(Succeed())
		Expect(c.WaitPodReady(ctx, brim)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) {
			for _, object := range []client.Object{
				&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: brim, Namespace: c.Namespace}}, single.DeepCopy(), small.DeepCopy(),
			} {
				Expect(c.Delete(ctx, object)).To(Succeed())
				Expect(c.WaitGone(ctx, object)).To(Succeed())
			}
		}, NodeTimeout(bound(2*time.Minute)))
	}, NodeTimeout(bound(3*time.Minute)))

	It("have it for df and in the status, without a word of caution", func(ctx SpecContext) {
		Expect(sizeInside(ctx)).To(beAbout(64))
		ready := cluster.Condition(brimServer(ctx).Status.Conditions, v1alpha1.ConditionReady)
		Expect(ready.Reason).To(Equal(v1alpha1.ReasonReady), ready.Message)
	}, SpecTimeout(bound(time.Minute)))

	It("end: a client gets ENOSPC, and goes on when there is space", func(ctx SpecContext) {
		shell(ctx, brim, "echo kept > /brim/kept && sync /brim/kept")
		fill(ctx, "/brim/full")
		Expect(shell(ctx, brim, "cat /brim/kept && ls /brim")).To(Equal("kept\nfull\nkept\n"))
		Expect(cluster.Expect(brimServer(ctx).Status.Conditions, v1alpha1.ConditionReady, metav1.ConditionTrue)).To(Succeed())
		shell(ctx, brim, "rm /brim/full")
		// Room comes back when the file's blocks are free, which is after rm.
		Eventually(ctx, func() error {
			_, err := c.Shell(ctx, brim, "dd if=/dev/zero of=/brim/again bs=1M count=16 conv=fsync && rm /brim/again")
			return err
		}).Should(Succeed())
	}, SpecTimeout(bound(2*time.Minute)))

	It("stay served while they are full, and say it", Label("capacity"), func(ctx SpecContext) {
		staysServedWhileFull(ctx)
	}, SpecTimeout(bound(4*time.Minute)))

	It("grow under a mounted client", func(ctx SpecContext) {
		before := brimServer(ctx)
		after := before.DeepCopy()
		after.Spec.Storage.Volumes.Size = new(resource.MustParse("256Mi"))
		Expect(c.Patch(ctx, after, client.MergeFrom(before))).To(Succeed())
		Eventually(ctx, func() (int, error) { return sizeInside(ctx) }).Should(beAbout(256))
		Eventually(ctx, func() (int, error) {
			status := brimServer(ctx).Status
			if status.Capacity.TotalBytes == nil {
				return 0, fmt.Errorf("no capacity in %+v", status)
			}
			return int(*status.Capacity.TotalBytes >> 20), nil
		}).WithTimeout(bound(2*time.Minute)).Should(beAbout(256), "volumes are measured once a minute")
		shell(ctx, brim, "dd if=/dev/zero of=/brim/more bs=1M count=100 conv=fsync && cat /brim/kept && rm /brim/more")
		Eventually(ctx, func() error {
			return cluster.Expect(brimServer(ctx).Status.Conditions, v1alpha1.ConditionReady, metav1.ConditionTrue)
		}).Should(Succeed())
	}, SpecTimeout(bound(4*time.Minute)))
})
