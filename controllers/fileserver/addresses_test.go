package fileserver

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/controllers/desired"
	"github.com/howdah/howdah/internal/admissible"
	"github.com/howdah/howdah/internal/fleet"
	"github.com/howdah/howdah/internal/naming"
	"github.com/howdah/howdah/test/builders"
)

func TestOutsideAddressesAreThoseOfServicesThatStay(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(service *corev1.Service)
		want   string
	}{
		"an address":                     {func(*corev1.Service) {}, "[192.0.2.2]"},
		"a host name":                    {setIngress(corev1.LoadBalancerIngress{Hostname: "lb.example.com"}), "[lb.example.com]"},
		"both, and one of them twice":    {setIngress(corev1.LoadBalancerIngress{IP: "2001:DB8::1"}, corev1.LoadBalancerIngress{IP: "192.0.2.9"}, corev1.LoadBalancerIngress{IP: "2001:db8::1"}), "[2001:db8::1 192.0.2.9]"},
		"an address and its name":        {setIngress(corev1.LoadBalancerIngress{IP: "192.0.2.9", Hostname: "lb.example.com"}), "[192.0.2.9]"},
		"none yet":                       {setIngress(), "[]"},
		"one of a Service that goes":     {func(s *corev1.Service) { s.DeletionTimestamp = &metav1.Time{Time: noon} }, "[]"},
		"one of an earlier class":        {func(s *corev1.Service) { s.Spec.LoadBalancerClass = ptr.To("example.com/before") }, "[]"},
		"one of the default class":       {func(s *corev1.Service) { s.Spec.LoadBalancerClass = nil }, "[]"},
		"of another Service of the name": {func(s *corev1.Service) { s.Spec.Type = corev1.ServiceTypeClusterIP }, "[]"},
	} {
		o, _ := world()
		o.outside(time.Hour, "192.0.2.1", "192.0.2.2", "192.0.2.3")
		service := o.services["fs-0-outside"]
		tc.change(&service)
		o.services["fs-0-outside"] = service
		if got := fmt.Sprint(o.outsideAddresses()["fs-0"]); got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
		if got, want := o.outsideReplaced(2)["fs-0-outside"], strings.Contains(name, "class"); got != want {
			t.Errorf("%s: it goes first: %v, want %v", name, got, want)
		}
	}
	// None is made in its place until the specification is corrected.
	o, _ := world()
	o.outside(time.Hour, "192.0.2.1", "192.0.2.2", "192.0.2.3")
	o.fileServer.Spec.Network.LoadBalancer.Class = "example.com/after"
	o.badValues.Outside = admissible.Families(&v1alpha1.FileServerSpec{Network: v1alpha1.Network{LoadBalancer: &v1alpha1.LoadBalancer{
		IPFamilyPolicy: corev1.IPFamilyPolicyRequireDualStack,
	}}}, []corev1.IPFamily{corev1.IPv4Protocol})
	if got := fmt.Sprint(o.outsideAddresses()["fs-0"], o.outsideReplaced(2)); got != "[192.0.2.2] map[]" {
		t.Errorf("of another class, and the specification is wrong: %s", got)
	}
	o, d := world()
	o.outside(time.Hour, "192.0.2.1", "192.0.2.2", "192.0.2.3")
	status := report(o, d, nil, noon)
	if got := fmt.Sprint(status.OutsideAddresses, status.Servers[0].OutsideAddresses, status.Servers[1].OutsideAddresses); got != "[192.0.2.1] [192.0.2.2] [192.0.2.3]" {
		t.Errorf("status: %s", got)
	}
	o.fileServer.Spec.Network = v1alpha1.Network{}
	if got := o.outsideAddresses(); len(got) > 0 {
		t.Errorf("none is asked for any more: %v", got)
	}
}

