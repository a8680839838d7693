package integration

import (
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/naming"
	"github.com/howdah/howdah/test/builders"
)

// balance plays a load balancer that gives a Service an address or a host name; "" takes them back.
func balance(namespace, name, address string) {
	GinkgoHelper()
	service := exists(&corev1.Service{}, namespace, name)
	before := service.DeepCopy()
	service.Status.LoadBalancer = corev1.LoadBalancerStatus{}
	switch {
	case address == "":
	case address[0] >= '0' && address[0] <= '9':
		service.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: address, IPMode: ptr.To(corev1.LoadBalancerIPModeVIP)}}
	default:
		service.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{Hostname: address}}
	}
	Expect(admin.Status().Patch(ctx, service, client.MergeFrom(before))).To(Succeed())
}

var _ = Describe("A FileServer with addresses for clients outside the cluster", func() {
	const lb = "example.com/lb"
	outsideOf := func(namespace, server string) func() []string {
		return func() []string {
			return exists(&internalv1.DataServer{}, namespace, server).Spec.OutsideAddresses
		}
	}
	balanced := func(class string) v1alpha1.LoadBalancer {
		return v1alpha1.LoadBalancer{Class: class, Annotations: map[string]string{"example.com/pool": "training"}}
	}

	It("has a LoadBalancer for each server beside the address inside, and leads clients to what that gives", func() {
		namespace := newNamespace()
		fs := builders.FileServer(namespace, "training").Replicas(2).LoadBalancer(balanced(lb)).Build()
		create(fs)
		runNamespaceServers(namespace, "training")
		runDataServers(namespace, "training")
		for _, name := range []string{"training", "training-0", "training-1"} {
			Expect(exists(&corev1.Service{}, namespace, name).Spec.Type).To(Equal(corev1.ServiceTypeClusterIP))
			service := exists(&corev1.Service{}, namespace, name+"-outside")
			Expect(service.Spec.Type).To(Equal(corev1.ServiceTypeLoadBalancer))
			Expect(service.Spec.ExternalTrafficPolicy).To(Equal(corev1.ServiceExternalTrafficPolicyLocal))
			Expect(service.Spec.LoadBalancerClass).To(HaveValue(Equal(lb)))
			Expect(service.Annotations).To(HaveKeyWithValue("example.com/pool", "training"))
		}
		pod := exists(&appsv1.Deployment{}, namespace, naming.NamespaceServers("training")).Spec.Template.Spec.Containers[0]
		Expect(pod.Args).To(ContainElement(fmt.Sprintf("--listen-outside=:%d", v1alpha1.NFSOutsidePort)))
		front := exists(&corev1.Service{}, namespace, "training-outside").Spec
		Expect(front.Ports[0].TargetPort.StrVal).To(Equal("nfs-outside"))
		Expect(front.SessionAffinity).To(Equal(corev1.ServiceAffinityClientIP))
		slice := exists(&discoveryv1.EndpointSlice{}, namespace, naming.WaitingRoom("training-0-outside", false))
		Expect(slice.Labels).To(HaveKeyWithValue(discoveryv1.LabelServiceName, "training-0-outside"))
		for _, endpoint := range slice.Endpoints {
			Expect(endpoint.NodeName).To(BeNil(), "no node may count as one with an endpoint of the data server")
		}
		Expect(expectCondition(namespace, "training", v1alpha1.FileServerOutsideAddressesAvailable, metav1.ConditionFalse, v1alpha1.ReasonOutsideAddressesPending)).
			To(Equal("0 of 3 Services of type LoadBalancer have an address; waiting for training-outside, training-0-outside, training-1-outside"))

		By("giving them one after the other")
		balance(namespace, "training-0-outside", "192.0.2.10")
		Eventually(outsideOf(namespace, "training-0"), timeout).Should(Equal([]string{"192.0.2.10"}))
		Expect(outsideOf(namespace, "training-1")()).To(BeEmpty())
		balance(namespace, "training-1-outside", "lb-1.example.com")
		Eventually(outsideOf(namespace, "training-1"), timeout).Should(Equal([]string{"lb-1.example.com"}))
		balance(namespace, "training-outside", "192.0.2.9")
		Expect(expectCondition(namespace, "training", v1alpha1.FileServerOutsideAddressesAvailable, metav1.ConditionTrue, v1alpha1.ReasonReady)).
			To(HaveSuffix("clients outside the cluster mount 192.0.2.9"))
		runEverything(namespace, "training")
		status := exists(&v1alpha1.FileServer{}, namespace, "training").Status
		Expect(status.OutsideAddresses).To(Equal([]string{"192.0.2.9"}))
		Expect(status.Address).To(Equal(exists(&corev1.Service{}, namespace, "training").Spec.ClusterIP))
		Expect(status.Servers[1].OutsideAddresses).To(Equal([]string{"lb-1.example.com"}))
		Expect(status.Servers[1].Address).To(Equal(exists(&corev1.Service{}, namespace, "training-1").Spec.ClusterIP))

		By("losing one: its clients wait, and are not led to another")
		balance(namespace, "training-0-outside", "")
		Eventually(outsideOf(namespace, "training-0"), timeout).Should(BeEmpty())

		By("refusing another class, which would be other addresses")
		exists(fs, namespace, "training")
		other := fs.DeepCopy()
		other.Spec.Network.LoadBalancer.Class = "example.com/other"
		expectInvalid(admin.Patch(ctx, other, client.MergeFrom(fs)), "spec.network.loadBalancer", "remove loadBalancer, and set it again with the new class")

		By("taking them away")
		change(fs, func(fs *v1alpha1.FileServer) { fs.Spec.Network = v1alpha1.Network{} })
		for _, name := range []string{"training-outside", "training-0-outside", "training-1-outside"} {
			isGone(&corev1.Service{}, namespace, name)
		}
		isGone(&discoveryv1.EndpointSlice{}, namespace, naming.WaitingRoom("training-0-outside", false))
		Eventually(outsideOf(namespace, "training-1"), timeout).Should(BeEmpty())
		Eventually(func() *metav1.Condition {
			return meta.FindStatusCondition(exists(&v1alpha1.FileServer{}, namespace, "training").Status.Conditions, v1alpha1.FileServerOutsideAddressesAvailable)
		}, timeout).Should(BeNil())
		Expect(exists(&v1alpha1.FileServer{}, namespace, "training").Status.OutsideAddresses).To(BeEmpty())
		Expect(exists(&corev1.Service{}, namespace, "training-0").Spec.ClusterIP).NotTo(BeEmpty())
	})

	It("replaces Services of another class, which can't be changed", func() {
		namespace := newNamespace()
		fs := builders.FileServer(namespace, "training").Replicas(1).LoadBalancer(balanced("example.com/before")).Build()
		create(fs)
		before := exists(&corev1.Service{}, namespace, "training-0-outside")
		// As load balancers do, this one takes its time to let a Service go.
		change(before, func(s *corev1.Service) { s.Finalizers = []string{"service.kubernetes.io/load-balancer-cleanup"} })
		balance(namespace, "training-0-outside", "192.0.2.10")
		Eventually(outsideOf(namespace, "training-0"), timeout).Should(Equal([]string{"192.0.2.10"}))
		// Removed, and set again before the operator sees it.
		change(fs, func(fs *v1alpha1.FileServer) { fs.Spec.Network = v1alpha1.Network{} })
		change(fs, func(fs *v1alpha1.FileServer) {
			lb := balanced("example.com/after")
			fs.Spec.Network.LoadBalancer = &lb
		})
		isGone(&corev1.Service{}, namespace, "training-0-outside")
		Eventually(outsideOf(namespace, "training-0"), timeout).Should(BeEmpty())
		change(before, func(s *corev1.Service) { s.Finalizers = nil })
		Eventually(func() string {
			service := &corev1.Service{}
			err := admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "training-0-outside"}, service)
			if apierrors.IsNotFound(err) || service.Spec.LoadBalancerClass == nil {
				return ""
			}
			return *service.Spec.LoadBalancerClass
		}, timeout).Should(Equal("example.com/after"))
	})
})
