package integration

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/howdah/howdah/api/v1alpha1"
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
})

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
