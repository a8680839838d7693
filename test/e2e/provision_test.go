package e2e

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/naming"
	"github.com/howdah/howdah/test/cluster"
)

// Claims of StorageClasses, with Kubernetes' own controller of volumes. The operator must be installed with provisioning.enabled.
var _ = Describe("A claim of a StorageClass", Label("provision"), Ordered, func() {
	var user cluster.Cluster
	BeforeAll(func(ctx SpecContext) {
		user = *c
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
			GenerateName: "howdah-e2e-claims-", Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"},
		}}
		Expect(c.Create(ctx, namespace)).To(Succeed())
		user.Namespace = namespace.Name
		allow(ctx, &user)
		DeferCleanup(func(ctx SpecContext) {
			Expect(client.IgnoreNotFound(c.Client.Delete(ctx, namespace))).To(Succeed())
			Expect(c.WaitGone(ctx, namespace)).To(Succeed())
			allow(ctx, nil)
		}, NodeTimeout(bound(2*time.Minute)))
	}, NodeTimeout(bound(time.Minute)))

	It("is served in another namespace of level restricted, and goes with its data", func(ctx SpecContext) {
		class := newStorageClass(ctx, user.Namespace+"-delete", corev1.PersistentVolumeReclaimDelete)
		claim := newStorageClaim(ctx, user.Namespace, "scratch", class, "1Gi")
		started := time.Now()
		writer := tenantPod(user.Namespace, "writer", "scratch")
		Expect(c.Create(ctx, writer)).To(Succeed())
		Expect(user.WaitPodReady(ctx, "writer")).To(Succeed())
		AddReportEntry("claim", fmt.Sprintf("from the claim to a pod that has it mounted: %.1f s", time.Since(started).Seconds()))
		output, err := user.Shell(ctx, "writer", "echo kept > /scratch/file && mkdir -p /scratch/a/b && mv /scratch/file /scratch/a/b && cat /scratch/a/b/file")
		Expect(err).NotTo(HaveOccurred(), "any file anywhere")
		Expect(output).To(Equal("kept\n"))
		Expect(c.Client.Get(ctx, client.ObjectKeyFromObject(claim), claim)).To(Succeed())
		Expect(claim.Status.Phase).To(Equal(corev1.ClaimBound))
		share := naming.ProvisionedVolume(string(claim.UID))
		Expect(placesOf(ctx, share)).To(HaveLen(1), "the whole share is on one server")
		Expect(shell(ctx, clientA, "cat /tree/%s/scratch-%s/a/b/file", user.Namespace, string(claim.UID)[:8])).To(Equal("kept\n"))

		By("the claim growing, as its class allows")
		before := claim.DeepCopy()
		claim.Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse("2Gi")
		Expect(c.Patch(ctx, claim, client.MergeFrom(before))).To(Succeed())
		Eventually(ctx, func(ctx context.Context) (string, error) {
			err := c.Client.Get(ctx, client.ObjectKeyFromObject(claim), claim)
			return claim.Status.Capacity.Storage().String(), err
		}).Should(Equal("2Gi"))

		By("another pod reading, and both going with the claim")
		reader := tenantPod(user.Namespace, "reader", "scratch")
		Expect(c.Create(ctx, reader)).To(Succeed())
		Expect(user.WaitPodReady(ctx, "reader")).To(Succeed())
		output, err = user.Shell(ctx, "reader", "cat /scratch/a/b/file")
		Expect(err).NotTo(HaveOccurred())
		Expect(output).To(Equal("kept\n"))
		Expect(c.Client.Delete(ctx, claim)).To(Succeed())
		Consistently(ctx, func() error { return c.Get(ctx, share, &v1alpha1.FileShare{}) }, "3s").Should(Succeed(), "pods still use it")
		for _, pod := range []*corev1.Pod{writer, reader} {
			Expect(c.Client.Delete(ctx, pod)).To(Succeed())
		}
		Expect(c.WaitGone(ctx, claim)).To(Succeed())
		Expect(c.WaitGone(ctx, &v1alpha1.FileShare{ObjectMeta: metav1.ObjectMeta{Name: share, Namespace: c.Namespace}})).To(Succeed())
		Expect(c.WaitGone(ctx, &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: share}})).To(Succeed())
		Expect(placesOf(ctx, share)).To(BeEmpty())
	}, SpecTimeout(bound(4*time.Minute)))

	It("keeps its data with Retain", func(ctx SpecContext) {
		class := newStorageClass(ctx, user.Namespace+"-retain", corev1.PersistentVolumeReclaimRetain)
		claim := newStorageClaim(ctx, user.Namespace, "results", class, "1Gi")
		pod := tenantPod(user.Namespace, "worker", "results")
		Expect(c.Create(ctx, pod)).To(Succeed())
		Expect(user.WaitPodReady(ctx, "worker")).To(Succeed())
		_, err := user.Shell(ctx, "worker", "echo result > /results/file && sync /results/file")
		Expect(err).NotTo(HaveOccurred())
		Expect(c.Client.Get(ctx, client.ObjectKeyFromObject(claim), claim)).To(Succeed())
		for _, object := range []client.Object{pod, claim} {
			Expect(c.Client.Delete(ctx, object)).To(Succeed())
			Expect(c.WaitGone(ctx, object)).To(Succeed())
		}
		volume := &corev1.PersistentVolume{}
		Eventually(ctx, func(ctx context.Context) (corev1.PersistentVolumePhase, error) {
			err := c.Client.Get(ctx, client.ObjectKey{Name: naming.ProvisionedVolume(string(claim.UID))}, volume)
			return volume.Status.Phase, err
		}).Should(Equal(corev1.VolumeReleased))
		Expect(shell(ctx, clientA, "cat /tree/%s/results-%s/file", user.Namespace, string(claim.UID)[:8])).To(Equal("result\n"))

		By("the volume being deleted, which keeps the share and its data, and the share with its data after that")
		Expect(c.Client.Delete(ctx, volume)).To(Succeed())
		Expect(c.WaitGone(ctx, volume)).To(Succeed())
		share := &v1alpha1.FileShare{}
		Expect(c.Get(ctx, volume.Name, share)).To(Succeed())
		Expect(placesOf(ctx, share.Name)).To(HaveLen(1))
		before := share.DeepCopy()
		share.Spec.ReclaimPolicy = v1alpha1.ReclaimDelete
		Expect(c.Patch(ctx, share, client.MergeFrom(before))).To(Succeed())
		Expect(c.Client.Delete(ctx, share)).To(Succeed())
		Expect(c.WaitGone(ctx, share)).To(Succeed())
	}, SpecTimeout(bound(4*time.Minute)))

	It("can be a directory of a share, which stays", func(ctx SpecContext) {
		home := newShare("home", "/home", 2)
		home.Spec.ReclaimPolicy = v1alpha1.ReclaimDelete
		Expect(c.Create(ctx, home)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) {
			Expect(c.Client.Delete(ctx, home)).To(Succeed())
			Expect(c.WaitGone(ctx, home)).To(Succeed())
		}, NodeTimeout(bound(time.Minute)))
		class := newStorageClass(ctx, user.Namespace+"-home", corev1.PersistentVolumeReclaimRetain, "fileShare", "home")
		claim := newStorageClaim(ctx, user.Namespace, "directory", class, "1Gi")
		pod := tenantPod(user.Namespace, "dweller", "directory")
		Expect(c.Create(ctx, pod)).To(Succeed())
		Expect(user.WaitPodReady(ctx, "dweller")).To(Succeed())
		output, err := user.Shell(ctx, "dweller", "echo kept > /directory/file && mkdir /directory/d && ls -nd /directory && cat /directory/file")
		Expect(err).NotTo(HaveOccurred())
		Expect(output).To(And(HavePrefix("drwx------"), ContainSubstring(" 1000 "), HaveSuffix("kept\n")))
		Expect(c.Client.Get(ctx, client.ObjectKeyFromObject(claim), claim)).To(Succeed())
		path := fmt.Sprintf("%s/directory-%s", user.Namespace, string(claim.UID)[:8])
		Expect(shell(ctx, clientA, "cat /tree/home/%s/file", path)).To(Equal("kept\n"))
		var owners []string
		for ordinal := range int32(serverCount) {
			if len(directoriesOn(ctx, ordinal, "home", path)) > 0 {
				owners = append(owners, naming.DataServer(fileServer, ordinal))
			}
		}
		Expect(owners).To(HaveLen(1), "the directory is on one data server")
		for _, object := range []client.Object{pod, claim} {
			Expect(c.Client.Delete(ctx, object)).To(Succeed())
			Expect(c.WaitGone(ctx, object)).To(Succeed())
		}
		Expect(shell(ctx, clientA, "cat /tree/home/%s/file", path)).To(Equal("kept\n"))
		Expect(c.Client.Delete(ctx, &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: naming.ProvisionedVolume(string(claim.UID))}})).To(Succeed())
	}, SpecTimeout(bound(3*time.Minute)))

	It("gets an event with what is wrong with it", Label(volumesHaveSizes), func(ctx SpecContext) {
		class := newStorageClass(ctx, user.Namespace+"-strict", corev1.PersistentVolumeReclaimDelete, "size", "Required")
		claim := newStorageClaim(ctx, user.Namespace, "strict", class, "1Gi")
		Eventually(ctx, func(ctx context.Context) (string, error) {
			return user.Kubectl(ctx, "describe", "pvc", claim.Name)
		}).Should(ContainSubstring("parameter size: Required, and the storage of FileServer training does not enforce sizes"))
		Expect(c.Client.Delete(ctx, claim)).To(Succeed())
	}, SpecTimeout(bound(time.Minute)))
})