// A load balancer writes an address into the status before all of it knows it.
func TestNewOutsideAddressesAreKeptFromClientsForSomeSeconds(t *testing.T) {
	for name, tc := range map[string]struct {
		age   time.Duration
		known []string
		given []string
		want  string
		next  time.Duration
		waits bool
	}{
		"new":                           {time.Second, nil, []string{"192.0.2.2"}, "[]", outsideSettles - time.Second, true},
		"old enough":                    {outsideSettles, nil, []string{"192.0.2.2"}, "[192.0.2.2]", 0, false},
		"known, in a new status":        {0, []string{"192.0.2.2"}, []string{"192.0.2.2"}, "[192.0.2.2]", 0, false},
		"one known, another is new":     {0, []string{"192.0.2.2"}, []string{"192.0.2.2", "192.0.2.9"}, "[192.0.2.2]", outsideSettles, false},
		"another instead":               {0, []string{"192.0.2.2"}, []string{"192.0.2.9"}, "[]", outsideSettles, true},
		"the API's clock is ahead":      {-time.Second, nil, []string{"192.0.2.2"}, "[]", outsideSettles, true},
		"the API's clock is far ahead":  {-time.Hour, nil, []string{"192.0.2.2"}, "[192.0.2.2]", 0, false},
		"none, in a status that is new": {0, nil, nil, "[]", outsideLimit - time.Minute, true},
	} {
		o, _ := world()
		o.now = noon
		o.outside(time.Minute, "192.0.2.1", "192.0.2.2", "192.0.2.3")
		o.fileServer.Status.Servers = []v1alpha1.FileServerServerStatus{{Name: "fs-1", OutsideAddresses: tc.given}, {Name: "fs-0", OutsideAddresses: tc.known}}
		service := o.services["fs-0-outside"]
		service.ManagedFields = []metav1.ManagedFieldsEntry{
			{Manager: "howdah-fileserver", Operation: metav1.ManagedFieldsOperationApply, Time: &metav1.Time{Time: o.now}},
			{Subresource: "status", Time: &metav1.Time{Time: o.now.Add(-tc.age)}},
		}
		service.Status.LoadBalancer.Ingress = nil
		for _, address := range tc.given {
			service.Status.LoadBalancer.Ingress = append(service.Status.LoadBalancer.Ingress, corev1.LoadBalancerIngress{IP: address})
		}
		o.services["fs-0-outside"] = service
		if got := fmt.Sprint(o.outsideAddresses()["fs-0"]); got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
		waiting, late, next := o.outsideWaits(2)
		if slices.Contains(waiting, "fs-0-outside") != tc.waits || len(late) > 0 || next != tc.next {
			t.Errorf("%s: %v waits, %v is late, again after %s, want %v and %s", name, waiting, late, next, tc.waits, tc.next)
		}
	}
	// It was given late: it is no Service that the load balancer has forgotten.
	o, _ := world()
	o.now = noon
	o.outside(time.Hour, "192.0.2.1", "192.0.2.2", "192.0.2.3")
	service := o.services["fs-0-outside"]
	service.ManagedFields = []metav1.ManagedFieldsEntry{{Subresource: "status", Time: &metav1.Time{Time: o.now}}}
	o.services["fs-0-outside"] = service
	if waiting, late, _ := o.outsideWaits(2); len(waiting) != 1 || len(late) > 0 {
		t.Errorf("%v waits, %v is late", waiting, late)
	}
}

func setIngress(ingress ...corev1.LoadBalancerIngress) func(*corev1.Service) {
	return func(s *corev1.Service) { s.Status.LoadBalancer.Ingress = ingress }
}

// outside gives a FileServer load balancers, and its outside Services, made a while ago, their addresses: of the namespace servers, of
// fs-0 and fs-1.
func (o *observed) outside(age time.Duration, addresses ...string) {
	o.fileServer.Spec.Network.LoadBalancer = &v1alpha1.LoadBalancer{Class: "example.com/lb"}
	for i, name := range desired.OutsideServices(o.fileServer, 2) {
		service := corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.Time{Time: o.now.Add(-age)}}}
		service.Spec.Type, service.Spec.LoadBalancerClass = corev1.ServiceTypeLoadBalancer, ptr.To("example.com/lb")
		if _, err := netip.ParseAddr(addresses[i]); err == nil {
			setIngress(corev1.LoadBalancerIngress{IP: addresses[i]})(&service)
		} else if addresses[i] != "" {
			setIngress(corev1.LoadBalancerIngress{Hostname: addresses[i]})(&service)
		}
		o.services[name] = service
	}
}

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
	lost := pod(corev1.PodRunning, corev1.ConditionTrue, "10.0.0.5")
	lost.Spec.NodeName = "lost"
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
		"one is on a lost node":               {[]corev1.Pod{lost, ready}, "[10.0.0.9 fd00::9]"},
		"one is on a lost node, another goes": {[]corev1.Pod{lost, going}, "[10.0.0.5]"},
	} {
		if got := fmt.Sprint((&observed{namespacePods: tc.pods}).waitingRooms([]string{"lost"})); got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
}

