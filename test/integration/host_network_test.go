package integration

import (
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/naming"
	"github.com/howdah/howdah/test/builders"
)

var _ = Describe("A FileServer whose data servers are on the networks of their nodes", func() {
	It("gets there and back by its pods' template alone; the Services stay as they are", func() {
		namespace := newNamespace()
		fs := builders.FileServer(namespace, "training").Replicas(1).LoadBalancer(v1alpha1.LoadBalancer{}).Build()
		create(fs)
		runEverythingOutside(namespace, "training")
		before := exists(&appsv1.StatefulSet{}, namespace, "training").Spec.Template.Spec
		services := func() map[string]corev1.ServiceSpec {
			specs := map[string]corev1.ServiceSpec{}
			for _, name := range []string{"training", "training-0", "training-outside", "training-0-outside"} {
				specs[name] = exists(&corev1.Service{}, namespace, name).Spec
			}
			return specs
		}
		wanted := services()
		change := func(network *v1alpha1.HostNetwork) {
			GinkgoHelper()
			now := exists(&v1alpha1.FileServer{}, namespace, "training")
			after := now.DeepCopy()
			after.Spec.Network.HostNetwork = network
			Expect(admin.Patch(ctx, after, client.MergeFrom(now))).To(Succeed())
		}
		template := func() corev1.PodSpec {
			return exists(&appsv1.StatefulSet{}, namespace, "training").Spec.Template.Spec
		}

		change(&v1alpha1.HostNetwork{})
		Expect(exists(&v1alpha1.FileServer{}, namespace, "training").Spec.Network.HostNetwork.FirstPort).To(Equal(int32(20490)), "the default")
		Eventually(func() bool { return template().HostNetwork }, timeout).Should(BeTrue())
		spec := template()
		Expect(spec.DNSPolicy).To(Equal(corev1.DNSClusterFirstWithHostNet))
		Expect(spec.Containers[0].Args).To(ContainElement("--first-port=20490"))
		ports := map[string]int32{}
		for _, port := range spec.Containers[0].Ports {
			Expect(port.HostPort).To(Equal(port.ContainerPort))
			ports[port.Name] = port.ContainerPort
		}
		Expect(ports).To(Equal(map[string]int32{"nfs": 20490, "nfs-tls": 20491, "metrics": 20492, "manager": 20493, "ganesha": 20494}))

		change(&v1alpha1.HostNetwork{FirstPort: 20600})
		Eventually(func() []string { return template().Containers[0].Args }, timeout).Should(ContainElement("--first-port=20600"))
		Expect(template().Containers[0].Ports).To(HaveLen(5), "the earlier ports are gone")

		change(nil)
		Eventually(func() bool { return template().HostNetwork }, timeout).Should(BeFalse())
		Expect(template()).To(Equal(before))
		Expect(services()).To(Equal(wanted))
	})

	It("leads Services to the nodes' addresses in another network, pod by pod, there and back", func() {
		namespace := newNamespace()
		create(builders.FileServer(namespace, "training").Replicas(2).LoadBalancer(v1alpha1.LoadBalancer{}).HostNetwork(20490).Build())
		runEverythingOutside(namespace, "training")
		world := onNodeAddresses{namespace}
		inside := exists(&corev1.Service{}, namespace, "training-1").Spec
		world.leads("training-0", "no slice", "nfs")
		world.leads("training-1", "no slice", "nfs")

		By("changing nothing while the pods are those of before")
		world.set("10.20.0.0/16")
		Expect(exists(&appsv1.StatefulSet{}, namespace, "training").Spec.Template.Spec.Containers[0].Args).To(ContainElement("--addresses-in=10.20.0.0/16"))
		world.leads("training-1", "no slice", "nfs")

		By("leading nowhere until the new pod has reported")
		world.replace("training-1", "node-b")
		world.leads("training-1", "nowhere", "nfs-on-node")
		world.report("training-1", "10.20.0.12")
		world.leads("training-1", "10.20.0.12 ports 20490 20491 on node-b ready serving", "nfs-on-node")
		world.leads("training-0", "no slice", "nfs")
		Expect(exists(&corev1.Service{}, namespace, "training-1").Spec).To(Equal(inside), "the Service finds the ports of either pod by their names")
		Eventually(func() []string {
			var addresses []string
			for _, server := range exists(&v1alpha1.FileServer{}, namespace, "training").Status.Servers {
				addresses = append(addresses, server.NodeAddress)
			}
			return addresses
		}, timeout).Should(Equal([]string{"", "10.20.0.12"}))

		By("taking no other address")
		world.report("training-1", "192.168.0.12")
		world.leads("training-1", "nowhere", "nfs-on-node")
		world.report("training-1", "10.20.0.12")
		slice := exists(&discoveryv1.EndpointSlice{}, namespace, naming.NodeAddress("training-1", false))
		change(slice, func(s *discoveryv1.EndpointSlice) {
			s.Endpoints = []discoveryv1.Endpoint{{Addresses: []string{"10.66.6.6"}}}
		})
		world.leads("training-1", "10.20.0.12 ports 20490 20491 on node-b ready serving", "nfs-on-node")

		By("following the pod to another node, also while the FileServer is paused")
		change(exists(&v1alpha1.FileServer{}, namespace, "training"), func(fs *v1alpha1.FileServer) {
			fs.Annotations = map[string]string{v1alpha1.PausedAnnotation: "true"}
		})
		Expect(admin.Delete(ctx, exists(&corev1.Pod{}, namespace, "training-1"))).To(Succeed())
		world.leads("training-1", "10.20.0.12 ports 20490 20491 on node-b serving terminating", "nfs-on-node")
		world.readiness("training-1", corev1.ConditionFalse)
		world.leads("training-1", "10.20.0.12 ports 20490 20491 on node-b terminating", "nfs-on-node")
		world.replace("training-1", "node-c")
		world.leads("training-1", "nowhere", "nfs-on-node")
		world.report("training-1", "10.20.0.13")
		world.leads("training-1", "10.20.0.13 ports 20490 20491 on node-c ready serving", "nfs-on-node")
		change(exists(&v1alpha1.FileServer{}, namespace, "training"), func(fs *v1alpha1.FileServer) { fs.Annotations = nil })

		By("leading nowhere if two nodes have one address")
		world.replace("training-0", "node-a")
		world.report("training-0", "10.20.0.13")
		world.leads("training-0", "nowhere", "nfs-on-node")
		world.leads("training-1", "nowhere", "nfs-on-node")
		Eventually(func() string {
			return fileServerCondition(namespace, "training", v1alpha1.FileServerServersAvailable).Reason
		}, timeout).Should(Equal(v1alpha1.ReasonNodeAddressMissing))
		world.report("training-0", "10.20.0.11")
		world.leads("training-0", "10.20.0.11 ports 20490 20491 on node-a ready serving", "nfs-on-node")
		world.leads("training-1", "10.20.0.13 ports 20490 20491 on node-c ready serving", "nfs-on-node")

		By("leading back to each pod as it is replaced")
		world.set()
		world.leads("training-0", "10.20.0.11 ports 20490 20491 on node-a ready serving", "nfs-on-node")
		world.replace("training-0", "node-a")
		world.leads("training-0", "no slice", "nfs")
		world.leads("training-1", "10.20.0.13 ports 20490 20491 on node-c ready serving", "nfs-on-node")
		world.replace("training-1", "node-b")
		world.leads("training-1", "no slice", "nfs")
		Expect(exists(&corev1.Service{}, namespace, "training-1").Spec).To(Equal(inside))
	})
})

