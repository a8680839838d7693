package fileserver

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/controllers/backend/volumes"
	"github.com/howdah/howdah/internal/fleet"
)

func TestADataServerThatDoesNotAnswerSaysWhereSinceWhenAndWhatItWaitsFor(t *testing.T) {
	node := func(ready corev1.ConditionStatus) []corev1.Node {
		return []corev1.Node{{
			ObjectMeta: metav1.ObjectMeta{Name: "n2"},
			Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}}},
		}}
	}
	dataServer := internalv1.DataServer{ObjectMeta: metav1.ObjectMeta{Name: "fs-1"}}
	dataServer.Status.Unreachable = internalv1.Unreachable{SinceTime: &metav1.Time{Time: time.Date(2026, 11, 22, 3, 4, 5, 0, time.UTC)}, SeenBy: "fs-namespace-x"}
	running := func(change ...func(*corev1.Pod)) *corev1.Pod {
		p := &corev1.Pod{Spec: corev1.PodSpec{NodeName: "n2"}}
		p.Status.Phase = corev1.PodRunning
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		for _, c := range change {
			c(p)
		}
		return p
	}
	deleted := func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} }
	const since = "does not answer since 2026-11-22T03:04:05Z"
	for name, tc := range map[string]struct {
		o    observed
		pod  *corev1.Pod
		want string
	}{
		"and the kubelet has reported nothing yet": {
			observed{nodes: node(corev1.ConditionTrue), storage: &volumes.Storage{}},
			running(),
			since + "; node n2, where it runs, is Ready so far: it waits for ganesha there, or for that node's network",
		},
		"and its volumes are on that node": {
			observed{nodes: node(corev1.ConditionTrue), storage: &volumes.Storage{Pinned: map[string]bool{"fs-1": true}}},
			running(),
			since + "; node n2, which has its volumes, is Ready so far: it waits for ganesha there, or for that node to come back",
		},
		"and its pod is being stopped on a node that lives": {observed{nodes: node(corev1.ConditionTrue), storage: &volumes.Storage{}}, running(deleted), "its pod is being stopped"},
		"on a lost node that has its volumes": {
			observed{nodes: node(corev1.ConditionUnknown), storage: &volumes.Storage{Pinned: map[string]bool{"fs-1": true}}},
			running(deleted),
			since + "; node n2 is not ready, and its volumes are on that node: it waits for node n2 to come back",
		},
		"on a lost node, and its volumes can be elsewhere": {
			observed{nodes: node(corev1.ConditionUnknown), storage: &volumes.Storage{}},
			running(deleted),
			since + "; node n2 is not ready: it waits for that node, or, once the machine is known to be off, for you to let it start elsewhere: " +
				"kubectl taint node n2 node.kubernetes.io/out-of-service=nodeshutdown:NoExecute",
		},
		"on a node that was removed": {
			observed{storage: &volumes.Storage{Pinned: map[string]bool{"fs-1": true}}},
			running(),
			since + "; node n2 is gone, and its volumes are on that node: it waits for node n2 to come back",
		},
	} {
		t.Run(name, func(t *testing.T) {
			tc.o.pods, tc.o.dataServers = map[string]corev1.Pod{"fs-1": *tc.pod}, map[string]internalv1.DataServer{"fs-1": dataServer}
			state, waits := tc.o.stateOf("fs-1"), tc.o.waitsOf("fs-1")
			if state != fleet.Unavailable || waits != tc.want {
				t.Errorf("got %s %q\nwant Unavailable %q", state, waits, tc.want)
			}
		})
	}
}

// A namespace server that is cut off itself calls all data servers silent. Who waits for that must learn where to look.
func TestANamespaceServerThatReachesNoDataServerIsNamed(t *testing.T) {
	pod := func(name, node string, ready corev1.ConditionStatus) corev1.Pod {
		p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PodSpec{NodeName: node}}
		p.Status.Phase = corev1.PodRunning
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: ready}}
		return p
	}
	const yes, no = corev1.ConditionTrue, corev1.ConditionFalse
	const named = "; all data servers are ready in their pods, and namespace server fs-namespace-x on node n9 reaches none of them: look at the network of that node"
	for name, tc := range map[string]struct {
		seenBy  string
		ready   corev1.ConditionStatus
		network v1alpha1.Network
		want    string
	}{
		"all of them": {"fs-namespace-x", yes, v1alpha1.Network{}, named},
		"one of two":  {"", yes, v1alpha1.Network{}, ""},
		"one of them has a pod that does not answer its kubelet": {"fs-namespace-x", no, v1alpha1.Network{}, ""},
		"with networks of the nodes": {
			"fs-namespace-x", yes,
			v1alpha1.Network{HostNetwork: &v1alpha1.HostNetwork{AddressesIn: []string{"10.20.0.0/16"}}},
			named + ", which must reach spec.network.hostNetwork.addressesIn, or keep namespace servers off it (spec.namespaceServers.placement)",
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := observed{fileServer: &v1alpha1.FileServer{}, storage: &volumes.Storage{}, namespacePods: []corev1.Pod{pod("fs-namespace-x", "n9", yes)}}
			o.fileServer.Spec.Network = tc.network
			o.nodes = []corev1.Node{{ObjectMeta: metav1.ObjectMeta{Name: "n2"}, Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: yes}}}}}
			o.pods, o.dataServers = map[string]corev1.Pod{}, map[string]internalv1.DataServer{}
			for server, seenBy := range map[string]string{"fs-0": "fs-namespace-x", "fs-1": tc.seenBy} {
				dataServer := internalv1.DataServer{ObjectMeta: metav1.ObjectMeta{Name: server}}
				if seenBy != "" {
					dataServer.Status.Unreachable = internalv1.Unreachable{SinceTime: &metav1.Time{Time: noon}, SeenBy: seenBy}
				}
				o.dataServers[server], o.pods[server] = dataServer, pod(server, "n2", yes)
			}
			o.pods["fs-1"] = pod("fs-1", "n2", tc.ready)
			waits := o.waitsOf("fs-0")
			if !strings.HasSuffix(waits, tc.want) || strings.Contains(waits, "reaches none") != (tc.want != "") {
				t.Errorf("got %q\nwant %q at the end", waits, tc.want)
			}
		})
	}
}
