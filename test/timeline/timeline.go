// Package timeline records when the objects of a Kubernetes namespace reach steps on the way to a first byte, and where the time between them goes.
package timeline

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
)

// Steps are those that an object has reached, in plain words. An object never leaves a step for the purpose of a timeline: the first time counts.
func Steps(object client.Object) []string {
	switch object := object.(type) {
	case *corev1.Pod:
		return podSteps(object)
	case *corev1.PersistentVolumeClaim:
		return steps("claim "+object.Name, map[string]bool{"is bound": object.Status.Phase == corev1.ClaimBound})
	case *appsv1.StatefulSet:
		return steps("StatefulSet "+object.Name, nil)
	case *appsv1.Deployment:
		return steps("Deployment "+object.Name, nil)
	case *discoveryv1.EndpointSlice:
		ready := slices.ContainsFunc(object.Endpoints, func(endpoint discoveryv1.Endpoint) bool {
			return endpoint.Conditions.Ready == nil || *endpoint.Conditions.Ready
		})
		return steps("Service "+object.Labels[discoveryv1.LabelServiceName], map[string]bool{"has an address to go to": ready})[1:]
	case *internalv1.DataServer:
		return steps("DataServer "+object.Name, reached(object.Status.Conditions))
	case *v1alpha1.FileServer:
		return steps("FileServer "+object.Name, reached(object.Status.Conditions))
	case *v1alpha1.FileShare:
		return steps("FileShare "+object.Name, reached(object.Status.Conditions))
	}
	return nil
}

// steps are that the object is made, and those that are true, sorted.
func steps(name string, more map[string]bool) []string {
	all := make([]string, 0, 1+len(more))
	for what, is := range more {
		if is {
			all = append(all, name+" "+what)
		}
	}
	slices.Sort(all)
	return append([]string{name + " is made"}, all...)
}

func reached(conditions []metav1.Condition) map[string]bool {
	all := map[string]bool{}
	for _, condition := range conditions {
		// Reconciling, Stalled and Paused are no steps forward.
		if condition.Type != v1alpha1.ConditionReconciling && condition.Type != v1alpha1.ConditionStalled && condition.Type != v1alpha1.ConditionPaused {
			all["is "+condition.Type] = condition.Status == metav1.ConditionTrue
		}
	}
	return all
}

func podSteps(pod *corev1.Pod) []string {
	name, more := "pod "+podName(pod), map[string]bool{}
	for _, condition := range pod.Status.Conditions {
		is := condition.Status == corev1.ConditionTrue
		switch condition.Type {
		case corev1.PodScheduled:
			more["has a node"] = is
		case corev1.PodReadyToStartContainers:
			more["has its sandbox and volumes"] = is
		case corev1.PodReady:
			more["is ready"] = is
		}
	}
	for _, container := range pod.Status.ContainerStatuses {
		more["runs "+container.Name] = container.State.Running != nil || container.State.Terminated != nil
	}
	return steps(name, more)
}

// podName is the name without what differs between the pods of a Deployment.
func podName(pod *corev1.Pod) string {
	hash := pod.Labels[appsv1.DefaultDeploymentUniqueLabelKey]
	if deployment, _, is := strings.Cut(pod.Name, "-"+hash); is && hash != "" {
		return deployment + "-*"
	}
	return pod.Name
}

// Timeline is when steps were reached first, since the start. The zero value is not of use: New makes one.
type Timeline struct {
	start time.Time
	at    map[string]time.Duration
}

// New is a timeline that starts at a time.
func New(start time.Time) *Timeline {
	return &Timeline{start: start, at: map[string]time.Duration{}}
}

// Reach notes that a step is reached. Only the first time counts.
func (t *Timeline) Reach(now time.Time, step string) {
	if _, known := t.at[step]; !known {
		t.at[step] = now.Sub(t.start)
	}
}

// Rename gives the steps of a round the names of all rounds: old is part of the names of objects that are new in each round.
func (t *Timeline) Rename(old, name string) {
	renamed := make(map[string]time.Duration, len(t.at))
	for step, at := range t.at {
		renamed[strings.ReplaceAll(step, old, name)] = at
	}
	t.at = renamed
}

// Report lists the steps that all rounds reached, in the order of their medians, each with the shortest and the longest time since the start.
func Report(rounds []*Timeline) string {
	type row struct {
		step  string
		times []time.Duration
	}
	var rows []row
	for step := range rounds[0].at {
		r := row{step: step}
		for _, round := range rounds {
			if at, is := round.at[step]; is {
				r.times = append(r.times, at)
			}
		}
		if len(r.times) == len(rounds) {
			slices.Sort(r.times)
			rows = append(rows, r)
		}
	}
	slices.SortFunc(rows, func(a, b row) int {
		return cmp.Or(cmp.Compare(median(a.times), median(b.times)), cmp.Compare(a.step, b.step))
	})
	var text strings.Builder
	fmt.Fprintln(&text, " median  shortest  longest  step")
	for _, r := range rows {
		fmt.Fprintf(&text, "%6.2fs  %7.2fs  %6.2fs  %s\n", median(r.times).Seconds(), r.times[0].Seconds(), r.times[len(r.times)-1].Seconds(), r.step)
	}
	return text.String()
}

// median is that of times that are sorted: the lower one of two in the middle.
func median(sorted []time.Duration) time.Duration {
	return sorted[(len(sorted)-1)/2]
}
