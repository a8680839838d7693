package e2e

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/test/cluster"
)

// tenantUser is the user of the tenant's pods and of its share.
const tenantUser = int64(1000)

var _ = Describe("A tenant", Label("tenants"), func() {
	var tenant cluster.Cluster
	BeforeEach(func(ctx SpecContext) {
		tenant = *c
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
			GenerateName: "howdah-e2e-tenant-", Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"},
		}}
		Expect(c.Create(ctx, namespace)).To(Succeed())
		tenant.Namespace = namespace.Name
		DeferCleanup(func(ctx SpecContext) {
			By("deleting the tenant's namespace with all that is in it")
			Expect(client.IgnoreNotFound(c.Client.Delete(ctx, namespace))).To(Succeed())
			Expect(c.WaitGone(ctx, namespace)).To(Succeed())
			// It stays allowed until then: a share that is not is deleted without its data.
			allow(ctx, nil)
			for ordinal := range int32(serverCount) {
				Expect(namesOfData(ctx, ordinal)).NotTo(ContainSubstring(tenant.Namespace))
			}
		}, NodeTimeout(bound(2*time.Minute)))
	})

	It("uses a share of a FileServer of another namespace without any privilege, until that is taken back", func(ctx SpecContext) {
		uid := tenantUser
		object := newShare("data", "/tenant/data", 1, "d{0..2}")
		object.Namespace, object.Spec.FileServerRef.Namespace = tenant.Namespace, c.Namespace
		object.Spec.UID, object.Spec.GID, object.Spec.Mode, object.Spec.ReclaimPolicy = &uid, &uid, "0750", v1alpha1.ReclaimDelete
		Expect(c.Create(ctx, object)).To(Succeed())
		refused := func(ctx context.Context) string {
			Expect(tenant.Get(ctx, "data", object)).To(Succeed())
			return cluster.Condition(object.Status.Conditions, v1alpha1.ConditionReady).Reason
		}
		Eventually(ctx, refused).Should(Equal(v1alpha1.ReasonNamespaceNotAllowed))
		allow(ctx, &tenant)
		Eventually(ctx, func() error { return tenant.ShareReady(ctx, "data") }).Should(Succeed())

		By("a pod of the level restricted, which is enforced")
		pod := tenantPod(tenant.Namespace, "writer", "data")
		privileged := pod.DeepCopy()
		privileged.Spec.Containers[0].SecurityContext = nil
		Expect(apierrors.IsForbidden(c.Create(ctx, privileged))).To(BeTrue())
		Expect(c.Create(ctx, pod)).To(Succeed())
		Expect(tenant.WaitPodReady(ctx, "writer")).To(Succeed())
		write := "id -u > /data/d0/owner && mkdir /data/made && echo kept > /data/made/file && cat /data/made/file"
		output, err := tenant.Shell(ctx, "writer", write)
		Expect(err).NotTo(HaveOccurred())
		Expect(output).To(Equal("kept\n"))
		Expect(shell(ctx, clientA, "ls -n /tree/tenant/data/d0/owner")).To(ContainSubstring("1000 1000"))
		var whole []string
		for ordinal := range int32(serverCount) {
			whole = append(whole, directoriesOn(ctx, ordinal, tenant.Namespace+".data", "")...)
		}
		Expect(whole).To(ConsistOf("d0", "d1", "d2", "made"))

		By("a benchmark there")
		tenantBenchmark(ctx, &tenant)

		By("taking it back: the mount serves nothing, and nothing is lost")
		allow(ctx, nil)
		Eventually(ctx, refused).Should(Equal(v1alpha1.ReasonNamespaceNotAllowed))
		Eventually(ctx, func(ctx context.Context) error {
			_, err := tenant.Shell(ctx, "writer", "cat /data/made/file")
			return err
		}).ShouldNot(Succeed())
		Eventually(ctx, func() string { return shell(ctx, clientA, "ls /tree") }).ShouldNot(ContainSubstring("tenant"))
		By("giving it again: the pod that was there goes on")
		allow(ctx, &tenant)
		Eventually(ctx, func(ctx context.Context) (string, error) { return tenant.Shell(ctx, "writer", "cat /data/made/file") }).Should(Equal("kept\n"))
		Eventually(ctx, func() error { return tenant.ShareReady(ctx, "data") }).Should(Succeed())
	}, SpecTimeout(bound(4*time.Minute)))
})

