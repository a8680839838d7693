package fileserver

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/controllers/conditions"
)

func TestPortsThatAreTakenOnNodesAreNamedWithWhatToDo(t *testing.T) {
	const scheduler = "0/3 nodes are available: 1 node(s) had untolerated taint(s), 2 node(s) didn't have free ports for the requested pod ports."
	pending := func(o *observed, message string) {
		pod := o.pods["fs-1"]
		pod.Spec.NodeName, pod.Status = "", corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{
			{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: message},
		}}
		o.pods["fs-1"] = pod
	}
	reported := func(o *observed, uid string) {
		server, pod := o.dataServers["fs-1"], o.pods["fs-1"]
		pod.UID = "uid-2"
		// The kubelet starts the container again and again.
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}}}
		server.Status.PodUID = uid
		server.Status.Conditions = []metav1.Condition{conditions.False(v1alpha1.ConditionReady, internalv1.ReasonPortTaken, "port 20492 of node node-b can't be used: address already in use")}
		o.pods["fs-1"], o.dataServers["fs-1"] = pod, server
	}
	for name, test := range map[string]struct {
		change  func(o *observed)
		reason  string
		message []string
	}{
		"another pod has them": {
			func(o *observed) { pending(o, scheduler) }, v1alpha1.ReasonHostPortsTaken,
			[]string{"fs-1 is Unavailable (not scheduled: 0/3 nodes", "TCP ports 20490 to 20494", "set spec.network.hostNetwork.firstPort to five free ones"},
		},
		"no node has room": {
			func(o *observed) { pending(o, "0/3 nodes are available: 3 Insufficient memory.") }, v1alpha1.ReasonServersNotReady, []string{"Insufficient memory"},
		},
		"another program has one": {
			func(o *observed) { reported(o, "uid-2") }, v1alpha1.ReasonHostPortsTaken,
			[]string{"port 20492 of node node-b can't be used", "TCP ports 20490 to 20494"},
		},
		"the pod before had it": {func(o *observed) { reported(o, "uid-1") }, v1alpha1.ReasonServersNotReady, []string{"CrashLoopBackOff"}},
	} {
		t.Run(name, func(t *testing.T) {
			o, d := world()
			o.fileServer.Spec.Network.HostNetwork = &v1alpha1.HostNetwork{FirstPort: 20490}
			test.change(o)
			got := serversCondition(d, reportServers(o, d), "")
			if got.Reason != test.reason {
				t.Errorf("%s: %s", got.Reason, got.Message)
			}
			for _, part := range test.message {
				if !strings.Contains(got.Message, part) {
					t.Errorf("%q is not in: %s", part, got.Message)
				}
			}
		})
	}
}

func TestAReportIsThatOfThePodThatWroteIt(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "uid-2"}, Status: corev1.PodStatus{PodIP: "10.0.0.2"}}
	for name, test := range map[string]struct {
		status internalv1.DataServerStatus
		want   bool
	}{
		"nothing is reported":                   {internalv1.DataServerStatus{}, true},
		"an older release, the same address":    {internalv1.DataServerStatus{PodIP: "10.0.0.2"}, true},
		"an older release, another address":     {internalv1.DataServerStatus{PodIP: "10.0.0.1"}, false},
		"the pod before, on the node's network": {internalv1.DataServerStatus{PodIP: "10.0.0.2", PodUID: "uid-1"}, false},
		"this pod":                              {internalv1.DataServerStatus{PodIP: "10.0.0.2", PodUID: "uid-2"}, true},
	} {
		if got := isReportOf(&test.status, pod); got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
