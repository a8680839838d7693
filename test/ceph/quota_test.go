package ceph

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/ceph"
	"github.com/howdah/howdah/test/cluster"
)

// stewarded creates a FileServer whose steward makes the shares in the lab's Ceph, with the lab's account of least
// privilege. At the end of the spec it removes the FileServer and what the steward leaves.
func stewarded(ctx context.Context, name string, replicas int32) {
	GinkgoHelper()
	files(ctx, name+"-ceph", map[string]string{"userID": provisioner.user, "userKey": provisioner.key})
	fs := newFileServer(ctx, name, func(fs *v1alpha1.FileServer) {
		fs.Spec.Replicas = replicas
		external := &fs.Spec.Storage.Ceph.External
		external.RecoveryUser, external.SharesSecretRef = "", v1alpha1.SecretReference{}
		external.ProvisioningSecretRef = v1alpha1.SecretReference{Name: name + "-ceph"}
	})
	DeferCleanup(func(ctx SpecContext) { // Runs before newFileServer's cleanup.
		identity := v1alpha1.StorageIdentity(fs)
		output, err := c.Kubectl(ctx, "delete", "fileserver", name, "--ignore-not-found", "--timeout=5m")
		Expect(err).NotTo(HaveOccurred(), output)
		for ordinal := range replicas {
			admin.ask(ctx, toMon("auth rm", request{"entity": "client." + ceph.RecoveryUser(identity, ordinal)}))
		}
		admin.ask(ctx, toMgr("fs subvolumegroup rm", request{"vol_name": filesystem, "group_name": ceph.Group(identity)}))
	}, NodeTimeout(limit))
	Eventually(ctx, fileServerReady(name)).Should(Succeed())
	Expect(c.Get(ctx, name, fs)).To(Succeed())
}

