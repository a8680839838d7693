package desired

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	k8slabels "k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	networkingv1ac "k8s.io/client-go/applyconfigurations/networking/v1"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/controllers/backend/backendapi"
	"github.com/howdah/howdah/controllers/backend/ceph"
	"github.com/howdah/howdah/controllers/backend/volumes"
	"github.com/howdah/howdah/internal/fleet"
	"github.com/howdah/howdah/internal/naming"
	"github.com/howdah/howdah/test/builders"
)

var images = Images{Server: "example.org/howdah-server:1", Howdah: "example.org/howdah:1"}

func TestFileServerChildren(t *testing.T) {
	// By name, and the StorageClass of the claims, whose templates keep the size that the StatefulSet was made with.
	classes := map[string]string{"fileserver-smallest": "local", "fileserver-everything": "fast", "fileserver-host-network": "local", "fileserver-on-node-address": "local"}
	tests := map[string]FileServerInput{
		"fileserver-smallest": {
			FileServer: builders.FileServer("lab", "one").UID("6b1f").Build(),
			Images:     images, Replicas: 1,
		},
		"fileserver-everything": {
			FileServer: builders.FileServer("ml", "training").UID("7c2e").Replicas(2).PerServer(2).Size("4Gi").
				NFS(15, 45).Resources("2", "4Gi").NodeSelector("disk", "nvme").NamespaceReplicas(3).
				Tolerate(corev1.Toleration{Key: "storage", Operator: corev1.TolerationOpEqual, Value: "yes", Effect: corev1.TaintEffectNoSchedule}).
				Build(),
			Images: images, Replicas: 2,
			// Two families: a Service has one.
			Addresses:       map[string]string{"training": "10.0.0.9", "training-0": "10.0.0.10", "training-1": "fd00:9::11"},
			WaitingRooms:    []netip.Addr{netip.MustParseAddr("10.244.1.7"), netip.MustParseAddr("10.244.2.7"), netip.MustParseAddr("fd00:7::17"), netip.MustParseAddr("fd00:7::27")},
			NodeNetworks:    []netip.Prefix{netip.MustParsePrefix("10.244.1.0/31"), netip.MustParsePrefix("fd00:7::2/128")},
			NetworkPolicies: &NetworkPolicies{OperatorNamespace: "howdah-system", MetricsFrom: []string{"monitoring"}},

			LostNodeAddresses: map[string][]netip.Addr{"training-1": {netip.MustParseAddr("10.0.0.3"), netip.MustParseAddr("fd00:7::3")}},

			CertificatesLost: 2,
			Clients:          []netip.Prefix{netip.MustParsePrefix("10.0.7.0/24"), netip.MustParsePrefix("fd00:7::/64")},
		},
		"fileserver-without-a-class": {
			FileServer: builders.FileServer("lab", "one").UID("6b1f").Build(),
			Images:     images, Replicas: 1,
		},
		"fileserver-ceph": {
			FileServer: builders.FileServer("ml", "training").UID("7c2e").Replicas(1).Ceph().Build(),
			Images:     images, Replicas: 1,
			Near: map[string]Near{"training-0": {
				[]netip.Addr{netip.MustParseAddr("10.0.0.3"), netip.MustParseAddr("fd00:7::3")}, []netip.Prefix{netip.MustParsePrefix("10.0.0.2/31")},
			}},
			NetworkPolicies: &NetworkPolicies{OperatorNamespace: "howdah-system"},
			Clients:         []netip.Prefix{netip.MustParsePrefix("10.0.7.0/24")},
		},
	}
	tests["fileserver-outside"] = FileServerInput{
		FileServer: builders.FileServer("ml", "training").UID("7c2e").Replicas(3).LoadBalancer(v1alpha1.LoadBalancer{
			Class: "metallb.io/lab", Annotations: map[string]string{"metallb.io/address-pool": "training"},
			// One is Howdah's own, which none replaces.
			Labels:       map[string]string{"team": "ml", v1alpha1.ComponentLabel: "mine"},
			SourceRanges: []string{"192.0.2.0/24"}, IPFamilyPolicy: corev1.IPFamilyPolicyPreferDualStack, NodePorts: v1alpha1.NodePortsOmit,
		}).Build(),
		Images: images, Replicas: 3,
		Addresses:        map[string]string{"training": "10.0.0.9", "training-0": "10.0.0.10", "training-1": "10.0.0.11"},
		OutsideAddresses: map[string][]string{"training-0": {"192.0.2.10", "2001:db8::10"}, "training-1": {"lb.example.com"}},
		// It has another class, and goes first.
		OutsideReplaced: map[string]bool{"training-2-outside": true},
		WaitingRooms:    []netip.Addr{netip.MustParseAddr("10.244.1.7"), netip.MustParseAddr("fd00:7::17")},
		NetworkPolicies: &NetworkPolicies{OperatorNamespace: "howdah-system"},
		Clients:         []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")},
	}
	tests["fileserver-host-network"] = FileServerInput{
		FileServer: builders.FileServer("ml", "training").UID("7c2e").Replicas(2).HostNetwork(20500).Build(),
		Images:     images, Replicas: 2,
		Addresses:       map[string]string{"training": "10.0.0.9", "training-0": "10.0.0.10", "training-1": "10.0.0.11"},
		WaitingRooms:    []netip.Addr{netip.MustParseAddr("10.244.1.7")},
		NodeNetworks:    []netip.Prefix{netip.MustParsePrefix("10.0.0.1/32")},
		NetworkPolicies: &NetworkPolicies{OperatorNamespace: "howdah-system"},
		Clients:         []netip.Prefix{netip.MustParsePrefix("10.0.0.1/32")},
	}
	tests["fileserver-on-node-address"] = onNodeAddresses(images)
	provisioned := tests["fileserver-ceph"]
	provisioned.FileServer = builders.FileServer("ml", "training").UID("7c2e").Replicas(1).Provisioned().NodeSelector("ceph", "near").Build()
	tests["fileserver-provisioned"] = provisioned
	for name, input := range tests {
		if len(input.FileServer.Spec.Storage.Ceph.External.Monitors) > 0 {
			input.Storage = ceph.Servers(input.FileServer)
		} else {
			withClaims(&input, classes[name])
		}
		t.Run(name, func(t *testing.T) { golden(t, name, FileServer(input)) })
	}
}

