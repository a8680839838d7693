package e2e

import (
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/howdah/howdah/api/v1alpha1"
)

// What the schema refuses is tested without a cluster, in test/integration. Here
// are the faults that only show beside other objects, or that must leave data alone.
var _ = Describe("Bad input", Label("bad-input"), func() {
	conditionsOf := func(ctx SpecContext, object client.Object) func() (string, error) {
		return func() (string, error) {
			if err := c.Client.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
				return "", err
			}
			switch o := object.(type) {
			case *v1alpha1.FileShare:
				return fmt.Sprint(o.Status.Conditions), nil
			case *v1alpha1.FileServer:
				return fmt.Sprint(o.Status.Conditions), nil
			}
			return "", fmt.Errorf("no conditions in %T", object)
		}
	}

	It("in shares is explained and touches nothing", func(ctx SpecContext) {
		missing := newShare("orphan", "/orphan", 1)
		missing.Spec.FileServerRef.Name = "nowhere"
		for _, tc := range []struct {
			share *v1alpha1.FileShare
			wants []string
		}{
			{newShare("same", "/unet3d", 1), []string{v1alpha1.ReasonPathConflict, `unet3d`}},
			{newShare("nested", "/unet3d/inner", 1), []string{v1alpha1.ReasonPathConflict, `/unet3d`}},
			{newShare("twice", "/twice", 1, "a{1,2}", "a2"), []string{v1alpha1.ReasonInvalidDirectories, "a2"}},
			{newShare("toomany", "/toomany", 1, "d{0..99999}"), []string{v1alpha1.ReasonInvalidDirectories, "d{0..99999}"}},
			{newShare("toodeep", "/toodeep", 1, "a/b"), []string{v1alpha1.ReasonInvalidDirectories, "depth"}},
			{missing, []string{v1alpha1.ReasonFileServerNotFound, "nowhere"}},
		} {
			Expect(c.Create(ctx, tc.share)).To(Succeed(), tc.share.Name)
			for _, want := range tc.wants {
				Eventually(ctx, conditionsOf(ctx, tc.share)).WithTimeout(bound(10*time.Second)).Should(ContainSubstring(want), tc.share.Name)
			}
			Expect(directoriesBelow(ctx, tc.share.Name, "")).To(BeEmpty(), tc.share.Name)
			Expect(c.Delete(ctx, tc.share)).To(Succeed())
			Expect(c.WaitGone(ctx, tc.share)).To(Succeed())
		}
		Expect(shell(ctx, clientA, "cat /share/train/0/first")).To(Equal("seed\n"))
		Expect(shareReady(ctx, share)).To(Succeed())
	}, SpecTimeout(bound(2*time.Minute)))

	It("in FileServers is explained and touches nothing", Label(volumesHaveSizes), func(ctx SpecContext) {
		By("a StorageClass that does not exist")
		const class = "no-such-class"
		classless := newFileServer(ctx, "classless", 1)
		classless.Spec.Storage.Volumes.StorageClassName = class
		Expect(c.Create(ctx, classless)).To(Succeed())
		Eventually(ctx, conditionsOf(ctx, classless)).Should(And(ContainSubstring(v1alpha1.ReasonStorageClassNotFound), ContainSubstring(class)))
		Expect(c.Delete(ctx, classless)).To(Succeed())

		By("a smaller size, no replicas, too many")
		present := &v1alpha1.FileServer{}
		Expect(c.Get(ctx, fileServer, present)).To(Succeed())
		for want, change := range map[string]func(*v1alpha1.FileServer){
			"size can't shrink": func(f *v1alpha1.FileServer) { f.Spec.Storage.Volumes.Size = new(resource.MustParse("512Mi")) },
			"spec.replicas":     func(f *v1alpha1.FileServer) { f.Spec.Replicas = 65 },
		} {
			changed := present.DeepCopy()
			change(changed)
			Expect(c.Patch(ctx, changed, client.MergeFrom(present))).To(MatchError(ContainSubstring(want)))
		}

		// From outside, because in Go a zero is a field that is not set.
		_, err := c.Kubectl(ctx, "patch", "fileserver", fileServer, "--type=merge", "-p", `{"spec":{"replicas":0}}`)
		Expect(err).To(MatchError(ContainSubstring("spec.replicas")))

		By("fewer servers than own directories, for a moment: it says what moves, or what can't")
		changed := present.DeepCopy()
		changed.Spec.Replicas = 1
		Expect(c.Patch(ctx, changed, client.MergeFrom(present))).To(Succeed())
		Eventually(ctx, conditionsOf(ctx, present)).Should(And(
			Or(ContainSubstring(v1alpha1.ReasonDraining), ContainSubstring(v1alpha1.ReasonScaleInRefused)), ContainSubstring("training-2")))
		Expect(c.Get(ctx, fileServer, present)).To(Succeed())
		changed = present.DeepCopy()
		changed.Spec.Replicas = serverCount
		Expect(c.Patch(ctx, changed, client.MergeFrom(present))).To(Succeed())

		By("deletion while shares use it")
		spare := newFileServer(ctx, "spare", 1)
		Expect(c.Create(ctx, spare)).To(Succeed())
		user := newShare("spare-share", "/spare", 1)
		user.Spec.FileServerRef.Name = spare.Name
		Expect(c.Create(ctx, user)).To(Succeed())
		Eventually(ctx, func() error { return shareReady(ctx, user.Name) }).Should(Succeed())
		Expect(c.Delete(ctx, spare)).To(Succeed())
		Eventually(ctx, conditionsOf(ctx, spare)).Should(And(ContainSubstring(v1alpha1.ReasonInUse), ContainSubstring(user.Name)))
		Expect(shareReady(ctx, user.Name)).To(Succeed(), "the share still serves")
		Expect(c.Delete(ctx, user)).To(Succeed())
		Expect(c.WaitGone(ctx, spare)).To(Succeed())
		Expect(shell(ctx, clientA, "cat /share/train/0/first")).To(Equal("seed\n"))
	}, SpecTimeout(bound(3*time.Minute)))

	It("such as a FileServer of the same name in another Kubernetes namespace disturbs nothing", func(ctx SpecContext) {
		other := *c
		other.Namespace = c.Namespace + "-twin"
		_, err := c.Kubectl(ctx, "create", "namespace", other.Namespace)
		Expect(err).NotTo(HaveOccurred())
		defer func() {
			_, err := other.Kubectl(ctx, "delete", "fileshares,fileservers", "--all", "--timeout="+bound(time.Minute).String())
			Expect(err).NotTo(HaveOccurred())
			_, err = c.Kubectl(ctx, "delete", "namespace", other.Namespace, "--wait=false")
			Expect(err).NotTo(HaveOccurred())
		}()
		prepareStorage(ctx, other.Namespace)
		twin, twinShare := newFileServer(ctx, fileServer, 1), newShare(share, "/unet3d", 2, "train/{0..1}")
		twin.Namespace, twinShare.Namespace = other.Namespace, other.Namespace
		Expect(c.Create(ctx, twin)).To(Succeed())
		Expect(c.Create(ctx, twinShare)).To(Succeed())
		Eventually(ctx, func() string {
			_ = other.Get(ctx, share, twinShare)
			return fmt.Sprint(twinShare.Status.Conditions)
		}).WithTimeout(bound(90 * time.Second)).Should(MatchRegexp(`Ready True`))
		original := &v1alpha1.FileShare{}
		Expect(c.Get(ctx, share, original)).To(Succeed())
		Expect(twinShare.Status.Mount.Address).NotTo(Equal(original.Status.Mount.Address))
		// A busy machine's data server may miss probes for some seconds; what the twin disturbs stays disturbed.
		Eventually(ctx, func() error { return shareReady(ctx, share) }).WithTimeout(bound(30 * time.Second)).Should(Succeed())
		Expect(shell(ctx, clientA, "cat /share/train/0/first")).To(Equal("seed\n"))
	}, SpecTimeout(bound(3*time.Minute)))
})
