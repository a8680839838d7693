package fileserver

import (
	"fmt"
	"net/netip"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	discoveryv1ac "k8s.io/client-go/applyconfigurations/discovery/v1"
	"k8s.io/utils/ptr"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/controllers/desired"
)

// endpoint is one of a Service, for kube-proxy.
type endpoint struct{ ready, serving, terminating bool }

// led is where kube-proxy leads connections to a Service, of the endpoints in its slices by address and port: of two with one address and port it takes the
// one that does not end (pkg/proxy/endpointslicecache.go, addEndpoints, of Kubernetes 1.36); then those that are ready, or if none is, those that serve
// and end (pkg/proxy/topology.go, CategorizeEndpoints). It refuses connections if there is none.
func led(all map[string][]endpoint) (to []string) {
	merged := map[string]endpoint{}
	for address, those := range all {
		for _, e := range those {
			if _, exists := merged[address]; !exists || !e.terminating {
				merged[address] = e
			}
		}
	}
	for _, take := range []func(endpoint) bool{
		func(e endpoint) bool { return e.ready },
		func(e endpoint) bool { return e.serving && e.terminating },
	} {
		for address, e := range merged {
			if take(e) {
				to = append(to, address)
			}
		}
		if len(to) > 0 {
			return to
		}
	}
	return nil
}

// Linux waits for 3 s and longer after it was refused.
func TestNoConnectionIsRefusedWhileAPodStarts(t *testing.T) {
	for name, tc := range map[string]struct {
		pod *corev1.Pod
		// own is the address of Kubernetes' slice, none if that has none.
		own, want string
	}{
		"the kubelet has reported no address yet": {pod(corev1.PodPending, false), "", "[10.9.0.9:9591]"},
		"the kubelet has reported its address":    {pod(corev1.PodRunning, false), "10.1.0.1:2049", "[10.9.0.9:9591]"},
		"it is ready":                             {pod(corev1.PodRunning, true), "10.1.0.1:2049", "[10.1.0.1:2049]"},
		"at an address of its node":               {onNodeAddress("uid-1", false), "", "[10.20.0.11:20490]"},
		"ready at an address of its node":         {onNodeAddress("uid-1", true), "", "[10.20.0.11:20490]"},
	} {
		o, _ := world()
		node := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-a"}}
		node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
		o.nodes = []corev1.Node{node}
		starting := *tc.pod
		starting.UID, starting.Spec.NodeName, starting.Status.PodIPs = "uid-1", "node-a", nil
		if tc.own != "" {
			starting.Status.PodIPs = []corev1.PodIP{{IP: "10.1.0.1"}}
		}
		server := internalv1.DataServer{Status: internalv1.DataServerStatus{PodIP: "10.1.0.1", PodUID: "uid-1"}}
		server.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: internalv1.ReasonStarting}}
		if desired.IsOnNodeAddress(&starting) {
			server.Status.FirstPort, server.Status.NetworkAddresses = 20490, []string{"10.20.0.11"}
		}
		o.dataServers["fs-0"], o.pods["fs-0"] = server, starting
		o.services["fs-0"] = corev1.Service{Spec: corev1.ServiceSpec{ClusterIP: "10.0.0.10"}}

		all := map[string][]endpoint{}
		if tc.own != "" {
			all[tc.own] = append(all[tc.own], endpoint{ready: podReady(&starting), serving: podReady(&starting)})
		}
		in := desired.FileServerInput{
			FileServer: o.fileServer, Replicas: 1, Addresses: map[string]string{"fs-0": "10.0.0.10"},
			WaitingRooms: []netip.Addr{netip.MustParseAddr("10.9.0.9")}, Starting: o.starting(1),
		}
		if desired.IsOnNodeAddress(&starting) {
			in.NodeEndpoints = map[string]desired.NodeEndpoint{"fs-0": o.nodeEndpointOf("fs-0")}
		}
		for _, object := range desired.FileServer(in) {
			if slice, is := object.(*discoveryv1ac.EndpointSliceApplyConfiguration); is && slice.Labels[discoveryv1.LabelServiceName] == "fs-0" {
				for _, e := range slice.Endpoints {
					address := fmt.Sprintf("%s:%d", e.Addresses[0], *slice.Ports[0].Port)
					all[address] = append(all[address], endpoint{ptr.Deref(e.Conditions.Ready, true), ptr.Deref(e.Conditions.Serving, true), ptr.Deref(e.Conditions.Terminating, false)})
				}
			}
		}
		if got := fmt.Sprint(led(all)); got != tc.want {
			t.Errorf("%s: connections are led to %s, want %s: %v", name, got, tc.want, all)
		}
	}
}