// onNodeAddresses has a data server that serves at its node's second address, one that ends there, one without a pod, and one whose pod is
// still reached at its own address. One starts: its clients wait with it.
func onNodeAddresses(images Images) FileServerInput {
	servers := []string{"training-0", "training-1", "training-2", "training-3"}
	in := FileServerInput{
		FileServer: builders.FileServer("ml", "training").UID("7c2e").Replicas(4).LoadBalancer(v1alpha1.LoadBalancer{}).HostNetwork(20500, "10.20.0.0/16", "fd00:20::/64").Build(),
		Images:     images, Replicas: 4,
		Addresses:     map[string]string{"training": "10.0.0.9"},
		WaitingRooms:  []netip.Addr{netip.MustParseAddr("10.244.1.7")},
		NodeNetworks:  []netip.Prefix{netip.MustParsePrefix("10.20.0.0/16")},
		AddressesIn:   []netip.Prefix{netip.MustParsePrefix("10.20.0.0/16"), netip.MustParsePrefix("fd00:20::/64")},
		NodeEndpoints: map[string]NodeEndpoint{"training-2": {}},
	}
	for i, server := range servers {
		in.Addresses[server] = fmt.Sprintf("10.0.0.1%d", i)
		if i > 1 {
			continue
		}
		pod := onNodeAddress(server, "10.20.0.0/16,fd00:20::/64")
		if i == 1 {
			pod.DeletionTimestamp = &metav1.Time{}
		}
		in.NodeEndpoints[server] = NodeEndpoint{Address: netip.MustParseAddr(fmt.Sprintf("10.20.0.1%d", i)), Pod: pod, IsServing: true}
	}
	in.Starting = map[string]netip.AddrPort{"training-1": netip.MustParseAddrPort("10.20.0.11:20500")}
	return in
}

