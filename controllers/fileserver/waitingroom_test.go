package fileserver

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestClientsWaitWithTheNamespaceServersThatAreReadyOrAtLeastRun(t *testing.T) {
	pod := func(phase corev1.PodPhase, ready corev1.ConditionStatus, ips ...string) corev1.Pod {
		p := corev1.Pod{Status: corev1.PodStatus{Phase: phase, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: ready}}}}
		for _, ip := range ips {
			p.Status.PodIPs = append(p.Status.PodIPs, corev1.PodIP{IP: ip})
		}
		return p
	}
	ready, starting := pod(corev1.PodRunning, corev1.ConditionTrue, "10.0.0.9", "fd00::9"), pod(corev1.PodRunning, corev1.ConditionFalse, "10.0.0.2")
	now := metav1.Now()
	going := *ready.DeepCopy()
	going.DeletionTimestamp = &now
	for name, tc := range map[string]struct {
		pods []corev1.Pod
		want string
	}{
		"none":                                {nil, "[]"},
		"two, sorted":                         {[]corev1.Pod{ready, pod(corev1.PodRunning, corev1.ConditionTrue, "10.0.0.1")}, "[10.0.0.1 10.0.0.9 fd00::9]"},
		"one of them is not ready":            {[]corev1.Pod{ready, starting}, "[10.0.0.9 fd00::9]"},
		"none of them is":                     {[]corev1.Pod{starting, going}, "[10.0.0.2]"},
		"one has no address":                  {[]corev1.Pod{pod(corev1.PodPending, corev1.ConditionFalse), starting}, "[10.0.0.2]"},
		"one has ended":                       {[]corev1.Pod{pod(corev1.PodFailed, corev1.ConditionFalse, "10.0.0.3")}, "[]"},
		"one has a pod that is not reachable": {[]corev1.Pod{pod(corev1.PodRunning, corev1.ConditionTrue, "node-a")}, "[]"},
		"one has what the API does not take":  {[]corev1.Pod{pod(corev1.PodRunning, corev1.ConditionTrue, "127.0.0.1", "fe80::1", "10.0.0.4")}, "[10.0.0.4]"},
		"two have one address, for a moment":  {[]corev1.Pod{ready, ready}, "[10.0.0.9 fd00::9]"},
	} {
		if got := fmt.Sprint((&observed{namespacePods: tc.pods}).waitingRooms()); got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
}