// The effect of a share's quota, for clients and for those who set it, where the steward makes the subvolumes.
var _ = Describe("A quota of a share in Ceph", Ordered, Label("ceph"), func() {
	const (
		name      = "bounded"
		share     = "bounded"
		pod       = "ceph-filler"
		directory = mountPoint + "/d0"
		mi        = int64(1) << 20
	)
	setQuota := func(ctx context.Context, quota string) {
		GinkgoHelper()
		output, err := c.Kubectl(ctx, "patch", "fileshare", share, "--type=merge", "-p", `{"spec":{"quota":`+quota+`}}`)
		Expect(err).NotTo(HaveOccurred(), output)
	}
	// enforced returns the share's condition QuotaEnforced and the enforced size.
	enforced := func(ctx context.Context) string {
		object := &v1alpha1.FileShare{}
		if err := c.Get(ctx, share, object); err != nil {
			return err.Error()
		}
		text := "nothing"
		if found := meta.FindStatusCondition(object.Status.Conditions, v1alpha1.FileShareQuotaEnforced); found != nil {
			text = fmt.Sprintf("%s %s", found.Status, found.Reason)
		}
		if object.Status.Quota.Size != nil {
			text += " " + object.Status.Quota.Size.String()
		}
		return text
	}
	message := func(ctx context.Context) string {
		GinkgoHelper()
		object := &v1alpha1.FileShare{}
		Expect(c.Get(ctx, share, object)).To(Succeed())
		return cluster.Condition(object.Status.Conditions, v1alpha1.FileShareQuotaEnforced).Message
	}
	// number runs a script in the client's pod and returns the number that it prints.
	number := func(ctx context.Context, script string, args ...any) int64 {
		GinkgoHelper()
		output := sh(ctx, pod, script, args...)
		n, err := strconv.ParseInt(strings.TrimSpace(output), 10, 64)
		Expect(err).NotTo(HaveOccurred(), output)
		return n
	}
	// size returns the size that df shows to a client, in bytes.
	size := func(ctx context.Context) int64 {
		GinkgoHelper()
		return number(ctx, "df -P -B1 %s | awk 'END {print $2}'", directory)
	}
	// write writes count MiB to a file, syncs them, and returns the output of dd.
	write := func(ctx context.Context, file string, count int) (string, error) {
		return c.Shell(ctx, pod, fmt.Sprintf("dd if=/dev/zero of=%s/%s bs=1M count=%d conv=fsync 2>&1", directory, file, count))
	}
	took := func(what string, began time.Time) {
		AddReportEntry(what, time.Since(began).Round(100*time.Millisecond).String(), ReportEntryVisibilityAlways)
	}

	BeforeAll(func(ctx SpecContext) {
		stewarded(ctx, name, 2)
		DeferCleanup(func(ctx SpecContext) { // Before the FileServer's, which is deferred first.
			output, err := c.Kubectl(ctx, "delete", "pod", pod, "--ignore-not-found", "--grace-period=1", "--timeout=5m")
			Expect(err).NotTo(HaveOccurred(), output)
			output, err = c.Kubectl(ctx, "delete", "fileshare", share, "--ignore-not-found", "--timeout=5m")
			Expect(err).NotTo(HaveOccurred(), output)
		}, NodeTimeout(limit))
		quota := resource.MustParse("64Mi")
		Expect(c.Create(ctx, &v1alpha1.FileShare{
			ObjectMeta: metav1.ObjectMeta{Name: share, Namespace: c.Namespace},
			Spec: v1alpha1.FileShareSpec{
				FileServerRef: v1alpha1.FileServerReference{Name: name}, Path: "/bounded", Directories: []string{"d{0..1}"}, Mode: "0777",
				ReclaimPolicy: v1alpha1.ReclaimDelete, Quota: v1alpha1.ShareQuota{Size: &quota},
			},
		})).To(Succeed())
		Eventually(ctx, func(ctx context.Context) error { return c.ShareReady(ctx, share) }).Should(Succeed())
		Expect(enforced(ctx)).To(Equal("True Ready 64Mi"), "a share became Ready without its quota")
		Expect(c.RunClient(ctx, cluster.ClientPod{Name: pod, Claims: map[string]string{mountPoint: share}})).To(Succeed())
		Expect(c.WaitPodReady(ctx, pod)).To(Succeed())
	}, NodeTimeout(limit))

	It("is shown by df and ends writes with Disk quota exceeded", func(ctx SpecContext) {
		Expect(size(ctx)).To(Equal(64 * mi))
		output, err := write(ctx, "fill", 200)
		Expect(err).To(HaveOccurred(), "200 MiB fit into 64")
		Expect(output + err.Error()).To(ContainSubstring("Disk quota exceeded"))
		written := number(ctx, "stat -c %%s %s/fill", directory)
		AddReportEntry("written to a share of 64 MiB", fmt.Sprintf("%.1f MiB", float64(written)/float64(mi)), ReportEntryVisibilityAlways)
		// Ceph's clients enforce the quota by the metadata servers' figures, which are some seconds late: 74 and 110 MiB were
		// measured here.
		Expect(written).To(And(BeNumerically(">", 55*mi), BeNumerically("<", 200*mi)))
		began := time.Now()
		Eventually(ctx, enforced).Should(Equal("True QuotaNearlyUsed 64Mi"))
		took("until the FileShare says that its quota is nearly used", began)
	}, SpecTimeout(limit))

	It("limits the whole share, also through another data server", func(ctx SpecContext) {
		output, err := c.Shell(ctx, pod, fmt.Sprintf("dd if=/dev/zero of=%s/d1/more bs=1M count=64 conv=fsync 2>&1", mountPoint))
		Expect(err).To(HaveOccurred())
		Expect(output + err.Error()).To(ContainSubstring("Disk quota exceeded"))
		sh(ctx, pod, "rm %s/d1/more", mountPoint)
	}, SpecTimeout(limit))

	It("can be raised while clients have the share mounted", func(ctx SpecContext) {
		began := time.Now()
		setQuota(ctx, `{"size":"256Mi"}`)
		Eventually(ctx, size).Should(Equal(256 * mi))
		took("from kubectl patch to df with a larger quota", began)
		Eventually(ctx, func(ctx context.Context) error {
			_, err := write(ctx, "more", 32)
			return err
		}).Should(Succeed())
		took("from kubectl patch to 32 MiB written beyond the old quota", began)
		Eventually(ctx, enforced).Should(Equal("True Ready 256Mi"))
	}, SpecTimeout(limit))

	It("is not lowered below the used size, and is lowered once less is used", func(ctx SpecContext) {
		setQuota(ctx, `{"size":"16Mi"}`)
		Eventually(ctx, enforced).Should(Equal("False QuotaBelowUse 256Mi"))
		Expect(message(ctx)).To(And(ContainSubstring("spec.quota.size is 16Mi"), ContainSubstring("the quota stays 256Mi")))
		Expect(size(ctx)).To(Equal(256 * mi))
		output, err := write(ctx, "still", 4)
		Expect(err).NotTo(HaveOccurred(), output)
		sh(ctx, pod, "rm %s/fill %s/more", directory, directory)
		began := time.Now()
		Eventually(ctx, enforced).Should(Equal("True Ready 16Mi"))
		took("until a quota that was refused is set, from the removal of files", began)
		Eventually(ctx, size).Should(Equal(16 * mi))
	}, SpecTimeout(limit))

	It("can't exceed the capacity, and can be removed", func(ctx SpecContext) {
		setQuota(ctx, `{"size":"512Ti"}`)
		Eventually(ctx, enforced).Should(Equal("False QuotaAboveCapacity 16Mi"))
		setQuota(ctx, `null`)
		Eventually(ctx, enforced).Should(Equal("nothing"))
		Eventually(ctx, size).Should(BeNumerically(">", 256*mi), "df does not show the pool's size")
		output, err := write(ctx, "fill", 32)
		Expect(err).NotTo(HaveOccurred(), output)
	}, SpecTimeout(limit))
})