// onNodeAddress is the pod of a data server that is reached at an address of its node in networks.
func onNodeAddress(name, networks string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: name, UID: types.UID("uid-of-" + name)},
		Spec: corev1.PodSpec{NodeName: "node-of-" + name, Containers: []corev1.Container{{
			Args: []string{"server", "--first-port=20500", "--addresses-in=" + networks},
			Ports: []corev1.ContainerPort{
				{Name: naming.PortNFSOnNode, ContainerPort: 20500}, {Name: naming.PortNFSTLSOnNode, ContainerPort: 20501}, {Name: naming.PortMetrics, ContainerPort: 20502},
			},
		}}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}},
	}
}

func TestAServiceLeadsToTheReportedAddressOfThePodsNode(t *testing.T) {
	const v4, v6 = discoveryv1.AddressTypeIPv4, discoveryv1.AddressTypeIPv6
	for name, tc := range map[string]struct {
		change func(pod *corev1.Pod, status *internalv1.DataServerStatus)
		family discoveryv1.AddressType
		want   string
	}{
		"it serves":          {nil, v4, "10.20.0.11 ready serving"},
		"it serves, by IPv6": {nil, v6, "fd00:20::11 ready serving"},
		"it is not ready": {func(p *corev1.Pod, _ *internalv1.DataServerStatus) {
			p.Status.Conditions[0].Status = corev1.ConditionFalse
		}, v4, "nowhere"},
		"it ends":                   {func(p *corev1.Pod, _ *internalv1.DataServerStatus) { p.DeletionTimestamp = &metav1.Time{} }, v4, "10.20.0.11 serving terminating"},
		"its program has ended":     {func(p *corev1.Pod, _ *internalv1.DataServerStatus) { p.Status.Phase = corev1.PodFailed }, v4, "nowhere"},
		"the pod before reported":   {func(_ *corev1.Pod, s *internalv1.DataServerStatus) { s.PodUID = "uid-0" }, v4, "nowhere"},
		"an older release reported": {func(_ *corev1.Pod, s *internalv1.DataServerStatus) { s.PodUID = "" }, v4, "nowhere"},
		"nothing is reported":       {func(_ *corev1.Pod, s *internalv1.DataServerStatus) { s.NetworkAddresses = nil }, v4, "nowhere"},
		"another network's":         {func(_ *corev1.Pod, s *internalv1.DataServerStatus) { s.NetworkAddresses = []string{"10.21.0.11"} }, v4, "nowhere"},
		"the API server's":          {func(_ *corev1.Pod, s *internalv1.DataServerStatus) { s.NetworkAddresses = []string{"10.96.0.1"} }, v4, "nowhere"},
		"no address":                {func(_ *corev1.Pod, s *internalv1.DataServerStatus) { s.NetworkAddresses = []string{"node-a"} }, v4, "nowhere"},
		"loopback": {func(p *corev1.Pod, s *internalv1.DataServerStatus) {
			p.Spec.Containers[0].Args = []string{"--addresses-in=127.0.0.0/8"}
			s.NetworkAddresses = []string{"127.0.0.1"}
		}, v4, "nowhere"},
		"the pod was given none": {func(p *corev1.Pod, _ *internalv1.DataServerStatus) { p.Spec.Containers[0].Args = []string{"server"} }, v4, "nowhere"},
		"another flag has a network": {func(p *corev1.Pod, _ *internalv1.DataServerStatus) {
			p.Spec.Containers[0].Args = []string{"--volumes-root=10.20.0.0/16"}
		}, v4, "nowhere"},
		"a family that it lacks": {func(_ *corev1.Pod, s *internalv1.DataServerStatus) { s.NetworkAddresses = s.NetworkAddresses[:1] }, v6, "nowhere"},
	} {
		pod := onNodeAddress("training-0", "10.20.0.0/16,fd00:20::/64")
		status := internalv1.DataServerStatus{PodUID: string(pod.UID), NetworkAddresses: []string{"10.20.0.11", "fd00:20::11"}}
		if tc.change != nil {
			tc.change(pod, &status)
		}
		slice, got := NodeAddressSlice(builders.FileServer("ml", "training").Build(), "training-0", tc.family, NodeEndpointOf(pod, &status, tc.family)), "nowhere"
		for _, endpoint := range slice.Endpoints {
			got = endpoint.Addresses[0]
			if *endpoint.Conditions.Ready {
				got += " ready"
			}
			if *endpoint.Conditions.Serving {
				got += " serving"
			}
			if *endpoint.Conditions.Terminating {
				got += " terminating"
			}
		}
		if got != tc.want {
			t.Errorf("%s: it leads to %s, want %s", name, got, tc.want)
		}
	}
	if got := NodeEndpointOf(nil, &internalv1.DataServerStatus{NetworkAddresses: []string{"10.20.0.11"}}, v4); got != (NodeEndpoint{}) {
		t.Errorf("without a pod it leads to %v", got)
	}
}

