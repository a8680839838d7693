package view

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// trouble is why a pod is not ready; empty if it is.
type trouble struct {
	reason, message string
	// before is the reason of the container's last exit, where that explains more than the restart.
	before string
}

// podTrouble finds why a pod does not run, from what the scheduler and the kubelet report.
func podTrouble(pod *corev1.Pod) trouble {
	if pod.DeletionTimestamp != nil {
		return trouble{reason: "Terminating", message: "the pod is being deleted"}
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status != corev1.ConditionTrue {
			return trouble{reason: cmp.Or(c.Reason, "Unscheduled"), message: cmp.Or(c.Message, "no node has been found yet")}
		}
	}
	for _, c := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		switch {
		case c.State.Waiting != nil && c.State.Waiting.Reason != "" && c.State.Waiting.Reason != "PodInitializing":
			found := trouble{reason: c.State.Waiting.Reason, message: cmp.Or(c.State.Waiting.Message, "container "+c.Name+" waits")}
			if last := c.LastTerminationState.Terminated; last != nil {
				found.message += "; last exit: " + ended(last)
				if last.Reason == "OOMKilled" {
					found.before = last.Reason
				}
			}
			return found
		case c.State.Terminated != nil && c.State.Terminated.ExitCode != 0:
			return trouble{reason: c.State.Terminated.Reason, message: "container " + c.Name + " exited: " + ended(c.State.Terminated)}
		}
	}
	if pod.Status.Phase == corev1.PodFailed {
		return trouble{reason: cmp.Or(pod.Status.Reason, "Failed"), message: cmp.Or(pod.Status.Message, "the pod has failed")}
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady && c.Status != corev1.ConditionTrue && pod.Status.Phase != corev1.PodSucceeded {
			return trouble{reason: cmp.Or(c.Reason, "NotReady"), message: cmp.Or(c.Message, "the pod is not ready")}
		}
	}
	return trouble{}
}

func ended(t *corev1.ContainerStateTerminated) string {
	reason := fmt.Sprintf("%s, exit code %d", t.Reason, t.ExitCode)
	if t.Message != "" {
		reason += " (" + strings.TrimSpace(t.Message) + ")"
	}
	return reason
}