func TestClientsWaitAtAPodOnANodeAddressThatStartsAndHoldsItsPort(t *testing.T) {
	report := func(status metav1.ConditionStatus, reason string) func(*internalv1.DataServer, *corev1.Pod) {
		return func(s *internalv1.DataServer, _ *corev1.Pod) {
			s.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: status, Reason: reason}}
		}
	}
	ofPod := func(change func(*corev1.Pod)) func(*internalv1.DataServer, *corev1.Pod) {
		return func(_ *internalv1.DataServer, p *corev1.Pod) { change(p) }
	}
	const there = "map[fs-0:10.20.0.11:20490]"
	for name, tc := range map[string]struct {
		change func(*internalv1.DataServer, *corev1.Pod)
		want   string
	}{
		"it starts":                           {report(metav1.ConditionFalse, internalv1.ReasonStarting), there},
		"it serves, and the kubelet is late":  {report(metav1.ConditionTrue, v1alpha1.ReasonReady), there},
		"the kubelet has reported no address": {ofPod(func(p *corev1.Pod) { p.Status.PodIPs = nil }), there},
		"a port is taken":                     {report(metav1.ConditionFalse, internalv1.ReasonPortTaken), "map[]"},
		"it stops":                            {report(metav1.ConditionFalse, internalv1.ReasonStopping), "map[]"},
		"its volume is refused":               {report(metav1.ConditionFalse, internalv1.ReasonVolumeRefused), "map[]"},
		"the pod before has reported":         {func(s *internalv1.DataServer, _ *corev1.Pod) { s.Status.PodUID = "uid-0" }, "map[]"},
		"it is ready":                         {ofPod(func(p *corev1.Pod) { p.Status.Conditions = pod(corev1.PodRunning, true).Status.Conditions }), "map[]"},
		"it is being deleted":                 {ofPod(func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: noon} }), "map[]"},
		"its container was started again":     {ofPod(func(p *corev1.Pod) { p.Status.ContainerStatuses = []corev1.ContainerStatus{{RestartCount: 1}} }), "map[]"},
		"its container has ended": {ofPod(func(p *corev1.Pod) {
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}}}
		}), "map[]"},
		"it is reached at its own address": {ofPod(func(p *corev1.Pod) { p.Spec.Containers = nil }), "map[]"},
		"the node's address is not known":  {func(s *internalv1.DataServer, _ *corev1.Pod) { s.Status.NetworkAddresses = nil }, "map[]"},
		"the API takes no such address":    {func(s *internalv1.DataServer, _ *corev1.Pod) { s.Status.NetworkAddresses = []string{"127.0.0.1"} }, "map[]"},
		"its node is lost":                 {ofPod(func(p *corev1.Pod) { p.Spec.NodeName = "node-b" }), "map[]"},
	} {
		server := internalv1.DataServer{Status: internalv1.DataServerStatus{PodIP: "10.1.0.1", PodUID: "uid-1", FirstPort: 20490, NetworkAddresses: []string{"10.20.0.11"}}}
		starting := *onNodeAddress("uid-1", false)
		report(metav1.ConditionFalse, internalv1.ReasonStarting)(&server, &starting)
		tc.change(&server, &starting)
		o, _ := world()
		node := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-a"}}
		node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
		o.nodes, o.dataServers["fs-0"], o.pods["fs-0"] = []corev1.Node{node}, server, starting
		o.services["fs-0"] = corev1.Service{Spec: corev1.ServiceSpec{ClusterIP: "10.0.0.10"}}
		if got := fmt.Sprint(o.starting(2)); got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
}