// withClaims gives data servers claims of 1 GiB of a class; "" is a class that is not found.
func withClaims(in *FileServerInput, class string) {
	in.Storage = volumes.Servers(in.FileServer, DataServerLabels(in.FileServer), class, resource.MustParse("1Gi"))
}

func TestTimersAreTheUsersAndElseTheBackEnds(t *testing.T) {
	for name, tc := range map[string]struct {
		nfs, storage, want [2]int32 // lease and grace; 0: unset
	}{
		"nothing is set":              {[2]int32{0, 0}, [2]int32{8, 12}, [2]int32{8, 12}},
		"the storage's lease is set":  {[2]int32{8, 0}, [2]int32{8, 12}, [2]int32{8, 16}},
		"both are set":                {[2]int32{15, 45}, [2]int32{6, 12}, [2]int32{15, 45}},
		"a lease alone":               {[2]int32{30, 0}, [2]int32{10, 20}, [2]int32{30, 60}},
		"a short lease alone":         {[2]int32{5, 0}, [2]int32{10, 20}, [2]int32{5, 20}},
		"the longest lease alone":     {[2]int32{120, 0}, [2]int32{10, 20}, [2]int32{120, 180}},
		"a grace alone":               {[2]int32{0, 30}, [2]int32{10, 20}, [2]int32{10, 30}},
		"a grace shorter than leases": {[2]int32{0, 5}, [2]int32{10, 20}, [2]int32{10, 10}},
	} {
		in := FileServerInput{
			FileServer: builders.FileServer("ml", "training").NFS(tc.nfs[0], tc.nfs[1]).Build(),
			Storage:    backendapi.ServerStorage{LeaseSeconds: tc.storage[0], GraceSeconds: tc.storage[1]},
		}
		lease, grace := timers(in)
		if got := [2]int32{lease, grace}; got != tc.want {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
}

func TestClientNetworksAreThoseOfAllRulesOnce(t *testing.T) {
	share := func(clients ...string) fleet.Share {
		return fleet.ShareOf(builders.FileShare("ml", "s", "training").Access("", "", clients...).Build())
	}
	many := share()
	for i := range maxClientNetworks + 1 {
		many.Access[0].Clients = append(many.Access[0].Clients, fmt.Sprintf("10.%d.%d.1", i/250, i%250))
	}
	for name, tc := range map[string]struct {
		shares []fleet.Share
		want   []string
	}{
		"no share":                              {nil, []string{}},
		"addresses and networks":                {[]fleet.Share{share("10.0.7.9", "192.168.0.0/16", "fd00::1")}, []string{"10.0.7.9/32", "192.168.0.0/16", "fd00::1/128"}},
		"each once, of two shares":              {[]fleet.Share{share("10.0.7.0/24"), share("10.0.7.0/24")}, []string{"10.0.7.0/24"}},
		"none inside another":                   {[]fleet.Share{share("10.0.7.9", "10.0.7.0/24", "10.0.0.1/8")}, []string{"10.0.0.0/8"}},
		"a share without rules":                 {[]fleet.Share{share("10.0.7.9"), fleet.ShareOf(builders.FileShare("ml", "t", "training").Build())}, []string{"10.0.7.9/32", "192.168.7.2/31"}},
		"nodes by their word":                   {[]fleet.Share{share("Nodes", "10.0.7.9")}, []string{"10.0.7.9/32", "192.168.7.2/31"}},
		"everybody, who is asked for":           {[]fleet.Share{share("0.0.0.0/0", "::/0"), share("Nodes")}, []string{"0.0.0.0/0", "::/0"}},
		"more than a packet filter should have": {[]fleet.Share{many}, []string{"0.0.0.0/0", "::/0"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := []string{}
			for _, network := range ClientNetworks(tc.shares, []netip.Prefix{netip.MustParsePrefix("192.168.7.2/31")}) {
				got = append(got, network.String())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAPolicyWithoutNetworksLetsNoClientIn(t *testing.T) {
	in := FileServerInput{
		FileServer: builders.FileServer("ml", "training").Build(), Replicas: 1,
		NetworkPolicies: &NetworkPolicies{OperatorNamespace: "howdah-system"}, Clients: ClientNetworks(nil, nil),
	}
	for _, child := range networkPolicies(in) {
		policy := child.(*networkingv1ac.NetworkPolicyApplyConfiguration)
		for _, rule := range policy.Spec.Ingress {
			if len(rule.From) == 0 {
				t.Errorf("%s lets everybody in: a rule without peers", *policy.Name)
			}
		}
	}
}

func TestPodsGetWhatTheUserSets(t *testing.T) {
	in := FileServerInput{
		FileServer: builders.FileServer("ml", "training").UID("7c2e").
			Pods(v1alpha1.PodSettings{
				Labels:            map[string]string{"team": "vision", v1alpha1.ComponentLabel: "mine"},
				Annotations:       map[string]string{"example.org/scrape": "no"},
				ImagePullSecrets:  []corev1.LocalObjectReference{{Name: "registry"}},
				PriorityClassName: "storage",
			}).
			Place(v1alpha1.Placement{
				TopologyKey: "topology.kubernetes.io/zone",
				NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
					NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{
						{Key: "disk", Operator: corev1.NodeSelectorOpIn, Values: []string{"nvme", "ssd"}},
					}}},
				}},
			}, v1alpha1.Placement{
				NodeSelector: map[string]string{"edge": "yes"},
				Tolerations:  []corev1.Toleration{{Key: "edge", Operator: corev1.TolerationOpExists}},
			}).Build(),
		Images: images, Replicas: 1,
	}
	withClaims(&in, "fast")
	golden(t, "fileserver-pods", []any{DataServerStatefulSet(in), NamespaceServerDeployment(in)})
}

// A registry of the whole cluster is the operator's to know, not that of every FileServer's author.
func TestPodsGetTheOperatorsPullSecretsToo(t *testing.T) {
	in := FileServerInput{
		FileServer: builders.FileServer("ml", "training").
			Pods(v1alpha1.PodSettings{ImagePullSecrets: []corev1.LocalObjectReference{{Name: "mine"}, {Name: "both"}}}).Build(),
		Images:   Images{Server: images.Server, Howdah: images.Howdah, PullSecrets: []string{"both", "mirror"}},
		Replicas: 1,
	}
	job := &v1alpha1.MLPerfStorageJob{}
	job.Name, job.Namespace = "unet3d", "ml"
	share := builders.FileShare("ml", "unet3d", "training").Build()
	benchmark := BenchmarkJobInput{Job: job, Share: share, Image: "howdah:test", PullSecrets: in.Images.PullSecrets, Clients: 1}
	for what, tc := range map[string]struct {
		template *corev1ac.PodTemplateSpecApplyConfiguration
		want     []string
	}{
		"data servers":      {DataServerStatefulSet(in).Spec.Template, []string{"mine", "both", "mirror"}},
		"namespace servers": {NamespaceServerDeployment(in).Spec.Template, []string{"mine", "both", "mirror"}},
		"a benchmark":       {BenchmarkRunJob(benchmark).Spec.Template, []string{"both", "mirror"}},
	} {
		var got []string
		for _, secret := range tc.template.Spec.ImagePullSecrets {
			got = append(got, *secret.Name)
		}
		if !slices.Equal(got, tc.want) {
			t.Errorf("%s pull with %v, want %v", what, got, tc.want)
		}
	}
}

func TestShareExport(t *testing.T) {
	for name, share := range map[string]*v1alpha1.FileShare{
		"share-export-smallest": builders.FileShare("ml", "bert", "training").Build(),
		"share-export-everything": builders.FileShare("ml", "unet3d", "training").Owner(1000, 100, "0770").ReclaimPolicy(v1alpha1.ReclaimDelete).
			Access(v1alpha1.AccessReadOnly, v1alpha1.SquashRoot, "10.0.0.0/8", "192.168.0.1").Access("", "", "0.0.0.0/0").Build(),
	} {
		t.Run(name, func(t *testing.T) { golden(t, name, []any{ShareExport(share, "training-0")}) })
	}
}

func TestMaxShares(t *testing.T) {
	for volumes, want := range map[int32]int{1: 4096, 15: 4096, 16: 4095} {
		if got := MaxShares(volumes); got != want {
			t.Errorf("with %d volumes %d, not %d", volumes, got, want)
		}
	}
}

func TestAllowsNamespace(t *testing.T) {
	selector := func(s *metav1.LabelSelector) *v1alpha1.AllowedNamespaces {
		return &v1alpha1.AllowedNamespaces{From: v1alpha1.NamespacesFromSelector, Selector: s}
	}
	in := func(operator metav1.LabelSelectorOperator, values ...string) *v1alpha1.AllowedNamespaces {
		return selector(&metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "team", Operator: operator, Values: values}}})
	}
	tests := map[string]struct {
		allowed   *v1alpha1.AllowedNamespaces
		namespace string
		labels    map[string]string
		want      bool
	}{
		"its own, always":                     {nil, "ml", nil, true},
		"its own, which no label chooses":     {in(metav1.LabelSelectorOpIn, "a"), "ml", nil, true},
		"others not by default":               {nil, "tenant", nil, false},
		"others not with Same":                {&v1alpha1.AllowedNamespaces{From: v1alpha1.NamespacesFromSame}, "tenant", nil, false},
		"others not with an unset from":       {&v1alpha1.AllowedNamespaces{}, "tenant", nil, false},
		"all":                                 {&v1alpha1.AllowedNamespaces{From: v1alpha1.NamespacesFromAll}, "tenant", nil, true},
		"by a label":                          {selector(&metav1.LabelSelector{MatchLabels: map[string]string{"team": "a"}}), "tenant", map[string]string{"team": "a"}, true},
		"by a label of another value":         {selector(&metav1.LabelSelector{MatchLabels: map[string]string{"team": "a"}}), "tenant", map[string]string{"team": "b"}, false},
		"by an expression":                    {in(metav1.LabelSelectorOpIn, "a", "b"), "tenant", map[string]string{"team": "b"}, true},
		"none with an empty selector":         {selector(&metav1.LabelSelector{}), "tenant", nil, false},
		"none without a selector":             {selector(nil), "tenant", nil, false},
		"none with one that can't be read":    {in("=", "a"), "tenant", map[string]string{"team": "a"}, false},
		"none with a from of a later version": {&v1alpha1.AllowedNamespaces{From: "Listed"}, "tenant", nil, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			fs := builders.FileServer("ml", "training").Build()
			fs.Spec.AllowedNamespaces = tc.allowed
			if got := AllowsNamespace(fs, tc.namespace, tc.labels); got != tc.want {
				t.Errorf("allowed: %v, want %v", got, tc.want)
			}
		})
	}
}

