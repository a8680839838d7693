package fileserver

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/test/builders"
)

func TestAFileServerIsReconciledForWhatItReadsOfItsPods(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*corev1.Pod)
		passed bool
	}{
		"a probe's time":      {func(p *corev1.Pod) { p.Status.Conditions[0].LastProbeTime = metav1.NewTime(time.Unix(1, 0)) }, false},
		"another condition":   {func(p *corev1.Pod) { p.Status.Conditions[1].Status = corev1.ConditionFalse }, false},
		"not ready any more":  {func(p *corev1.Pod) { p.Status.Conditions[0].Status = corev1.ConditionFalse }, true},
		"another address":     {func(p *corev1.Pod) { p.Status.PodIPs = []corev1.PodIP{{IP: "10.0.0.2"}} }, true},
		"another of its name": {func(p *corev1.Pod) { p.UID = "b" }, true},
		"being stopped":       {func(p *corev1.Pod) { now := metav1.Now(); p.DeletionTimestamp = &now }, true},
		"its container waits": {func(p *corev1.Pod) {
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}}}
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			before := &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Name: "fs-0", UID: "a"},
				Spec:       corev1.PodSpec{NodeName: "node-a"},
				Status: corev1.PodStatus{Phase: corev1.PodRunning, PodIP: "10.0.0.1", Conditions: []corev1.PodCondition{
					{Type: corev1.PodReady, Status: corev1.ConditionTrue}, {Type: corev1.ContainersReady, Status: corev1.ConditionTrue},
				}},
			}
			after := before.DeepCopy()
			tc.change(after)
			if passed := podChanged().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after}); passed != tc.passed {
				t.Errorf("passed: %v, want %v", passed, tc.passed)
			}
		})
	}
}

func TestAFileServerIsReconciledForWhatItReadsOfNodes(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*corev1.Node)
		passed bool
	}{
		"a heartbeat":                {func(n *corev1.Node) { n.Status.Conditions[0].LastHeartbeatTime = metav1.NewTime(time.Unix(1, 0)) }, false},
		"images":                     {func(n *corev1.Node) { n.Status.Images = []corev1.ContainerImage{{Names: []string{"x"}}} }, false},
		"an annotation of no matter": {func(n *corev1.Node) { n.Annotations = map[string]string{"a": "b"} }, false},
		"a name":                     {func(n *corev1.Node) { n.Status.Addresses[0].Address = "other" }, false},
		"another address":            {func(n *corev1.Node) { n.Status.Addresses[1].Address = "192.168.7.3" }, true},
		"its range for pods":         {func(n *corev1.Node) { n.Spec.PodCIDRs = []string{"10.244.3.0/24"} }, true},
		"a tunnel's address": {func(n *corev1.Node) {
			n.Annotations = map[string]string{"projectcalico.org/IPv4IPIPTunnelAddr": "10.9.0.1"}
		}, true},
		"not ready": {func(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionFalse }, true},
		"cordoned":  {func(n *corev1.Node) { n.Spec.Unschedulable = true }, true},
	} {
		t.Run(name, func(t *testing.T) {
			before := builders.Node("n").Address(corev1.NodeHostName, "n").Address(corev1.NodeInternalIP, "192.168.7.2").Build()
			before.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
			after := before.DeepCopy()
			tc.change(after)
			if passed := nodeChanged().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after}); passed != tc.passed {
				t.Errorf("passed: %v, want %v", passed, tc.passed)
			}
		})
	}
}

func TestStatusOfAStatefulSetCausesNoPass(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*appsv1.StatefulSet)
		passed bool
	}{
		"its status":        {func(s *appsv1.StatefulSet) { s.Status.ReadyReplicas = 2 }, false},
		"its specification": {func(s *appsv1.StatefulSet) { s.Generation++ }, true},
		"a label":           {func(s *appsv1.StatefulSet) { s.Labels = map[string]string{"a": "b"} }, true},
		"our mark":          {func(s *appsv1.StatefulSet) { s.Annotations = map[string]string{v1alpha1.OwnerAnnotation: "x"} }, true},
		"its owner":         {func(s *appsv1.StatefulSet) { s.OwnerReferences = []metav1.OwnerReference{{Name: "x"}} }, true},
	} {
		t.Run(name, func(t *testing.T) {
			before := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "fs", Generation: 1}}
			after := before.DeepCopy()
			tc.change(after)
			if passed := meantChanged().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after}); passed != tc.passed {
				t.Errorf("passed: %v, want %v", passed, tc.passed)
			}
		})
	}
}
