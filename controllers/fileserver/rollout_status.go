package fileserver

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/controllers/backend/backendapi"
	"github.com/howdah/howdah/controllers/conditions"
	"github.com/howdah/howdah/internal/rollout"
)

// updatedCondition says how far a change of the data servers' pods is; nil while that is not known.
func (o *observed) updatedCondition(d decision) *metav1.Condition {
	const conditionType = v1alpha1.FileServerServersUpdated
	plan := d.rollout
	if d.templateChanged && o.keepsPods() {
		kept := conditions.False(conditionType, v1alpha1.ReasonInvalidSpec, "data servers keep their pods until the specification is corrected: see the condition Ready")
		return &kept
	}
	if d.templateChanged {
		changed := conditions.False(conditionType, v1alpha1.ReasonRollingOut, "the pods of data servers are to become others; which ones is not known yet")
		return &changed
	}
	left := fmt.Sprintf("%s with earlier pods: %s", number(len(plan.Outdated), "data server", "data servers"), conditions.List(plan.Outdated, maxPaths))
	var waits []string
	for _, s := range plan.For {
		switch {
		case s.InGrace && s.Serves:
			waits = append(waits, s.Name+" (its clients reclaim their open files and locks)")
		case s.Waits != "":
			waits = append(waits, s.Name+" ("+s.Waits+")")
		default:
			waits = append(waits, s.Name)
		}
	}
	var c metav1.Condition
	switch plan.State {
	case rollout.UpToDate:
		c = conditions.True(conditionType, v1alpha1.ReasonReady, "the pods of all data servers are as they should be")
	case rollout.Rolling:
		text := "the pods of data servers are replaced one after the other"
		if len(plan.Outdated) > 0 {
			text += "; " + left
		}
		if len(waits) > 0 {
			text += "; the next step waits for " + conditions.List(waits, maxPaths)
		}
		if d.replaceWaits != "" {
			text += "; it waits: " + d.replaceWaits
		}
		c = conditions.False(conditionType, v1alpha1.ReasonRollingOut, text)
	case rollout.Waiting:
		var text string
		switch {
		case plan.HeldBy != "":
			text = "; a change by the operator reaches one FileServer at a time, and FileServer " + plan.HeldBy +
				" is not done: see its condition ServersUpdated, or pause it to let others go on"
		case len(waits) > 0:
			text = "; none is replaced before all others serve: it waits for " + conditions.List(waits, maxPaths)
		default:
			text = "; they serve, and stay: " + conditions.List(held(plan.Held), maxPaths)
		}
		c = conditions.False(conditionType, v1alpha1.ReasonRolloutWaiting, left+text)
	case rollout.Stopped:
		c = conditions.False(conditionType, v1alpha1.ReasonRolloutStopped, o.stoppedText(plan))
	default:
		return nil
	}
	return &c
}

func held(servers []rollout.Server) (texts []string) {
	for _, s := range servers {
		texts = append(texts, s.Name+" ("+s.Held+")")
	}
	return texts
}

func number(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// stoppedText names the data server, its image and that of the others, and what to do.
func (o *observed) stoppedText(plan rollout.Plan) string {
	image := imageOf(&o.statefulSet.Spec.Template.Spec)
	if s := plan.Unpullable; s != nil {
		pod := o.pods[s.Name]
		return fmt.Sprintf("node %s can't pull image %s for the next pod of data server %s: %s; no data server was stopped for it, and %s and the others not yet "+
			"replaced serve with image %s; set the earlier image again (serverImage of the chart, or helm rollback), or have the node get the image: "+
			"see to its name, pull secrets and registry", pod.Spec.NodeName, image, s.Name, s.Pulling, s.Name, imageOf(&pod.Spec))
	}
	text := fmt.Sprintf("data server %s does not serve with its new pod (image %s): %s", plan.Stuck.Name, image, plan.Stuck.Stuck)
	if pod := o.podOf(plan.Stuck.Name); pod != nil && pod.Spec.NodeName == "" {
		// The change may be right: a node is drained, or full.
		return text + "; the others keep their earlier pods; it goes on by itself when a node takes the pod: see to the nodes (cordons, room), or correct spec.resources or spec.placement"
	}
	for _, name := range plan.Outdated {
		pod := o.pods[name]
		if before := imageOf(&pod.Spec); before != image {
			text += fmt.Sprintf("; %s and the others not yet replaced keep image %s", name, before)
			return text + "; set the earlier image again (serverImage of the chart, or helm rollback) or one that works: its pod is then replaced by itself"
		}
	}
	if len(plan.Outdated) > 0 {
		text += "; the others keep their earlier pods"
	}
	return text + "; take the change back, or correct it: its pod is then replaced by itself"
}

// stuckWhy is why a data server that does not serve will not do so by itself; "" if it may. storageIsGood: others serve from the same storage.
func stuckWhy(pod *corev1.Pod, dataServer *internalv1.DataServer, storageIsGood bool, waits string, now time.Time) string {
	for i := range pod.Status.ContainerStatuses {
		status := &pod.Status.ContainerStatuses[i]
		switch {
		case status.RestartCount >= restartLimit && endedSince(status, now.Add(-startLimit)):
			return "its container ends again and again"
		case status.State.Waiting != nil && slices.Contains(hopeless, status.State.Waiting.Reason):
			return waits
		}
	}
	since := pod.CreationTimestamp.Time
	if pod.Status.Phase != corev1.PodRunning {
		if now.Sub(since) > placeLimit {
			return waits
		}
		return ""
	}
	if backendapi.Refusal(dataServer) != "" && !storageIsGood {
		return "" // Another pod would find the same storage.
	}
	if ready := meta.FindStatusCondition(dataServer.Status.Conditions, v1alpha1.ConditionReady); ready != nil && ready.LastTransitionTime.After(since) && isWithin(now.Sub(ready.LastTransitionTime.Time), startLimit) {
		since = ready.LastTransitionTime.Time
	}
	// A data server whose pod does not serve is reported as one that does not answer. So is one that namespace servers do not reach: its kubelet
	// says that it is ready. One whose node is lost is no matter of a rollout (rollout.Server.OnLostNode).
	if unreachable := dataServer.Status.Unreachable.SinceTime; unreachable != nil {
		if podReady(pod) {
			return ""
		}
		if unreachable.After(since) && isWithin(now.Sub(unreachable.Time), startLimit) {
			since = unreachable.Time
		}
	}
	if now.Sub(since) > startLimit {
		return waits
	}
	return ""
}

func endedSince(status *corev1.ContainerStatus, then time.Time) bool {
	last := status.LastTerminationState.Terminated
	return last != nil && last.FinishedAt.After(then)
}

// hopeless are the kubelet's reasons that another try does not change, as long as the image and the pod stay as they are. Unpullable are those
// that are about the image.
var (
	unpullable = []string{"ErrImagePull", "ImagePullBackOff", "ErrImageNeverPull", "InvalidImageName", "ImageInspectError", "RegistryUnavailable"}
	hopeless   = append([]string{"CreateContainerConfigError", "CreateContainerError", "RunContainerError", "CrashLoopBackOff"}, unpullable...)
)