func TestObjectsOfSharesOfOneNameInTwoNamespacesDiffer(t *testing.T) {
	own, a := builders.FileShare("ml", "data", "training").Build(), builders.FileShare("a", "data", "training").OnNamespace("ml").Build()
	explicit := builders.FileShare("ml", "data", "training").OnNamespace("ml").Build() // the same as unset
	if diff := cmp.Diff(ShareExport(own, "training-0"), ShareExport(explicit, "training-0")); diff != "" {
		t.Errorf("the FileServer's own namespace, set or unset (-unset +set):\n%s", diff)
	}
	for what, name := range map[string]func(*v1alpha1.FileShare) metav1.ObjectMeta{
		"ShareExport":    func(s *v1alpha1.FileShare) metav1.ObjectMeta { return ShareExport(s, "training-0").ObjectMeta },
		"ShareDirectory": func(s *v1alpha1.FileShare) metav1.ObjectMeta { return ShareDirectory(s, "train", nil).ObjectMeta },
	} {
		mine, theirs := name(own), name(a)
		if mine.Name == theirs.Name || mine.Namespace != "ml" || theirs.Namespace != "ml" {
			t.Errorf("%s: %s/%s and %s/%s", what, mine.Namespace, mine.Name, theirs.Namespace, theirs.Name)
		}
		if SelectShare(own).Matches(k8slabels.Set(theirs.Labels)) || SelectShare(a).Matches(k8slabels.Set(mine.Labels)) ||
			!SelectShare(own).Matches(k8slabels.Set(mine.Labels)) || !SelectShare(a).Matches(k8slabels.Set(theirs.Labels)) {
			t.Errorf("%s: labels %v and %v are the same", what, mine.Labels, theirs.Labels)
		}
		if len(theirs.OwnerReferences) != 0 {
			t.Errorf("%s: no owner reference reaches into another namespace: %v", what, theirs.OwnerReferences)
		}
	}
}