// onNodeAddresses plays the controllers and kubelets for data servers that are reached at addresses of their nodes.
type onNodeAddresses struct{ namespace string }

// set changes spec.network.hostNetwork.addressesIn, and waits until the template has it.
func (w onNodeAddresses) set(networks ...string) {
	GinkgoHelper()
	now := exists(&v1alpha1.FileServer{}, w.namespace, "training")
	after := now.DeepCopy()
	after.Spec.Network.HostNetwork.AddressesIn, after.Spec.AdditionalNodeNetworks = networks, networks
	Expect(admin.Patch(ctx, after, client.MergeFrom(now))).To(Succeed())
	name := naming.PortNFS
	if len(networks) > 0 {
		name = naming.PortNFSOnNode
	}
	Eventually(func() string {
		return exists(&appsv1.StatefulSet{}, w.namespace, "training").Spec.Template.Spec.Containers[0].Ports[0].Name
	}, timeout).Should(Equal(name))
}

// replace has another pod of the present template.
func (w onNodeAddresses) replace(server, node string) {
	GinkgoHelper()
	Expect(admin.Delete(ctx, exists(&corev1.Pod{}, w.namespace, server), client.GracePeriodSeconds(0))).To(Succeed())
	set := exists(&appsv1.StatefulSet{}, w.namespace, "training")
	runPod(w.namespace, server, withClaims(set, server), map[string]string{appsv1.StatefulSetPodNameLabel: server}, node, "10.1.0.77")
}

