package ceph

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/test/cluster"
)

// A FileServer and a FileShare that are deleted and applied again from the same files have their data again.
var _ = Describe("A FileServer in Ceph that is created again", Ordered, Label("ceph"), func() {
	const (
		name  = "again"
		share = "kept"
		pod   = "again-user"
	)
	var before *v1alpha1.FileServer
	newShare := func(ctx context.Context) {
		GinkgoHelper()
		Expect(c.Create(ctx, &v1alpha1.FileShare{
			ObjectMeta: metav1.ObjectMeta{Name: share, Namespace: c.Namespace},
			Spec: v1alpha1.FileShareSpec{
				FileServerRef: v1alpha1.FileServerReference{Name: name}, Path: "/" + share, Directories: []string{"d{0..2}"}, Mode: "0777",
			},
		})).To(Succeed())
		Eventually(ctx, func(ctx context.Context) error { return c.ShareReady(ctx, share) }).Should(Succeed())
	}
	use := func(ctx context.Context) {
		GinkgoHelper()
		Expect(c.RunClient(ctx, cluster.ClientPod{Name: pod, Claims: map[string]string{mountPoint: share}})).To(Succeed())
		Expect(c.WaitPodReady(ctx, pod)).To(Succeed())
	}
	remove := func(ctx context.Context, args ...string) {
		GinkgoHelper()
		output, err := c.Kubectl(ctx, append([]string{"delete", "--ignore-not-found", "--timeout=5m"}, args...)...)
		Expect(err).NotTo(HaveOccurred(), output)
	}
	const look = "cd " + mountPoint + " && find . -type f | sort | xargs sha256sum && ls"

	BeforeAll(func(ctx SpecContext) {
		stewarded(ctx, name, 2)
		before = &v1alpha1.FileServer{}
		Expect(c.Get(ctx, name, before)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { // Before the FileServer's.
			remove(ctx, "pod", pod, "--grace-period=1")
			remove(ctx, "fileshare", share)
			removeShare(ctx, v1alpha1.StorageIdentity(before), share)
		}, NodeTimeout(limit))
		newShare(ctx)
		use(ctx)
	}, NodeTimeout(limit))

	It("has the same data without any setting", func(ctx SpecContext) {
		sh(ctx, pod, "cd %s && mkdir made && for d in d0 d1 d2 made; do head -c 100000 /dev/urandom > $d/file || exit 1; done && sync", mountPoint)
		was := sh(ctx, pod, "%s", look)
		remove(ctx, "pod", pod, "--grace-period=1")
		remove(ctx, "fileshare", share)
		remove(ctx, "fileserver", name, "--cascade=foreground")

		began := time.Now()
		again := &v1alpha1.FileServer{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: c.Namespace}, Spec: before.Spec}
		Expect(c.Create(ctx, again)).To(Succeed())
		newShare(ctx)
		AddReportEntry("a FileServer and its share created again, until they are Ready", time.Since(began).Round(time.Second).String(), ReportEntryVisibilityAlways)
		Expect(c.Get(ctx, name, again)).To(Succeed())
		Expect(again.UID).NotTo(Equal(before.UID))
		Expect(again.Status.StorageIdentity).To(Equal(before.Status.StorageIdentity))
		use(ctx)
		Expect(sh(ctx, pod, "%s", look)).To(Equal(was))
	}, SpecTimeout(limit))

	It("is the only one with its identity", func(ctx SpecContext) {
		second := &v1alpha1.FileServer{ObjectMeta: metav1.ObjectMeta{Name: name + "-too", Namespace: c.Namespace}, Spec: *before.Spec.DeepCopy()}
		second.Spec.Storage.Ceph.Identity = before.Status.StorageIdentity
		Expect(c.Create(ctx, second)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { remove(ctx, "fileserver", second.Name) }, NodeTimeout(limit))
		Eventually(ctx, func(ctx context.Context) error {
			if err := c.Get(ctx, second.Name, second); err != nil {
				return err
			}
			return cluster.Expect(second.Status.Conditions, v1alpha1.ConditionReady, metav1.ConditionFalse)
		}).Should(Succeed())
		Expect(cluster.Condition(second.Status.Conditions, v1alpha1.ConditionReady).Message).To(ContainSubstring("FileServer " + c.Namespace + "/" + name + " has " + before.Status.StorageIdentity))
		Expect(sh(ctx, pod, "cat %s/made/file | wc -c", mountPoint)).To(Equal("100000\n"))
	}, SpecTimeout(limit))

	It("has pods that comply with the Pod Security level restricted", func(ctx SpecContext) {
		// With a dry run of the label, the API server checks the existing pods and warns of those that violate the level.
		warnings, err := c.Kubectl(ctx, "label", "--dry-run=server", "--overwrite", "namespace", c.Namespace, "pod-security.kubernetes.io/enforce=restricted")
		Expect(err).NotTo(HaveOccurred(), warnings)
		Expect(warnings).NotTo(MatchRegexp(name+`-([0-9]|namespace|steward)`), "a pod of FileServer "+name+" does not fit")
	}, SpecTimeout(limit))
})
