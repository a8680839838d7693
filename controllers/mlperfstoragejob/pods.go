package mlperfstoragejob

import (
	"fmt"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/howdah/howdah/controllers/conditions"
	"github.com/howdah/howdah/internal/benchmark"
)

// maxNamed is how many pods a message names before it only counts.
const maxNamed = 3

// podsOf returns the pods of a Job, without those of a deleted Job with the same name.
func (o *observed) podsOf(job *batchv1.Job) []corev1.Pod {
	var pods []corev1.Pod
	for _, pod := range o.pods {
		if job != nil && metav1.IsControlledBy(&pod, job) {
			pods = append(pods, pod)
		}
	}
	return pods
}

// waits returns what pods of a Job wait for; "" if none waits. It names pods by number: names have a random part, which
// would change the message with every retry.
func (o *observed) waits(job *batchv1.Job) string {
	var found []string
	for _, pod := range o.podsOf(job) {
		if why := podWaits(&pod); why != "" {
			found = append(found, fmt.Sprintf("client %s waits: %s", clientOf(&pod), why))
		}
	}
	return conditions.List(found, maxNamed)
}

func clientOf(pod *corev1.Pod) string { return pod.Labels[batchv1.JobCompletionIndexAnnotation] }

func podWaits(pod *corev1.Pod) string {
	if pod.Status.Phase != corev1.PodPending && pod.Status.Phase != "" {
		return ""
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return "no node fits (each client needs its own node): " + c.Message
		}
	}
	for _, s := range pod.Status.ContainerStatuses {
		// Every pod starts with ContainerCreating.
		if w := s.State.Waiting; w != nil && w.Reason != "ContainerCreating" {
			return strings.TrimSuffix(w.Reason+": "+w.Message, ": ")
		}
	}
	return ""
}

// failure returns why the job failed: the clients' own message, which names the first client that failed, or how a pod
// ended.
func (o *observed) failure(facts benchmark.Facts) string {
	if facts.Failure != "" {
		return facts.Failure
	}
	job := o.run
	if facts.Generate.Failed {
		job = o.generate
	}
	for _, pod := range o.podsOf(job) {
		if pod.Status.Phase == corev1.PodFailed {
			return fmt.Sprintf("pod %s failed: %s", pod.Name, podFailure(&pod))
		}
	}
	for _, c := range job.Status.Conditions {
		if c.Type == batchv1.JobFailed || c.Type == batchv1.JobFailureTarget {
			return fmt.Sprintf("Job %s failed: %s", job.Name, c.Message)
		}
	}
	return fmt.Sprintf("Job %s failed", job.Name)
}

func podFailure(pod *corev1.Pod) string {
	for _, s := range pod.Status.ContainerStatuses {
		if t := s.State.Terminated; t != nil && t.ExitCode != 0 {
			if message := strings.TrimSpace(t.Message); message != "" {
				return message
			}
			return strings.TrimSpace(fmt.Sprintf("exit code %d %s", t.ExitCode, t.Reason))
		}
	}
	return strings.TrimSpace(pod.Status.Reason + " " + pod.Status.Message)
}