func (w onNodeAddresses) readiness(server string, ready corev1.ConditionStatus) {
	GinkgoHelper()
	pod := exists(&corev1.Pod{}, w.namespace, server)
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: ready}}
	Expect(admin.Status().Update(ctx, pod)).To(Succeed())
}

// report is what the supervisor in the present pod finds.
func (w onNodeAddresses) report(server string, addresses ...string) {
	GinkgoHelper()
	now := exists(&internalv1.DataServer{}, w.namespace, server)
	before := now.DeepCopy()
	now.Status.PodUID, now.Status.NetworkAddresses = string(exists(&corev1.Pod{}, w.namespace, server).UID), addresses
	Expect(admin.Status().Patch(ctx, now, client.MergeFrom(before))).To(Succeed())
}

// leads waits until the Service of a data server leads there, and the one for clients outside looks for the port of that name.
func (w onNodeAddresses) leads(server, where, outside string) {
	GinkgoHelper()
	Eventually(func() string {
		slice := &discoveryv1.EndpointSlice{}
		err := admin.Get(ctx, client.ObjectKey{Namespace: w.namespace, Name: naming.NodeAddress(server, false)}, slice)
		Expect(client.IgnoreNotFound(err)).To(Succeed())
		switch {
		case err != nil:
			return "no slice"
		case len(slice.Endpoints) == 0:
			return "nowhere"
		}
		Expect(slice.Labels).To(HaveKeyWithValue(discoveryv1.LabelServiceName, server))
		Expect(slice.Endpoints).To(HaveLen(1))
		found := slice.Endpoints[0].Addresses[0] + " ports"
		for _, port := range slice.Ports {
			found += fmt.Sprintf(" %d", *port.Port)
		}
		if node := slice.Endpoints[0].NodeName; node != nil {
			found += " on " + *node
		}
		for _, condition := range []struct {
			is   *bool
			word string
		}{{slice.Endpoints[0].Conditions.Ready, " ready"}, {slice.Endpoints[0].Conditions.Serving, " serving"}, {slice.Endpoints[0].Conditions.Terminating, " terminating"}} {
			if ptr.Deref(condition.is, false) {
				found += condition.word
			}
		}
		return found
	}, timeout).Should(Equal(where))
	Eventually(func() string {
		return exists(&corev1.Service{}, w.namespace, server+"-outside").Spec.Ports[0].TargetPort.String()
	}, timeout).Should(Equal(outside))
}

// runEverythingOutside is runEverything for a FileServer whose Services wait for a load balancer.
func runEverythingOutside(namespace, fileServer string) {
	GinkgoHelper()
	runNamespaceServers(namespace, fileServer)
	runDataServers(namespace, fileServer)
	exists(&corev1.Service{}, namespace, fileServer+"-0-outside")
	Eventually(func() metav1.ConditionStatus {
		loadConfigurations(namespace, fileServer)
		return fileServerCondition(namespace, fileServer, v1alpha1.FileServerServersAvailable).Status
	}, timeout, "100ms").Should(Equal(metav1.ConditionTrue))
}
