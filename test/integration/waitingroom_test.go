package integration

import (
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

var _ = Describe("The Services of data servers", func() {
	It("get addresses at which clients of a data server without a pod can wait", func() {
		namespace := newNamespace()
		fs := builders.FileServer(namespace, "training").Replicas(2).Build()
		create(fs)
		runNamespaceServers(namespace, "training")
		rooms := func(server string) (addresses []string) {
			slice := &discoveryv1.EndpointSlice{}
			err := admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: naming.WaitingRoom(server, false)}, slice)
			Expect(client.IgnoreNotFound(err)).To(Succeed())
			for _, endpoint := range slice.Endpoints {
				addresses = append(addresses, endpoint.Addresses...)
			}
			return addresses
		}
		lead := func(want ...string) {
			GinkgoHelper()
			for _, server := range []string{"training-0", "training-1"} {
				Eventually(rooms, timeout).WithArguments(server).Should(Equal(want))
			}
		}
		lead("10.2.0.1", "10.2.0.2")

		By("being a slice of the Service, of no use while there is a pod")
		slice := exists(&discoveryv1.EndpointSlice{}, namespace, naming.WaitingRoom("training-1", false))
		Expect(metav1.GetControllerOf(slice).UID).To(Equal(fs.UID))
		Expect(slice.Labels).To(HaveKeyWithValue(discoveryv1.LabelServiceName, "training-1"))
		Expect(slice.Labels).To(HaveKeyWithValue(discoveryv1.LabelManagedBy, Not(HavePrefix("endpointslice"))), "Kubernetes' controllers leave it alone")
		Expect(slice.AddressType).To(Equal(discoveryv1.AddressTypeIPv4))
		Expect(slice.Ports).To(HaveLen(1))
		Expect(*slice.Ports[0].Name).To(Equal(exists(&corev1.Service{}, namespace, "training-1").Spec.Ports[0].Name))
		Expect(*slice.Ports[0].Port).To(BeEquivalentTo(v1alpha1.WaitingRoomPort))
		for _, endpoint := range slice.Endpoints {
			Expect(endpoint.Conditions).To(Equal(discoveryv1.EndpointConditions{Ready: ptr.To(false), Serving: ptr.To(true), Terminating: ptr.To(true)}))
		}

		By("following them")
		template := exists(&appsv1.Deployment{}, namespace, naming.NamespaceServers("training")).Spec.Template
		Expect(admin.Delete(ctx, exists(&corev1.Pod{}, namespace, "training-namespace-0"), client.GracePeriodSeconds(0))).To(Succeed())
		lead("10.2.0.2")
		runPod(namespace, "training-namespace-new", template, nil, "node-a", "10.2.9.1")
		lead("10.2.0.2", "10.2.9.1")
		pod := exists(&corev1.Pod{}, namespace, "training-namespace-new")
		pod.Status.PodIPs, pod.Status.PodIP = []corev1.PodIP{{IP: "10.2.9.2"}}, "10.2.9.2"
		Expect(admin.Status().Update(ctx, pod)).To(Succeed())
		lead("10.2.0.2", "10.2.9.2")
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse}}
		Expect(admin.Status().Update(ctx, pod)).To(Succeed())
		lead("10.2.0.2")

		By("staying there for a pod that starts and holds the port, whose own address kube-proxy does not take until the kubelet says that it is ready")
		changeNode("node-b", boot("boot-1-node-b"))
		startDataServers(namespace, "training")
		waiting := exists(&corev1.Pod{}, namespace, "training-1")
		waiting.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse}}
		Expect(admin.Status().Update(ctx, waiting)).To(Succeed())
		starting := exists(&internalv1.DataServer{}, namespace, "training-1")
		starting.Status = internalv1.DataServerStatus{PodIP: waiting.Status.PodIP, PodUID: string(waiting.UID), Conditions: []metav1.Condition{{
			Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: internalv1.ReasonStarting, LastTransitionTime: metav1.Now(),
		}}}
		Expect(admin.Status().Update(ctx, starting)).To(Succeed())
		Eventually(func() v1alpha1.ServerState { return serverStatus(namespace, "training-1").State }, timeout).Should(Equal(v1alpha1.ServerStarting))
		Consistently(rooms, "1s", "100ms").WithArguments("training-1").Should(Equal([]string{"10.2.0.2"}))

		By("being restored when it is changed or deleted")
		change(slice, func(s *discoveryv1.EndpointSlice) { s.Endpoints[0].Addresses = []string{"10.66.6.6"} })
		lead("10.2.0.2")
		Expect(admin.Delete(ctx, slice)).To(Succeed())
		lead("10.2.0.2")

		By("going with the data server")
		exists(fs, namespace, "training")
		change(fs, func(fs *v1alpha1.FileServer) { fs.Spec.Replicas = 1 })
		Eventually(rooms, timeout).WithArguments("training-1").Should(BeEmpty())
		Expect(rooms("training-0")).To(Equal([]string{"10.2.0.2"}))
	})
})
