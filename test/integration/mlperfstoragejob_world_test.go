package integration

import (
	"encoding/json"
	"fmt"
	"maps"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/benchmark"
	"github.com/howdah/howdah/internal/naming"
)

// mlperfJob is a job of 2 clients with an H100 each.
func mlperfJob(namespace, name, share string) *v1alpha1.MLPerfStorageJob {
	return &v1alpha1.MLPerfStorageJob{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: v1alpha1.MLPerfStorageJobSpec{
			FileShareRef: v1alpha1.FileShareReference{Name: share},
			Accelerator:  v1alpha1.Accelerator{Type: v1alpha1.AcceleratorH100, Count: 2},
			Clients:      2,
			Dataset:      &v1alpha1.Dataset{Samples: 84},
		},
	}
}

// jobStatus reads the status of a job.
func jobStatus(namespace, name string) v1alpha1.MLPerfStorageJobStatus {
	var job v1alpha1.MLPerfStorageJob
	_ = admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &job) // an empty status fails the expectation
	return job.Status
}

// expectJob waits for the Succeeded condition of a job and returns its message.
func expectJob(namespace, name string, status metav1.ConditionStatus, reason string) string {
	GinkgoHelper()
	var got metav1.Condition
	Eventually(func() string {
		got = metav1.Condition{}
		if c := meta.FindStatusCondition(jobStatus(namespace, name).Conditions, v1alpha1.JobSucceeded); c != nil {
			got = *c
		}
		return fmt.Sprintf("%s %s", got.Status, got.Reason)
	}, timeout, "50ms").Should(Equal(fmt.Sprintf("%s %s", status, reason)), func() string { return got.Message })
	return got.Message
}

// generating waits for the Job that writes the dataset, and plays Kubernetes' controller of volumes until then.
func generating(namespace, name string) *batchv1.Job {
	GinkgoHelper()
	job, volume := &batchv1.Job{}, &corev1.PersistentVolume{}
	Eventually(func() error {
		if admin.Get(ctx, client.ObjectKey{Name: naming.BenchmarkVolume(namespace, name)}, volume) == nil && volume.Status.Phase != corev1.VolumeAvailable {
			before := volume.DeepCopy()
			volume.Status.Phase = corev1.VolumeAvailable
			_ = admin.Status().Patch(ctx, volume, client.MergeFrom(before)) // tried again if it was lost
		}
		return admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: naming.BenchmarkGenerate(name)}, job)
	}, timeout, "50ms").Should(Succeed())
	return job
}

// finishJob plays the Job controller: the Job ends with the given condition.
func finishJob(namespace, name string, ending batchv1.JobConditionType, message string) {
	GinkgoHelper()
	job := exists(&batchv1.Job{}, namespace, name)
	before := job.DeepCopy()
	now := metav1.NewTime(time.Now().Truncate(time.Second))
	job.Status.StartTime = &now
	conditions := []batchv1.JobConditionType{batchv1.JobSuccessCriteriaMet, batchv1.JobComplete}
	if ending == batchv1.JobFailed {
		conditions = []batchv1.JobConditionType{batchv1.JobFailureTarget, batchv1.JobFailed}
	} else {
		job.Status.CompletionTime = &now
		job.Status.Succeeded = *job.Spec.Completions
	}
	for _, c := range conditions {
		job.Status.Conditions = append(job.Status.Conditions, batchv1.JobCondition{
			Type: c, Status: corev1.ConditionTrue, Reason: "Test", Message: message, LastTransitionTime: now, LastProbeTime: now,
		})
	}
	Expect(admin.Status().Patch(ctx, job, client.MergeFrom(before))).To(Succeed())
}

// clientPod plays the Job controller: a pod of a Job, with the given status.
func clientPod(namespace, job, index string, status corev1.PodStatus) {
	GinkgoHelper()
	owner := exists(&batchv1.Job{}, namespace, job)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: job + "-" + index + "-abcde", Labels: map[string]string{
			batchv1.JobNameLabel: job, batchv1.JobCompletionIndexAnnotation: index,
		}, OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(owner, batchv1.SchemeGroupVersion.WithKind("Job"))}},
		Spec: owner.Spec.Template.Spec,
	}
	maps.Copy(pod.Labels, owner.Spec.Template.Labels)
	Expect(admin.Create(ctx, pod)).To(Succeed())
	before := pod.DeepCopy()
	pod.Status = status
	Expect(admin.Status().Patch(ctx, pod, client.MergeFrom(before))).To(Succeed())
}

// clientsWrite plays the client pods: they write to the result's ConfigMap, as the account that they have.
func clientsWrite(namespace, job string, values map[string]string) {
	GinkgoHelper()
	as := rest.CopyConfig(config)
	as.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:" + namespace + ":" + naming.Benchmark(job)}
	account, err := client.New(as, client.Options{Scheme: admin.Scheme()})
	Expect(err).NotTo(HaveOccurred())
	patch, err := json.Marshal(map[string]any{"data": values})
	Expect(err).NotTo(HaveOccurred())
	result := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: naming.BenchmarkResult(job)}}
	Expect(account.Patch(ctx, result, client.RawPatch("application/merge-patch+json", patch))).To(Succeed())
}

// resultWith is what two clients report whose steps took the given time, as JSON.
func resultWith(plan benchmark.Plan, step time.Duration, change ...func([]benchmark.ClientReport)) string {
	GinkgoHelper()
	var reports []benchmark.ClientReport
	for i := range plan.Clients {
		steps := plan.Steps()
		epoch := benchmark.RankEpoch{Bytes: 1e9, EpochTimes: benchmark.EpochTimes{
			Steps: steps, Compute: plan.Compute(), First: plan.Compute(), Total: time.Duration(steps-1)*step + plan.Compute(),
		}}
		reports = append(reports, benchmark.ClientReport{
			Name: fmt.Sprintf("client-%d", i), NodeName: fmt.Sprintf("node-%d", i), MemoryBytes: 8 << 30,
			Epochs: []benchmark.ClientEpoch{{Ranks: []benchmark.RankEpoch{epoch}}},
		})
	}
	for _, c := range change {
		c(reports)
	}
	text, err := json.Marshal(benchmark.NewResult(plan, reports, []benchmark.ServerBytes{{Name: "training-0", Bytes: 1e9}, {Name: "training-1", Bytes: 1e9}}))
	Expect(err).NotTo(HaveOccurred())
	return string(text)
}

// planOf reads the plan of a job.
func planOf(namespace, job string) benchmark.Plan {
	GinkgoHelper()
	plan, err := benchmark.ParsePlan([]byte(exists(&corev1.ConfigMap{}, namespace, naming.BenchmarkPlan(job)).Data["plan.json"]))
	Expect(err).NotTo(HaveOccurred())
	return plan
}