func TestImageDeployment(t *testing.T) {
	in := FileServerInput{
		FileServer: builders.FileServer("ml", "training").Build(), ImageOn: "node-1",
		Images: Images{Server: "registry.example/server:2", Howdah: "registry.example/howdah:2", PullSecrets: []string{"registry"}},
	}
	in.FileServer.Spec.Placement = &v1alpha1.Placement{Tolerations: []corev1.Toleration{{Key: "storage", Operator: corev1.TolerationOpExists}}}
	golden(t, "image", []any{ImageDeployment(in, in.ImageOn)})
}

func TestPodsStayOutsideOfMeshesUnlessTheUserWantsThemInside(t *testing.T) {
	for name, tc := range map[string]struct {
		settings       *v1alpha1.PodSettings
		istio, linkerd string
	}{
		"nothing is set":              {nil, "false", "disabled"},
		"other labels":                {&v1alpha1.PodSettings{Labels: map[string]string{"team": "a"}}, "false", "disabled"},
		"the user wants them inside":  {&v1alpha1.PodSettings{Labels: map[string]string{"sidecar.istio.io/inject": "true"}}, "true", "disabled"},
		"by an annotation of Linkerd": {&v1alpha1.PodSettings{Annotations: map[string]string{"linkerd.io/inject": "enabled"}}, "false", "enabled"},
	} {
		t.Run(name, func(t *testing.T) {
			template := podTemplate(naming.SelectDataServers("fs"), tc.settings, nil, corev1ac.PodSpec())
			if istio, linkerd := template.Labels["sidecar.istio.io/inject"], template.Annotations["linkerd.io/inject"]; istio != tc.istio || linkerd != tc.linkerd {
				t.Errorf("Istio %q, Linkerd %q", istio, linkerd)
			}
		})
	}
}
