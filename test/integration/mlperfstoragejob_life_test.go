package integration

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/benchmark"
	"github.com/howdah/howdah/internal/naming"
)

// jobConditionOf reads a condition of a job.
func jobConditionOf(namespace, name, conditionType string) metav1.Condition {
	if c := meta.FindStatusCondition(jobStatus(namespace, name).Conditions, conditionType); c != nil {
		return *c
	}
	return metav1.Condition{}
}

func execution(e v1alpha1.Execution) func(*v1alpha1.MLPerfStorageJob) {
	return func(j *v1alpha1.MLPerfStorageJob) { j.Spec.Execution = e }
}

var _ = Describe("The life of an MLPerfStorageJob", func() {
	It("is interrupted and goes on: pods go, the dataset stays, and the run starts again", func() {
		namespace := newNamespace()
		readyBenchmarkShare(namespace)
		job := mlperfJob(namespace, "paused", "unet3d")
		job.Spec.Execution = v1alpha1.ExecutionSuspended
		create(job)

		By("not beginning while it is suspended")
		Expect(expectJob(namespace, job.Name, metav1.ConditionUnknown, v1alpha1.ReasonSuspended)).To(ContainSubstring("spec.execution is Suspended"))
		Expect(jobStatus(namespace, job.Name).StartTime).To(BeNil())
		Expect(admin.Get(ctx, client.ObjectKey{Name: naming.BenchmarkVolume(namespace, job.Name)}, &corev1.PersistentVolume{})).NotTo(Succeed())

		By("ending the pods that write the dataset")
		change(job, execution(v1alpha1.ExecutionActive))
		first := generating(namespace, job.Name)
		Expect(jobStatus(namespace, job.Name).StartTime).NotTo(BeNil())
		change(job, execution(v1alpha1.ExecutionSuspended))
		isNoMore(&batchv1.Job{}, namespace, first.Name)
		expectJob(namespace, job.Name, metav1.ConditionUnknown, v1alpha1.ReasonSuspended)
		Expect(jobConditionOf(namespace, job.Name, v1alpha1.JobDatasetReady).Status).To(Equal(metav1.ConditionUnknown))

		By("going on with the dataset")
		change(job, execution(v1alpha1.ExecutionActive))
		second := generating(namespace, job.Name)
		Expect(second.UID).NotTo(Equal(first.UID))
		finishJob(namespace, second.Name, batchv1.JobComplete, "")
		run := exists(&batchv1.Job{}, namespace, naming.BenchmarkRun(job.Name))
		expectJob(namespace, job.Name, metav1.ConditionUnknown, v1alpha1.ReasonRunning)
		Expect(jobConditionOf(namespace, job.Name, v1alpha1.ConditionReconciling).Status).To(Equal(metav1.ConditionTrue))
		clientPod(namespace, run.Name, "1", corev1.PodStatus{Phase: corev1.PodRunning})

		By("ending the run, which is no failure, whatever its clients write when they end")
		change(job, execution(v1alpha1.ExecutionSuspended))
		isNoMore(&batchv1.Job{}, namespace, run.Name)
		clientsWrite(namespace, job.Name, map[string]string{benchmark.KeyFailure(string(run.UID)): "client 1 was lost"})
		Eventually(func() string {
			return expectJob(namespace, job.Name, metav1.ConditionUnknown, v1alpha1.ReasonSuspended)
		}, timeout).Should(HaveSuffix("waiting for 1 client pods to end"))
		Expect(jobConditionOf(namespace, job.Name, v1alpha1.JobDatasetReady).Status).To(Equal(metav1.ConditionTrue))
		Expect(exists(&batchv1.Job{}, namespace, second.Name).UID).To(Equal(second.UID), "the Job that wrote the dataset stays")

		for _, gone := range []string{v1alpha1.ConditionStalled, v1alpha1.ConditionReconciling} {
			Expect(jobConditionOf(namespace, job.Name, gone).Type).To(BeEmpty(), "a suspended job is not under way")
		}

		By("starting the run again")
		change(job, execution(v1alpha1.ExecutionActive))
		again := exists(&batchv1.Job{}, namespace, naming.BenchmarkRun(job.Name))
		Expect(again.UID).NotTo(Equal(run.UID))
		expectJob(namespace, job.Name, metav1.ConditionUnknown, v1alpha1.ReasonRunning)
		clientsWrite(namespace, job.Name, map[string]string{benchmark.KeyFailure(string(again.UID)): "client 0 (x) failed: stale file handle"})
		expectJob(namespace, job.Name, metav1.ConditionFalse, v1alpha1.ReasonClientFailed)

		Expect(jobConditionOf(namespace, job.Name, v1alpha1.ConditionStalled).Reason).To(Equal(v1alpha1.ReasonClientFailed))

		By("staying as it ended")
		change(job, execution(v1alpha1.ExecutionSuspended))
		Eventually(func() int64 { return *jobStatus(namespace, job.Name).ObservedGeneration }, timeout).Should(Equal(job.Generation))
		Expect(jobConditionOf(namespace, job.Name, v1alpha1.JobSucceeded).Reason).To(Equal(v1alpha1.ReasonClientFailed))
		exists(&batchv1.Job{}, namespace, again.Name)
	})

	It("ends at its deadline, and says what it was doing", func() {
		namespace := newNamespace()
		readyBenchmarkShare(namespace)
		job := mlperfJob(namespace, "late", "unet3d")
		create(job)
		generate := generating(namespace, job.Name)
		expectJob(namespace, job.Name, metav1.ConditionUnknown, v1alpha1.ReasonGeneratingDataset)
		change(job, func(j *v1alpha1.MLPerfStorageJob) { j.Spec.ActiveDeadlineSeconds = 1 })
		Expect(expectJob(namespace, job.Name, metav1.ConditionFalse, v1alpha1.ReasonDeadlineExceeded)).
			To(Equal("the job did not end within 1 s (spec.activeDeadlineSeconds); its last step: 2 client pods write the dataset"))
		isNoMore(&batchv1.Job{}, namespace, generate.Name)
		Expect(jobStatus(namespace, job.Name).CompletionTime).NotTo(BeNil())

		By("staying ended when the deadline is moved")
		change(job, func(j *v1alpha1.MLPerfStorageJob) { j.Spec.ActiveDeadlineSeconds = 3600 })
		Eventually(func() int64 { return *jobStatus(namespace, job.Name).ObservedGeneration }, timeout).Should(Equal(job.Generation))
		Expect(jobConditionOf(namespace, job.Name, v1alpha1.JobSucceeded).Reason).To(Equal(v1alpha1.ReasonDeadlineExceeded))
		Expect(admin.Get(ctx, client.ObjectKeyFromObject(generate), &batchv1.Job{})).NotTo(Succeed())
	})

	It("ends at its deadline without a share, too", func() {
		namespace := newNamespace()
		job := mlperfJob(namespace, "alone", "nowhere")
		job.Spec.ActiveDeadlineSeconds = 1
		create(job)
		Expect(expectJob(namespace, job.Name, metav1.ConditionFalse, v1alpha1.ReasonDeadlineExceeded)).To(ContainSubstring(`there is no FileShare "nowhere"`))
	})

	It("is over some time after its end, and the dataset is left alone", func() {
		namespace := newNamespace()
		readyBenchmarkShare(namespace)
		job := mlperfJob(namespace, "kept", "unet3d")
		create(job)
		finishJob(namespace, generating(namespace, job.Name).Name, batchv1.JobComplete, "")
		exists(&batchv1.Job{}, namespace, naming.BenchmarkRun(job.Name))
		plan := planOf(namespace, job.Name)
		clientsWrite(namespace, job.Name, map[string]string{benchmark.KeyResult: resultWith(plan, plan.Compute()+10*time.Millisecond)})
		expectJob(namespace, job.Name, metav1.ConditionTrue, v1alpha1.ReasonCompleted)
		Consistently(func() error {
			return admin.Get(ctx, client.ObjectKeyFromObject(job), &v1alpha1.MLPerfStorageJob{})
		}, "1s").Should(Succeed(), "without ttlSecondsAfterFinished it is kept")

		before := len(directoriesOf(namespace, "unet3d"))
		Expect(before).To(BeNumerically(">=", 6))
		ttl := int32(0)
		change(job, func(j *v1alpha1.MLPerfStorageJob) { j.Spec.TTLSecondsAfterFinished = &ttl })
		isNoMore(&v1alpha1.MLPerfStorageJob{}, namespace, job.Name)
		isNoMore(&corev1.PersistentVolume{}, "", naming.BenchmarkVolume(namespace, job.Name))
		share := exists(&v1alpha1.FileShare{}, namespace, "unet3d")
		Expect(share.DeletionTimestamp).To(BeNil())
		Expect(directoriesOf(namespace, "unet3d")).To(HaveLen(before))
	})
})
