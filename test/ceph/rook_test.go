package ceph

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/ceph"
	"github.com/howdah/howdah/test/cluster"
)

// rookNamespace is the namespace into which hack/rook.sh installs Rook and its CephCluster.
const rookNamespace = "rook-ceph"

// The real Rook operator makes what Howdah requests; the lab's Ceph is an external cluster to Rook. The test has its own
// label, because Rook has to be built first (hack/rook.sh).
var _ = Describe("A FileServer on a Ceph that the real Rook manages", Ordered, Label("rook"), func() {
	const (
		name  = "rooked"
		share = "rooked"
		pod   = "rook-client"
	)
	var fs *v1alpha1.FileServer
	key := func(name string) client.ObjectKey { return client.ObjectKey{Namespace: rookNamespace, Name: name} }
	storage := func(ctx context.Context) string {
		found := &v1alpha1.FileServer{}
		if err := c.Client.Get(ctx, key(name), found); err != nil {
			return err.Error()
		}
		condition := cluster.Condition(found.Status.Conditions, v1alpha1.FileServerStorageAvailable)
		return fmt.Sprintf("%s %s %s", condition.Status, condition.Reason, condition.Message)
	}
	ready := func(ctx context.Context) error {
		found := &v1alpha1.FileServer{}
		if err := c.Client.Get(ctx, key(name), found); err != nil {
			return err
		}
		return cluster.Expect(found.Status.Conditions, v1alpha1.ConditionReady, metav1.ConditionTrue)
	}
	inCeph := func(ctx context.Context, arguments ...string) (string, error) {
		return c.Kubectl(ctx, append([]string{"exec", "--namespace", cephNamespace, "ceph-mon-0", "--", "ceph"}, arguments...)...)
	}
	took := func(what string, began time.Time) {
		AddReportEntry(what, time.Since(began).Round(100*time.Millisecond).String(), ReportEntryVisibilityAlways)
	}

	BeforeAll(func(ctx SpecContext) {
		fs = &v1alpha1.FileServer{
			ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: rookNamespace},
			Spec: v1alpha1.FileServerSpec{
				Replicas: 2,
				Storage: v1alpha1.FileServerStorage{Ceph: v1alpha1.CephStorage{Rook: v1alpha1.RookCeph{
					ClusterRef: v1alpha1.CephClusterReference{Name: "rook-ceph"}, FileSystem: filesystem, RecoveryPool: "howdah",
				}}},
				AllowedNamespaces: &v1alpha1.AllowedNamespaces{From: v1alpha1.NamespacesFromAll},
			},
		}
		Expect(c.Create(ctx, fs)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) {
			output, err := c.Kubectl(ctx, "delete", "fileserver", name, "--namespace", rookNamespace, "--ignore-not-found", "--timeout=5m")
			Expect(err).NotTo(HaveOccurred(), output)
			output, err = c.Kubectl(ctx, "delete", "cephfilesystemsubvolumegroup", ceph.Group(v1alpha1.StorageIdentity(fs)), "--namespace", rookNamespace, "--ignore-not-found", "--timeout=2m")
			Expect(err).NotTo(HaveOccurred(), output)
			for ordinal := range int32(2) {
				admin.ask(ctx, toMon("auth rm", request{"entity": "client." + ceph.RecoveryUser(v1alpha1.StorageIdentity(fs), ordinal)}))
			}
			admin.ask(ctx, toMgr("fs subvolumegroup rm", request{"vol_name": filesystem, "group_name": ceph.Group(v1alpha1.StorageIdentity(fs))}))
		}, NodeTimeout(limit))
		DeferCleanup(func(ctx SpecContext) { // Before the FileServer's, which is deferred first.
			for _, args := range [][]string{
				{"delete", "pod", pod, "--ignore-not-found", "--grace-period=1", "--timeout=5m"},
				{"delete", "fileshare", share, share + "-2", "--ignore-not-found", "--timeout=5m"},
			} {
				output, err := c.Kubectl(ctx, args...)
				Expect(err).NotTo(HaveOccurred(), output)
			}
		}, NodeTimeout(limit))
	}, NodeTimeout(limit))

	It("gets its account and its group from Rook, and is ready", func(ctx SpecContext) {
		began := time.Now()
		Eventually(ctx, ready).Should(Succeed(), func() string { return storage(ctx) })
		took("from the FileServer to one that is ready", began)
		Expect(c.Client.Get(ctx, client.ObjectKeyFromObject(fs), fs)).To(Succeed())
		Expect(storage(ctx)).To(Equal("True Ready 2 of 2 data servers use Ceph file system " + filesystem))
		output, err := c.Kubectl(ctx, "get", "cephclients,cephfilesystemsubvolumegroups", "--namespace", rookNamespace, "--output", "wide")
		Expect(err).NotTo(HaveOccurred())
		AddReportEntry("Rook's objects", output, ReportEntryVisibilityAlways)
		output, err = inCeph(ctx, "auth", "get", "client."+ceph.Account(v1alpha1.StorageIdentity(fs)), "--format", "json")
		Expect(err).NotTo(HaveOccurred(), output)
		var accounts []struct{ Caps map[string]string }
		Expect(json.Unmarshal([]byte(output), &accounts)).To(Succeed(), output)
		Expect(accounts).To(HaveLen(1))
		Expect(accounts[0].Caps).To(Equal(ceph.AccountCaps(v1alpha1.StorageIdentity(fs), filesystem, "howdah")))
	}, SpecTimeout(limit))

	It("serves a share of another namespace with its quota, also after the loss of a data server", func(ctx SpecContext) {
		began := time.Now()
		quota := resource.MustParse("64Mi")
		Expect(c.Create(ctx, &v1alpha1.FileShare{
			ObjectMeta: metav1.ObjectMeta{Name: share, Namespace: c.Namespace},
			Spec: v1alpha1.FileShareSpec{
				FileServerRef: v1alpha1.FileServerReference{Name: name, Namespace: rookNamespace}, Path: "/rooked", Directories: []string{"d{0..1}"}, Mode: "0777",
				ReclaimPolicy: v1alpha1.ReclaimDelete, Quota: v1alpha1.ShareQuota{Size: &quota},
			},
		})).To(Succeed())
		Eventually(ctx, func(ctx context.Context) error { return c.ShareReady(ctx, share) }).Should(Succeed())
		took("from the FileShare to one that is ready", began)
		Expect(c.RunClient(ctx, cluster.ClientPod{Name: pod, Claims: map[string]string{mountPoint: share}})).To(Succeed())
		Expect(c.WaitPodReady(ctx, pod)).To(Succeed())
		sh(ctx, pod, "set -e; for i in 0 1; do echo data-$i >%s/d$i/file; done; sync", mountPoint)
		Expect(strings.TrimSpace(sh(ctx, pod, "df -P -B1 %s/d0 | awk 'END {print $2}'", mountPoint))).To(Equal("67108864"))
		output, err := c.Kubectl(ctx, "delete", "pod", name+"-0", "--namespace", rookNamespace, "--grace-period=0", "--force", "--wait=false")
		Expect(err).NotTo(HaveOccurred(), output)
		began = time.Now()
		sh(ctx, pod, "set -e; for i in 0 1; do echo more >>%s/d$i/file; done; sync", mountPoint)
		took("write and sync in both directories, a data server's pod deleted by force", began)
		Expect(sh(ctx, pod, "cat %[1]s/d0/file %[1]s/d1/file", mountPoint)).To(Equal("data-0\nmore\ndata-1\nmore\n"))
		Eventually(ctx, ready).Should(Succeed())
	}, SpecTimeout(limit))

	It("uses the new monitors when they change", func(ctx SpecContext) {
		monitors := func(ctx context.Context) []string {
			steward := &internalv1.Steward{}
			Expect(c.Client.Get(ctx, key(name), steward)).To(Succeed())
			return steward.Spec.Ceph.Monitors
		}
		before := monitors(ctx)
		Expect(before).To(HaveLen(1))
		endpoints := &corev1.ConfigMap{}
		Expect(c.Client.Get(ctx, key("rook-ceph-mon-endpoints"), endpoints)).To(Succeed())
		AddReportEntry("endpoints as Rook has them", endpoints.Data["data"], ReportEntryVisibilityAlways)
		changed := endpoints.DeepCopy()
		changed.Data["data"] += ",z=" + strings.Replace(before[0], ":6789", ":3300", 1)
		Expect(c.Client.Patch(ctx, changed, client.MergeFrom(endpoints))).To(Succeed())
		began := time.Now()
		Eventually(ctx, monitors).Should(HaveLen(2))
		took("from the ConfigMap to the Steward", began)
		Expect(c.Client.Patch(ctx, endpoints, client.RawPatch(types.MergePatchType, []byte(`{"data":{"data":"`+endpoints.Data["data"]+`"}}`)))).To(Succeed())
		Eventually(ctx, monitors).Should(Equal(before), "Rook writes the ConfigMap of an external cluster when its quorum changes, and not before")
		Eventually(ctx, ready).Should(Succeed())
	}, SpecTimeout(limit))

	It("gets its account again after it was deleted, and serves meanwhile", func(ctx SpecContext) {
		output, err := c.Kubectl(ctx, "delete", "cephclient", ceph.Account(v1alpha1.StorageIdentity(fs)), "--namespace", rookNamespace, "--timeout=2m")
		Expect(err).NotTo(HaveOccurred(), output)
		began := time.Now()
		Eventually(ctx, func(ctx context.Context) string {
			output, _ := c.Kubectl(ctx, "get", "cephclient", ceph.Account(v1alpha1.StorageIdentity(fs)), "--namespace", rookNamespace, "--output", "jsonpath={.status.phase}")
			return output
		}).Should(Equal("Ready"))
		took("an account that was deleted is there again, with another key", began)
		sh(ctx, pod, "set -e; echo still >%s/d0/still; sync", mountPoint)
		// The steward gets the new key from its mounted Secret within two minutes, and makes a share with it.
		Expect(c.Create(ctx, &v1alpha1.FileShare{
			ObjectMeta: metav1.ObjectMeta{Name: share + "-2", Namespace: c.Namespace},
			Spec: v1alpha1.FileShareSpec{
				FileServerRef: v1alpha1.FileServerReference{Name: name, Namespace: rookNamespace}, Path: "/rooked-2", Mode: "0777", ReclaimPolicy: v1alpha1.ReclaimDelete,
			},
		})).To(Succeed())
		Eventually(ctx, func(ctx context.Context) error { return c.ShareReady(ctx, share+"-2") }).Should(Succeed())
		took("until a share was made with the new key", began)
	}, SpecTimeout(limit))

	It("leaves no account behind when it is deleted", func(ctx SpecContext) {
		for _, args := range [][]string{
			{"delete", "pod", pod, "--grace-period=1", "--timeout=5m"},
			{"delete", "fileshare", share, share + "-2", "--timeout=5m"},
			{"delete", "fileserver", name, "--namespace", rookNamespace, "--timeout=5m"},
		} {
			output, err := c.Kubectl(ctx, args...)
			Expect(err).NotTo(HaveOccurred(), output)
		}
		Eventually(ctx, func(ctx context.Context) error {
			_, err := inCeph(ctx, "auth", "get", "client."+ceph.Account(v1alpha1.StorageIdentity(fs)))
			return err
		}).Should(MatchError(ContainSubstring("ENOENT")))
		Eventually(ctx, func(ctx context.Context) bool {
			return apierrors.IsNotFound(c.Client.Get(ctx, key("rook-ceph-client-"+ceph.Account(v1alpha1.StorageIdentity(fs))), &corev1.Secret{}))
		}).Should(BeTrue())
	}, SpecTimeout(limit))
})