// newStorageClass makes one whose claims become shares of the suite's FileServer, and takes it away in the end. What is in it belongs to the
// user of tenant pods.
func newStorageClass(ctx context.Context, name string, policy corev1.PersistentVolumeReclaimPolicy, parameters ...string) string {
	GinkgoHelper()
	yes := true
	class := &storagev1.StorageClass{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Provisioner: v1alpha1.Provisioner, ReclaimPolicy: &policy, AllowVolumeExpansion: &yes,
		Parameters: map[string]string{"fileServer": fileServer, "fileServerNamespace": c.Namespace, "uid": fmt.Sprint(tenantUser), "mode": "0700"},
	}
	for i := 0; i+1 < len(parameters); i += 2 {
		class.Parameters[parameters[i]] = parameters[i+1]
	}
	Expect(c.Create(ctx, class)).To(Succeed())
	DeferCleanup(func(ctx SpecContext) { Expect(c.Client.Delete(ctx, class)).To(Succeed()) })
	return name
}

func newStorageClaim(ctx context.Context, namespace, name, class, size string) *corev1.PersistentVolumeClaim {
	GinkgoHelper()
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: corev1.PersistentVolumeClaimSpec{
			StorageClassName: &class, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany},
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}},
		},
	}
	Expect(c.Create(ctx, claim)).To(Succeed())
	return claim
}

// placesOf are the data servers that have something in the directory of a share. A server that exports it has an empty one.
func placesOf(ctx context.Context, share string) (servers []string) {
	GinkgoHelper()
	for ordinal := range int32(serverCount) {
		if len(directoriesOn(ctx, ordinal, share, "")) > 0 {
			servers = append(servers, naming.DataServer(fileServer, ordinal))
		}
	}
	return servers
}