func TestClientsThatAreNearAreWrittenOnlyForHotDirectoriesInCeph(t *testing.T) {
	const where = "map[fs-0:{[10.0.0.1] []} fs-1:{[10.0.0.2] []}]"
	hot := []fleet.Share{{}, {HotDirectories: []v1alpha1.HotDirectories{{DataServers: 2}}}}
	for name, tc := range map[string]struct {
		change func(o *observed)
		want   string
	}{
		"hot":                       {func(*observed) {}, where},
		"nothing":                   {func(o *observed) { o.shares = hot[:1] }, "map[]"},
		"volumes":                   {func(o *observed) { o.fileServer = builders.FileServer("ns", "fs").Replicas(2).Build() }, "map[]"},
		"its pod is elsewhere now":  {func(o *observed) { o.pods["fs-1"] = *pod(corev1.PodRunning, true) }, "map[fs-0:{[10.0.0.1] []} fs-1:{[10.0.0.1] []}]"},
		"its pod is being replaced": {func(o *observed) { delete(o.pods, "fs-1") }, where},
		"the next has no node": {func(o *observed) {
			o.pods["fs-1"] = *pod(corev1.PodPending, false, func(p *corev1.Pod) { p.Spec.NodeName = "" })
		}, where},
	} {
		o, _ := world()
		o.fileServer, o.shares = builders.FileServer("ns", "fs").Replicas(2).Ceph().Build(), hot
		o.nodes = []corev1.Node{
			*builders.Node("node-a").Address(corev1.NodeInternalIP, "10.0.0.1").Build(), *builders.Node("node-b").Address(corev1.NodeInternalIP, "10.0.0.2").Build(),
		}
		o.pods["fs-1"] = *pod(corev1.PodRunning, true, func(p *corev1.Pod) { p.Spec.NodeName = "node-b" })
		server := o.dataServers["fs-1"]
		server.Status.NodeName = "node-b"
		o.dataServers["fs-1"] = server
		tc.change(o)
		if got := fmt.Sprint(o.nearClients()); got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
}

// onNodeAddress is the pod of a data server on node-a that is reached at the node's address in 10.20.0.0/16.
func onNodeAddress(uid string, ready bool) *corev1.Pod {
	p := pod(corev1.PodRunning, ready)
	p.UID, p.Spec.NodeName, p.Status.PodIPs = types.UID(uid), "node-a", []corev1.PodIP{{IP: "10.1.0.1"}}
	p.Spec.Containers = []corev1.Container{{
		Args:  []string{"--addresses-in=10.20.0.0/16,fd00:20::/64"},
		Ports: []corev1.ContainerPort{{Name: naming.PortNFSOnNode, ContainerPort: 20490}, {Name: naming.PortNFSTLSOnNode, ContainerPort: 20491}},
	}}
	return p
}

func TestServicesLeadToAddressesOfNodesByWhatThePodsAre(t *testing.T) {
	const asked = "10.20.0.0/16"
	for name, tc := range map[string]struct {
		networks string
		change   func(o *observed)
		want     string
		fault    string
	}{
		"both serve there": {asked, func(*observed) {}, "map[fs-0:10.20.0.11 fs-1:10.20.0.12]", ""},
		"IPv6": {asked, func(o *observed) {
			o.services["fs-1"] = corev1.Service{Spec: corev1.ServiceSpec{ClusterIP: "fd00::11"}}
		}, "map[fs-0:10.20.0.11 fs-1:fd00:20::12]", ""},
		"one is still to change": {asked, func(o *observed) { o.pods["fs-1"] = *pod(corev1.PodRunning, true) }, "map[fs-0:10.20.0.11]", ""},
		"one has no pod":         {asked, func(o *observed) { delete(o.pods, "fs-1") }, "map[fs-0:10.20.0.11 fs-1:nowhere]", ""},
		"one has a new pod":      {asked, func(o *observed) { o.pods["fs-1"] = *onNodeAddress("uid-new", true) }, "map[fs-0:10.20.0.11 fs-1:nowhere]", ""},
		"no Service yet":         {asked, func(o *observed) { delete(o.services, "fs-1") }, "map[fs-0:10.20.0.11 fs-1:nowhere]", ""},
		"back, not changed yet":  {"", func(*observed) {}, "map[fs-0:10.20.0.11 fs-1:10.20.0.12]", ""},
		"back, and between pods": {"", func(o *observed) { delete(o.pods, "fs-1") }, "map[fs-0:10.20.0.11]", ""},
		"two nodes with one address": {asked, func(o *observed) {
			o.report("fs-1", "10.20.0.11")
		}, "map[fs-0:nowhere fs-1:nowhere]", "both report the address 10.20.0.11"},
		"two nodes with one address, of which one is not ready": {asked, func(o *observed) {
			o.report("fs-1", "10.20.0.11")
			o.pods["fs-1"] = *onNodeAddress("uid-fs-1", false)
		}, "map[fs-0:10.20.0.11 fs-1:10.20.0.11]", ""},
	} {
		o, d := world()
		o.fileServer = builders.FileServer("ns", "fs").Replicas(2).HostNetwork(20490, asked).Build()
		for i, server := range []string{"fs-0", "fs-1"} {
			o.services[server] = corev1.Service{Spec: corev1.ServiceSpec{ClusterIP: fmt.Sprintf("10.0.0.1%d", i)}}
			o.pods[server] = *onNodeAddress("uid-"+server, true)
			o.report(server, fmt.Sprintf("10.20.0.1%d", i+1), fmt.Sprintf("fd00:20::1%d", i+1))
		}
		tc.change(o)
		var networks []netip.Prefix
		if tc.networks != "" {
			networks = append(networks, netip.MustParsePrefix(tc.networks))
		}
		d.input.NodeEndpoints, d.nodeFaults = o.nodeEndpoints(2, networks)
		got := map[string]string{}
		for server, at := range d.input.NodeEndpoints {
			got[server] = strings.ReplaceAll(at.Address.String(), "invalid IP", "nowhere")
		}
		if fmt.Sprint(got) != tc.want {
			t.Errorf("%s: %v, want %s", name, got, tc.want)
		}
		condition := serversCondition(d, reportServers(o, d), "")
		if isFault := condition.Reason == v1alpha1.ReasonNodeAddressMissing; isFault != (tc.fault != "") || !strings.Contains(condition.Message, tc.fault) {
			t.Errorf("%s: %s: %s", name, condition.Reason, condition.Message)
		}
	}
}

// report has a data server report addresses of its node.
func (o *observed) report(server string, addresses ...string) {
	known := o.dataServers[server]
	known.Status.PodUID, known.Status.NetworkAddresses = "uid-"+server, addresses
	o.dataServers[server] = known
}

func TestNetworksCountIfTheyHaveTheFamilyOfServices(t *testing.T) {
	for name, tc := range map[string]struct {
		service   string
		networks  []string
		want      string
		isRefused bool
	}{
		"IPv4":                       {"10.0.0.9", []string{"10.20.0.0/16"}, "[10.20.0.0/16]", false},
		"IPv6":                       {"fd00::9", []string{"fd00:20::/64"}, "[fd00:20::/64]", false},
		"both":                       {"10.0.0.9", []string{"10.20.0.0/16", "fd00:20::/64"}, "[10.20.0.0/16 fd00:20::/64]", false},
		"IPv6 beside Services' IPv4": {"10.0.0.9", []string{"fd00:20::/64"}, "[]", true},
		"IPv4 beside Services' IPv6": {"fd00::9", []string{"10.20.0.0/16"}, "[]", true},
		"no Service yet":             {"", []string{"fd00:20::/64"}, "[fd00:20::/64]", false},
		"none":                       {"10.0.0.9", nil, "[]", false},
	} {
		o, d := world()
		o.fileServer = builders.FileServer("ns", "fs").Replicas(2).HostNetwork(20490, tc.networks...).Build()
		o.services["fs"] = corev1.Service{Spec: corev1.ServiceSpec{ClusterIP: tc.service}}
		networks, refused := o.addressesIn()
		if fmt.Sprint(networks) != tc.want || (refused != nil) != tc.isRefused {
			t.Errorf("%s: %v, %v", name, networks, refused)
		}
		d.familyMissing = refused
		ready := readyCondition(o, d, nil, nil, nil)
		if tc.isRefused && (ready.Reason != v1alpha1.ReasonInvalidSpec || !strings.Contains(ready.Message, "spec.network.hostNetwork.addressesIn has no IP")) {
			t.Errorf("%s: %s: %s", name, ready.Reason, ready.Message)
		}
	}
	o, _ := world()
	if networks, refused := o.addressesIn(); networks != nil || refused != nil {
		t.Errorf("without hostNetwork: %v, %v", networks, refused)
	}
}
