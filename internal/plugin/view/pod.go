package view

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// trouble is why a pod does not do its work; empty if it does.
type trouble struct {
	reason, message string
	// before is the reason of the container's last end, where that says more than that it is started again.
	before string
}

// podTrouble looks at what the scheduler and the kubelet say of a pod.
func podTrouble(pod *corev1.Pod) trouble {
	if pod.DeletionTimestamp != nil {
		return trouble{reason: "Terminating", message: "the pod is being stopped"}
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status != corev1.ConditionTrue {
			return trouble{reason: cmp.Or(c.Reason, "Unscheduled"), message: cmp.Or(c.Message, "no node was found for it yet")}
		}
	}
	for _, c := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		switch {
		case c.State.Waiting != nil && c.State.Waiting.Reason != "" && c.State.Waiting.Reason != "PodInitializing":
			found := trouble{reason: c.State.Waiting.Reason, message: cmp.Or(c.State.Waiting.Message, "container "+c.Name+" waits")}
			if last := c.LastTerminationState.Terminated; last != nil {
				found.message += "; it ended before: " + ended(last)
				if last.Reason == "OOMKilled" {
					found.before = last.Reason
				}
			}
			return found
		case c.State.Terminated != nil && c.State.Terminated.ExitCode != 0:
			return trouble{reason: c.State.Terminated.Reason, message: "container " + c.Name + " ended: " + ended(c.State.Terminated)}
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
	said := fmt.Sprintf("%s, code %d", t.Reason, t.ExitCode)
	if t.Message != "" {
		said += " (" + strings.TrimSpace(t.Message) + ")"
	}
	return said
}
