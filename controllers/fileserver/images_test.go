package fileserver

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/naming"
	"github.com/howdah/howdah/internal/rollout"
)

// imagePod is a pod on a node that is to pull an image.
func imagePod(node, image string, status corev1.ContainerStatus) corev1.Pod {
	p := pod(corev1.PodPending, false)
	p.Spec.Containers, p.Spec.NodeName = []corev1.Container{{Image: image}}, node
	p.Status.ContainerStatuses = []corev1.ContainerStatus{status}
	return *p
}

func waitingFor(reason string) corev1.ContainerStatus {
	return corev1.ContainerStatus{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}}}
}

func TestHowFarANodeIsWithAnImage(t *testing.T) {
	running := corev1.ContainerStatus{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}
	ending := func(p corev1.Pod) corev1.Pod {
		now := metav1.NewTime(noon)
		p.DeletionTimestamp = &now
		return p
	}
	failed := imagePod("n1", "new", corev1.ContainerStatus{})
	failed.Status.Phase, failed.Status.Reason, failed.Status.ContainerStatuses = corev1.PodFailed, "Evicted", nil
	for name, tc := range map[string]struct {
		pods []corev1.Pod
		made time.Duration // How long ago the Deployment was made; 0: it is not there.
		want rollout.Pull
		says string
	}{
		"nothing is made yet":                   {nil, 0, rollout.NotPulled, "node n1 pulls image new"},
		"there is no pod yet":                   {nil, time.Second, rollout.NotPulled, "node n1 pulls image new"},
		"no pod is let in, or no node takes it": {nil, time.Hour, rollout.Pulled, ""},
		"it is being pulled":                    {[]corev1.Pod{imagePod("n1", "new", waitingFor("ContainerCreating"))}, time.Hour, rollout.NotPulled, "before the pod is stopped"},
		"it runs":                               {[]corev1.Pod{imagePod("n1", "new", running)}, time.Second, rollout.Pulled, ""},
		"it ended":                              {[]corev1.Pod{imagePod("n1", "new", corev1.ContainerStatus{ImageID: "sha256:1"})}, time.Second, rollout.Pulled, ""},
		"it can't run":                          {[]corev1.Pod{imagePod("n1", "new", waitingFor("RunContainerError"))}, time.Second, rollout.Pulled, ""},
		"it can't be pulled":                    {[]corev1.Pod{imagePod("n1", "new", waitingFor("ErrImagePull"))}, time.Second, rollout.CannotPull, "ErrImagePull"},
		"nor later":                             {[]corev1.Pod{imagePod("n1", "new", waitingFor("ImagePullBackOff"))}, time.Hour, rollout.CannotPull, "ImagePullBackOff"},
		"its kubelet refuses it":                {[]corev1.Pod{failed}, time.Second, rollout.Pulled, ""},
		"and has taken another":                 {[]corev1.Pod{failed, imagePod("n1", "new", waitingFor("ContainerCreating"))}, time.Hour, rollout.NotPulled, "before the pod is stopped"},
		"another node has it":                   {[]corev1.Pod{imagePod("n2", "new", running)}, time.Second, rollout.NotPulled, "node n1"},
		"it has another image":                  {[]corev1.Pod{imagePod("n1", "old", running)}, time.Second, rollout.NotPulled, "node n1"},
		"the pod that could not pull it ends":   {[]corev1.Pod{ending(imagePod("n1", "new", waitingFor("ErrImagePull")))}, time.Second, rollout.NotPulled, "node n1"},
	} {
		i := images{pods: tc.pods, made: map[string]time.Time{}}
		if tc.made > 0 {
			i.made["of-n1"] = noon.Add(-tc.made)
		}
		if got, text := i.pull("of-n1", "n1", "new", noon); got != tc.want || !strings.Contains(text, tc.says) {
			t.Errorf("%s: %q (%s), want %q (%s)", name, got, text, tc.want, tc.says)
		}
	}
}

// An image that no node can pull is reported without a data server being stopped; other changes pull nothing.
func TestAnImageIsPulledBeforeADataServerIsStopped(t *testing.T) {
	o := rollingServers("old", "old")
	plan := rollout.Decide(o.rolloutInput(2))
	if plan.Next != "" || o.nodeToPull(plan) != "n1" {
		t.Errorf("no node has the image yet: %+v", plan)
	}
	o.images = images{pods: []corev1.Pod{imagePod("n1", "new", waitingFor("ErrImagePull"))}}
	plan = rollout.Decide(o.rolloutInput(2))
	got := o.updatedCondition(decision{rollout: plan})
	if plan.Next != "" || o.nodeToPull(plan) != "n1" || got.Reason != v1alpha1.ReasonRolloutStopped {
		t.Errorf("it can't be pulled: %+v, %+v", plan, got)
	}
	for _, words := range []string{
		"node n1 can't pull image new for the next pod of data server fs-1: ErrImagePull;", "no data server was stopped for it", "serve with image old", "set the earlier image again",
	} {
		if !strings.Contains(got.Message, words) {
			t.Errorf("%q does not say %q", got.Message, words)
		}
	}
	o.images = images{made: map[string]time.Time{naming.Image("fs", "n1", "new"): noon.Add(-time.Hour)}}
	if plan = rollout.Decide(o.rolloutInput(2)); plan.Next != "fs-1" || o.nodeToPull(plan) != "n1" {
		t.Errorf("it can't be found out: %+v", plan)
	}
	o = rollingServers("old", "old")
	o.statefulSet.Spec.Template.Spec.Containers[0].Image = "old"
	if plan = rollout.Decide(o.rolloutInput(2)); plan.Next != "fs-1" || o.nodeToPull(plan) != "" {
		t.Errorf("the image stays: %+v", plan)
	}
}
