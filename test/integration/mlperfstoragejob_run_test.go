package integration

import (
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/benchmark"
	"github.com/howdah/howdah/internal/naming"
	"github.com/howdah/howdah/test/builders"
)

// readyBenchmarkShare makes a share of 2 data servers that belongs to user 1000.
func readyBenchmarkShare(namespace string) {
	GinkgoHelper()
	servingFileServer(namespace, "training", 2)
	create(builders.FileShare(namespace, "unet3d", "training").Depth(2).Directories("train/{0..5}").Owner(1000, 100, "0755").Build())
	readyShare(namespace, "unet3d")
}

var _ = Describe("An MLPerfStorageJob", func() {
	It("goes from apply to a verdict", func() {
		namespace := newNamespace()
		readyBenchmarkShare(namespace)
		job := mlperfJob(namespace, "verdict", "unet3d")
		job.Spec.Mount = &v1alpha1.BenchmarkMount{Nconnect: 4}
		job.Spec.Resources = &corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: *quantity("2"), corev1.ResourceMemory: *quantity("1Gi")},
			Limits:   corev1.ResourceList{corev1.ResourceMemory: *quantity("1024Mi")},
		}
		create(job)

		By("preparing a plan, an account and a mount of its own, the volume before its claim")
		exists(&corev1.PersistentVolume{}, "", naming.BenchmarkVolume(namespace, job.Name))
		Expect(expectJob(namespace, job.Name, metav1.ConditionUnknown, v1alpha1.ReasonPreparing)).To(ContainSubstring("waiting for Kubernetes to call PersistentVolume"))
		Expect(admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: naming.Benchmark(job.Name)}, &corev1.PersistentVolumeClaim{})).To(MatchError(ContainSubstring("not found")))
		generate := generating(namespace, job.Name)
		plan := planOf(namespace, job.Name)
		Expect(plan.Folders).To(Equal([]string{"train/0", "train/1", "train/2", "train/3", "train/4", "train/5"}))
		Expect(plan.Servers).To(HaveLen(2))
		Expect(plan.Servers[0].Exports).NotTo(BeEmpty())
		Expect(plan.ComputeMillis).To(Equal(int64(323)))
		volume := exists(&corev1.PersistentVolume{}, "", naming.BenchmarkVolume(namespace, job.Name))
		Expect(volume.Spec.MountOptions).To(ContainElements("vers=4.1", "nconnect=4", "hard"))
		Expect(volume.Spec.NFS.Path).To(Equal("/unet3d"))
		Expect(volume.Spec.ClaimRef.Name).To(Equal(naming.Benchmark(job.Name)))
		Expect(exists(&corev1.PersistentVolumeClaim{}, namespace, naming.Benchmark(job.Name)).Spec.VolumeName).To(Equal(volume.Name))
		Expect(exists(&corev1.Secret{}, namespace, naming.Benchmark(job.Name)).Data["token"]).NotTo(BeEmpty())
		Expect(exists(&rbacv1.Role{}, namespace, naming.Benchmark(job.Name)).Rules).To(HaveLen(1))

		By("writing the dataset with pods that can do no harm, each on a node of its own")
		Expect(*generate.Spec.Completions).To(Equal(int32(2)))
		pod := generate.Spec.Template.Spec
		Expect(pod.Containers[0].Image).To(Equal(howdahImage))
		Expect(*pod.SecurityContext.RunAsUser).To(Equal(int64(1000)))
		Expect(*pod.Containers[0].SecurityContext.ReadOnlyRootFilesystem).To(BeTrue())
		Expect(pod.Containers[0].SecurityContext.Capabilities.Drop).To(ConsistOf(corev1.Capability("ALL")))
		Expect(*pod.Containers[0].VolumeMounts[0].MountPropagation).To(Equal(corev1.MountPropagationHostToContainer))
		Expect(pod.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution).To(HaveLen(1))
		Expect(pod.Containers[0].Resources.Requests.Cpu().String()).To(Equal("2"))
		Expect(pod.Containers[0].Resources.Limits.Memory().String()).To(Equal("1Gi"))
		expectJob(namespace, job.Name, metav1.ConditionUnknown, v1alpha1.ReasonGeneratingDataset)
		clientsWrite(namespace, job.Name, map[string]string{
			benchmark.KeyGenerate(0): `{"files":42,"done":20,"bytes":2000000}`, benchmark.KeyGenerate(1): `{"files":42,"done":10,"bytes":1000000}`,
		})
		Eventually(func() string { return jobStatus(namespace, job.Name).Progress }, timeout).Should(Equal("30 of 84 files, 3.0 MB"))

		By("saying which client finds no node")
		clientPod(namespace, generate.Name, "1", corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{
			{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: "0/1 nodes are available"},
		}})
		Eventually(func() string {
			return expectJob(namespace, job.Name, metav1.ConditionUnknown, v1alpha1.ReasonGeneratingDataset)
		}, timeout).Should(ContainSubstring("client 1 waits: no node fits (each client needs its own node): 0/1 nodes are available"))

		By("running once the dataset is there")
		finishJob(namespace, generate.Name, batchv1.JobComplete, "")
		run := exists(&batchv1.Job{}, namespace, naming.BenchmarkRun(job.Name))
		Expect(*run.Spec.BackoffLimit).To(BeZero())
		expectJob(namespace, job.Name, metav1.ConditionUnknown, v1alpha1.ReasonRunning)
		Expect(meta.IsStatusConditionTrue(jobStatus(namespace, job.Name).Conditions, v1alpha1.JobDatasetReady)).To(BeTrue())
		clientsWrite(namespace, job.Name, map[string]string{benchmark.KeyProgress(string(run.UID)): "epoch 2/5, step 3/6, 61.2 MB/s"})
		Eventually(func() string { return jobStatus(namespace, job.Name).Progress }, timeout).Should(Equal("epoch 2/5, step 3/6, 61.2 MB/s"))

		By("reporting the result")
		clientsWrite(namespace, job.Name, map[string]string{benchmark.KeyResult: resultWith(plan, plan.Compute()+10*time.Millisecond)})
		finishJob(namespace, run.Name, batchv1.JobComplete, "")
		Expect(expectJob(namespace, job.Name, metav1.ConditionTrue, v1alpha1.ReasonCompleted)).To(ContainSubstring("not an MLPerf Storage result"))
		status := jobStatus(namespace, job.Name)
		Expect(status.Result.Verdict).To(Equal(v1alpha1.VerdictPassed))
		Expect(status.Result.AUPercent).To(Equal("97.00"))
		Expect(status.Result.PerClient).To(HaveLen(2))
		Expect(status.Result.PerServer).To(HaveLen(2))
		Expect(status.Result.Rules).To(ContainElement(HaveField("Name", "sample-size")))
		Expect(status.StartTime).NotTo(BeNil())
		Expect(status.CompletionTime).NotTo(BeNil())

		By("writing nothing more")
		awaitQuiet(namespace)

		By("leaving nothing behind")
		Expect(admin.Delete(ctx, job)).To(Succeed())
		isNoMore(&v1alpha1.MLPerfStorageJob{}, namespace, job.Name)
		isNoMore(&corev1.PersistentVolume{}, "", volume.Name)
		// envtest has no garbage collector: the owner references show that the rest goes.
		for _, child := range []metav1.Object{
			exists(&batchv1.Job{}, namespace, run.Name), exists(&corev1.Secret{}, namespace, naming.Benchmark(job.Name)),
			exists(&corev1.PersistentVolumeClaim{}, namespace, naming.Benchmark(job.Name)), exists(&corev1.ConfigMap{}, namespace, naming.BenchmarkResult(job.Name)),
		} {
			Expect(metav1.GetControllerOf(child)).To(HaveField("UID", job.UID))
		}
	})

	It("fails when a client is lost, and says which", func() {
		namespace := newNamespace()
		readyBenchmarkShare(namespace)
		job := mlperfJob(namespace, "lost", "unet3d")
		create(job)
		finishJob(namespace, generating(namespace, job.Name).Name, batchv1.JobComplete, "")
		run := exists(&batchv1.Job{}, namespace, naming.BenchmarkRun(job.Name))

		By("from what the coordinator wrote, long before Kubernetes notices")
		clientsWrite(namespace, job.Name, map[string]string{benchmark.KeyFailure(string(run.UID)): "client 1 (lost-run-1-abcde) was lost: nothing was heard from it for 10s"})
		Expect(expectJob(namespace, job.Name, metav1.ConditionFalse, v1alpha1.ReasonClientFailed)).To(ContainSubstring("client 1 (lost-run-1-abcde) was lost"))
		finishJob(namespace, run.Name, batchv1.JobFailed, "backoff limit")
		Expect(jobStatus(namespace, job.Name).CompletionTime).NotTo(BeNil())
		Expect(jobStatus(namespace, job.Name).Result.Verdict).To(BeEmpty(), "no result without all clients")
	})

	It("fails when the dataset can't be written, with the pod's own words", func() {
		namespace := newNamespace()
		readyBenchmarkShare(namespace)
		job := mlperfJob(namespace, "full", "unet3d")
		create(job)
		generate := generating(namespace, job.Name)
		clientPod(namespace, generate.Name, "0", corev1.PodStatus{Phase: corev1.PodFailed, ContainerStatuses: []corev1.ContainerStatus{{
			Name: "benchmark", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1, Message: "writing /data/train/0/img_0.npz: no space left on device\n"}},
		}}})
		finishJob(namespace, generate.Name, batchv1.JobFailed, "backoff limit")
		Expect(expectJob(namespace, job.Name, metav1.ConditionFalse, v1alpha1.ReasonClientFailed)).
			To(Equal("pod full-generate-0-abcde failed: writing /data/train/0/img_0.npz: no space left on device"))
		Expect(meta.FindStatusCondition(jobStatus(namespace, job.Name).Conditions, v1alpha1.JobDatasetReady).Reason).To(Equal(v1alpha1.ReasonClientFailed))
	})

	It("tells a share that does not feed the accelerators", func() {
		namespace := newNamespace()
		readyBenchmarkShare(namespace)
		job := mlperfJob(namespace, "slow", "unet3d")
		create(job)
		finishJob(namespace, generating(namespace, job.Name).Name, batchv1.JobComplete, "")
		exists(&batchv1.Job{}, namespace, naming.BenchmarkRun(job.Name))
		plan := planOf(namespace, job.Name)
		clientsWrite(namespace, job.Name, map[string]string{benchmark.KeyResult: resultWith(plan, 2*plan.Compute())})
		Expect(expectJob(namespace, job.Name, metav1.ConditionFalse, v1alpha1.ReasonUtilizationTooLow)).To(ContainSubstring("AU is 50.00 %, below 90 %"))
	})

	It("gives no verdict about the share if a client was short of CPU", func() {
		namespace := newNamespace()
		readyBenchmarkShare(namespace)
		job := mlperfJob(namespace, "busy", "unet3d")
		create(job)
		finishJob(namespace, generating(namespace, job.Name).Name, batchv1.JobComplete, "")
		exists(&batchv1.Job{}, namespace, naming.BenchmarkRun(job.Name))
		plan := planOf(namespace, job.Name)
		clientsWrite(namespace, job.Name, map[string]string{benchmark.KeyResult: resultWith(plan, 2*plan.Compute(), func(r []benchmark.ClientReport) {
			r[1].CPU = &benchmark.CPUUse{LeftPercent: 1}
			r[1].Epochs[0].Lost = plan.Compute()
		})})
		Expect(expectJob(namespace, job.Name, metav1.ConditionFalse, v1alpha1.ReasonMeasurementInvalid)).
			To(HavePrefix("the run says nothing about the share (AU was 50.00 %): clients were short of CPU: client-1 on node node-1 cost 10.0 % of the time"))
		Expect(jobStatus(namespace, job.Name).Result.Verdict).To(Equal(v1alpha1.VerdictInvalid))
		Expect(jobStatus(namespace, job.Name).CompletionTime).NotTo(BeNil())
	})

	It("waits for its share, and says why", func() {
		namespace := newNamespace()
		create(mlperfJob(namespace, "early", "unet3d"))
		Expect(expectJob(namespace, "early", metav1.ConditionUnknown, v1alpha1.ReasonFileShareNotFound)).To(ContainSubstring(`there is no FileShare "unet3d"`))
		create(builders.FileShare(namespace, "unet3d", "training").Depth(2).Directories("train/{0..5}").Build())
		Eventually(func() string {
			return expectJob(namespace, "early", metav1.ConditionUnknown, v1alpha1.ReasonWaitingForShare)
		}, timeout).Should(ContainSubstring("there is no FileServer"))
		servingFileServer(namespace, "training", 2)
		readyShare(namespace, "unet3d")
		generating(namespace, "early")
	})

	DescribeTable("is refused with a message that names the fault", func(mutate func(*v1alpha1.MLPerfStorageJob), message string) {
		job := mlperfJob(newNamespace(), "bad", "unet3d")
		mutate(job)
		err := admin.Create(ctx, job)
		Expect(err).To(MatchError(ContainSubstring(message)))
	},
		Entry("accelerators that can't be shared out", func(j *v1alpha1.MLPerfStorageJob) { j.Spec.Accelerator.Count = 3 },
			"accelerator.count must be a multiple of clients"),
		Entry("more clients than accelerators", func(j *v1alpha1.MLPerfStorageJob) { j.Spec.Clients = 4 },
			"accelerator.count must be a multiple of clients"),
		Entry("an unknown accelerator", func(j *v1alpha1.MLPerfStorageJob) { j.Spec.Accelerator.Type = "B200" }, `"H100"`),
		Entry("less than a batch for each accelerator", func(j *v1alpha1.MLPerfStorageJob) { j.Spec.Dataset.Samples = 13 },
			"dataset.samples must be at least 7 for each accelerator"),
		Entry("samples that are too small", func(j *v1alpha1.MLPerfStorageJob) { j.Spec.Dataset.SampleSize = quantity("1Ki") },
			"sampleSize must be at least 4Ki"),
		Entry("too many connections", func(j *v1alpha1.MLPerfStorageJob) { j.Spec.Mount = &v1alpha1.BenchmarkMount{Nconnect: 17} }, "nconnect"),
		Entry("a name that is too long", func(j *v1alpha1.MLPerfStorageJob) { j.Name = strings.Repeat("x", 51) }, "at most 50 characters"),
		Entry("a memory request above the limit", func(j *v1alpha1.MLPerfStorageJob) {
			j.Spec.Resources = &corev1.ResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceMemory: *quantity("2Gi")},
				Limits:   corev1.ResourceList{corev1.ResourceMemory: *quantity("1025Mi")},
			}
		}, "resources.requests of memory must not exceed resources.limits"),
		Entry("a CPU request above the limit", func(j *v1alpha1.MLPerfStorageJob) {
			j.Spec.Resources = &corev1.ResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceCPU: *quantity("1")}, Limits: corev1.ResourceList{corev1.ResourceCPU: *quantity("999m")},
			}
		}, "resources.requests of cpu must not exceed resources.limits"),
		Entry("a resource claim", func(j *v1alpha1.MLPerfStorageJob) {
			j.Spec.Resources = &corev1.ResourceRequirements{Claims: []corev1.ResourceClaim{{Name: "gpu"}}}
		}, "resources.claims can't be used"),
	)

	It("can't be changed", func() {
		namespace := newNamespace()
		job := mlperfJob(namespace, "fixed", "unet3d")
		create(job)
		for _, mutate := range []func(*v1alpha1.MLPerfStorageJobSpec){
			func(s *v1alpha1.MLPerfStorageJobSpec) { s.Epochs = 2 },
			func(s *v1alpha1.MLPerfStorageJobSpec) {
				s.Resources = &corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: *quantity("1")}}
			},
		} {
			Eventually(func() error {
				exists(job, namespace, job.Name)
				mutate(&job.Spec)
				return admin.Update(ctx, job)
			}, timeout).Should(MatchError(ContainSubstring("only execution, activeDeadlineSeconds and ttlSecondsAfterFinished can be changed")))
		}
	})
})

func quantity(s string) *resource.Quantity {
	q := resource.MustParse(s)
	return &q
}
