package e2e

import (
	"context"
	"fmt"
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

// The real admission of the API server refuses pods, and the real controllers of StatefulSets, Deployments and Jobs
// report it. test/integration plays these controllers.
var _ = Describe("Pods that admission refuses", Label("refused"), func() {
	// refusedNamespace is a Kubernetes namespace of the spec's own, with what its pods need.
	refusedNamespace := func(ctx SpecContext, labels map[string]string) string {
		GinkgoHelper()
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "howdah-refused-", Labels: labels}}
		Expect(c.Create(ctx, namespace)).To(Succeed())
		DeferCleanup(func(ctx context.Context) { Expect(c.Delete(ctx, namespace)).To(Succeed()) })
		prepareStorage(ctx, namespace.Name)
		return namespace.Name
	}
	// conditionOf is a condition of the FileServer in that namespace, as "Reason: message".
	conditionOf := func(namespace, kind string) func(context.Context) (string, error) {
		return func(ctx context.Context) (string, error) {
			fs := &v1alpha1.FileServer{}
			err := c.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "refused"}, fs)
			condition := cluster.Condition(fs.Status.Conditions, kind)
			return condition.Reason + ": " + condition.Message, err
		}
	}
	serve := func(ctx SpecContext, namespace string) {
		GinkgoHelper()
		fs := newFileServer(ctx, "refused", 1)
		fs.Namespace = namespace
		Expect(c.Create(ctx, fs)).To(Succeed())
		DeferCleanup(func(ctx context.Context) {
			Expect(c.Delete(ctx, fs)).To(Succeed())
			Expect(c.WaitGone(ctx, fs)).To(Succeed())
		}, NodeTimeout(bound(time.Minute)))
	}
	// quota allows no pods. Admission goes by what Kubernetes' controller of quotas has written into its status.
	quota := func(ctx SpecContext, namespace string) *corev1.ResourceQuota {
		GinkgoHelper()
		none := &corev1.ResourceQuota{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "none"},
			Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("0")}},
		}
		Expect(c.Create(ctx, none)).To(Succeed())
		DeferCleanup(func(ctx context.Context) { Expect(client.IgnoreNotFound(c.Delete(ctx, none))).To(Succeed()) })
		Eventually(ctx, func(ctx context.Context) (corev1.ResourceList, error) {
			return none.Status.Hard, c.Client.Get(ctx, client.ObjectKeyFromObject(none), none)
		}).Should(HaveKey(corev1.ResourcePods))
		return none
	}

	It("by a ResourceQuota are named in the FileServer's conditions, until they are made", func(ctx SpecContext) {
		namespace := refusedNamespace(ctx, map[string]string{"pod-security.kubernetes.io/enforce": "privileged"})
		none := quota(ctx, namespace)
		serve(ctx, namespace)
		Eventually(ctx, conditionOf(namespace, v1alpha1.FileServerServersAvailable)).Should(And(
			HavePrefix(v1alpha1.ReasonPodsRefused+": "), ContainSubstring("its pod is refused: exceeded quota: none, requested: pods=1")))
		Eventually(ctx, conditionOf(namespace, v1alpha1.FileServerNamespaceServersAvailable)).Should(And(
			HavePrefix(v1alpha1.ReasonPodsRefused+": "), ContainSubstring("a pod is refused: exceeded quota: none, requested: pods=1")))
		Expect(conditionOf(namespace, v1alpha1.ConditionStalled)(ctx)).To(HavePrefix(v1alpha1.ReasonPodsRefused + ": "))
		Expect(c.Delete(ctx, none)).To(Succeed())
		for _, kind := range []string{v1alpha1.FileServerServersAvailable, v1alpha1.FileServerNamespaceServersAvailable} {
			Eventually(ctx, conditionOf(namespace, kind)).WithTimeout(bound(2 * time.Minute)).ShouldNot(ContainSubstring("refused"))
		}
	}, SpecTimeout(bound(4*time.Minute)))

	It("by Pod Security are named in the FileServer's conditions", Label(podsNeedRights), func(ctx SpecContext) {
		namespace := refusedNamespace(ctx, map[string]string{"pod-security.kubernetes.io/enforce": "restricted"})
		serve(ctx, namespace)
		Eventually(ctx, conditionOf(namespace, v1alpha1.FileServerServersAvailable)).Should(And(
			HavePrefix(v1alpha1.ReasonPodsRefused+": "), ContainSubstring(`its pod is refused: violates PodSecurity "restricted:latest"`)))
		Expect(conditionOf(namespace, v1alpha1.FileServerNamespaceServersAvailable)(ctx)).NotTo(ContainSubstring("refused"), "namespace servers are within the level restricted")
	}, SpecTimeout(bound(2*time.Minute)))

	It("by a LimitRange are named in the FileServer's conditions", func(ctx SpecContext) {
		namespace := refusedNamespace(ctx, map[string]string{"pod-security.kubernetes.io/enforce": "privileged"})
		Expect(c.Create(ctx, &corev1.LimitRange{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "small"},
			Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{
				Type: corev1.LimitTypeContainer, Max: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("8Mi")},
			}}},
		})).To(Succeed())
		serve(ctx, namespace)
		for _, kind := range []string{v1alpha1.FileServerServersAvailable, v1alpha1.FileServerNamespaceServersAvailable} {
			Eventually(ctx, conditionOf(namespace, kind)).Should(And(
				HavePrefix(v1alpha1.ReasonPodsRefused+": "), ContainSubstring("maximum memory usage per Container is 8Mi")))
		}
	}, SpecTimeout(bound(2*time.Minute)))

	It("by a ResourceQuota are named in the MLPerfStorageJob's condition", func(ctx SpecContext) {
		quota(ctx, c.Namespace)
		size := resource.MustParse("10k")
		job := &v1alpha1.MLPerfStorageJob{
			ObjectMeta: metav1.ObjectMeta{Name: "refused", Namespace: c.Namespace},
			Spec: v1alpha1.MLPerfStorageJobSpec{
				FileShareRef: v1alpha1.FileShareReference{Name: share}, Accelerator: v1alpha1.Accelerator{Type: v1alpha1.AcceleratorH100, Count: 1},
				Clients: 1, Dataset: &v1alpha1.Dataset{Samples: 8, SampleSize: &size}, Epochs: 1,
			},
		}
		Expect(c.Create(ctx, job)).To(Succeed())
		DeferCleanup(func(ctx context.Context) {
			Expect(c.Delete(ctx, job)).To(Succeed())
			Expect(c.WaitGone(ctx, job)).To(Succeed())
		}, NodeTimeout(bound(time.Minute)))
		Eventually(ctx, func(ctx context.Context) (string, error) {
			err := c.Client.Get(ctx, client.ObjectKeyFromObject(job), job)
			condition := cluster.Condition(job.Status.Conditions, v1alpha1.JobSucceeded)
			return fmt.Sprint(condition.Reason, ": ", condition.Message), err
		}).Should(HavePrefix(v1alpha1.ReasonPodsRefused + ": client pods are refused: exceeded quota: none, requested: pods=1"))
	}, SpecTimeout(bound(2*time.Minute)))
})