// allow lets the suite's FileServer serve shares of a tenant's namespace, or only of its own.
func allow(ctx context.Context, tenant *cluster.Cluster) {
	GinkgoHelper()
	before := &v1alpha1.FileServer{}
	Expect(c.Get(ctx, fileServer, before)).To(Succeed())
	after := before.DeepCopy()
	after.Spec.AllowedNamespaces = nil
	if tenant != nil {
		after.Spec.AllowedNamespaces = &v1alpha1.AllowedNamespaces{
			From:     v1alpha1.NamespacesFromSelector,
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: tenant.Namespace}},
		}
	}
	Expect(c.Patch(ctx, after, client.MergeFrom(before))).To(Succeed())
}

// tenantPod is a pod that the Pod Security level restricted admits, with a claim at /CLAIM.
func tenantPod(namespace, name, claim string) *corev1.Pod {
	grace, token, escalation, uid, nonRoot := int64(1), false, false, tenantUser, true
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace, Labels: map[string]string{cluster.ClientLabel: "tenant"}},
		Spec: corev1.PodSpec{
			TerminationGracePeriodSeconds: &grace,
			AutomountServiceAccountToken:  &token,
			SecurityContext: &corev1.PodSecurityContext{
				RunAsUser: &uid, RunAsGroup: &uid, RunAsNonRoot: &nonRoot,
				SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			},
			Containers: []corev1.Container{{
				Name: "client", Image: c.ClientImage, ImagePullPolicy: corev1.PullIfNotPresent, Command: []string{"sleep", "infinity"},
				SecurityContext: &corev1.SecurityContext{
					AllowPrivilegeEscalation: &escalation, Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
				},
				VolumeMounts: []corev1.VolumeMount{{Name: "share", MountPath: "/" + claim}},
			}},
			Volumes: []corev1.Volume{{Name: "share", VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim},
			}}},
		},
	}
}

// tenantBenchmark runs a small job on the tenant's share.
func tenantBenchmark(ctx context.Context, tenant *cluster.Cluster) {
	GinkgoHelper()
	size := resource.MustParse("200k")
	job := &v1alpha1.MLPerfStorageJob{
		ObjectMeta: metav1.ObjectMeta{Name: "unet3d", Namespace: tenant.Namespace},
		Spec: v1alpha1.MLPerfStorageJobSpec{
			FileShareRef: v1alpha1.FileShareReference{Name: "data"},
			Accelerator:  v1alpha1.Accelerator{Type: v1alpha1.AcceleratorH100, Count: 1},
			Clients:      1,
			Dataset:      &v1alpha1.Dataset{Samples: 14, SampleSize: &size},
			Epochs:       1,
		},
	}
	Expect(c.Create(ctx, job)).To(Succeed())
	Expect(cluster.WaitFor(ctx, "the tenant's verdict", func(ctx context.Context) error {
		if err := tenant.Get(ctx, job.Name, job); err != nil {
			return err
		}
		if condition := cluster.Condition(job.Status.Conditions, v1alpha1.JobSucceeded); condition.Status == metav1.ConditionUnknown {
			return fmt.Errorf("%s: %s", condition.Reason, condition.Message)
		}
		return nil
	})).To(Succeed())
	Expect(job.Status.Result).NotTo(BeZero(), fmt.Sprint(job.Status.Conditions))
	Expect(job.Status.Result.PerServer).To(HaveLen(serverCount))
}
