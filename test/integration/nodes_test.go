package integration

import (
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/naming"
	"github.com/howdah/howdah/test/builders"
)

var _ = Describe("The nodes of the cluster", func() {
	var namespace string
	BeforeEach(func() { namespace = newNamespace() })

	networks := func(server string) func() []string {
		return func() []string { return exists(&internalv1.DataServer{}, namespace, server).Spec.NodeNetworks }
	}
	// join makes a node and has it tell its addresses, as its kubelet does.
	join := func(builder *builders.NodeBuilder) *corev1.Node {
		GinkgoHelper()
		want := builder.Build()
		node := createNode(want.DeepCopy())
		DeferCleanup(func() { Expect(client.IgnoreNotFound(admin.Delete(ctx, node))).To(Succeed()) })
		before := node.DeepCopy()
		node.Status.Addresses = want.Status.Addresses
		Expect(admin.Status().Patch(ctx, node, client.MergeFrom(before))).To(Succeed())
		return node
	}

	It("are written to each data server once, as they come and go, and to no export", func() {
		fs := builders.FileServer(namespace, "training").Replicas(2).Build()
		fs.Spec.AdditionalNodeNetworks = []string{"10.9.0.0/16", "10.8.0.1"}
		create(fs)
		create(builders.FileShare(namespace, "data", "training").Build())
		for _, server := range []string{"training-0", "training-1"} {
			Eventually(networks(server), timeout, "50ms").Should(Equal([]string{"10.8.0.1/32", "10.9.0.0/16"}), server)
		}
		export := exists(&internalv1.ShareExport{}, namespace, naming.ShareExport("data", "training-0"))
		Expect(export.Spec.Access).To(HaveExactElements(HaveField("Clients", []string{v1alpha1.ClientNodes})))

		By("a node with an address, a bridge to pods and a tunnel")
		first := join(builders.Node("first").Address(corev1.NodeInternalIP, "192.168.7.2").Address(corev1.NodeHostName, "first").PodCIDRs("10.244.3.0/24"))
		for _, server := range []string{"training-0", "training-1"} {
			Eventually(networks(server), timeout, "50ms").Should(Equal([]string{"10.8.0.1/32", "10.9.0.0/16", "10.244.3.0/31", "192.168.7.2/32"}), server)
		}
		Eventually(func() *int32 { return exists(&v1alpha1.FileServer{}, namespace, "training").Status.NodeAddresses }, timeout, "50ms").
			Should(HaveValue(Equal(int32(3))))

		By("many nodes at once: few writes for each data server")
		generation := exists(&internalv1.DataServer{}, namespace, "training-0").Generation
		for i := range 16 {
			join(builders.Node(fmt.Sprint("crowd-", i)).Address(corev1.NodeInternalIP, fmt.Sprint("192.168.8.", i)))
		}
		Eventually(networks("training-0"), timeout, "50ms").Should(ContainElement("192.168.8.0/28"))
		rose := exists(&internalv1.DataServer{}, namespace, "training-0").Generation - generation
		Expect(rose).To(BeNumerically("<=", 8), "generations of a DataServer for 16 nodes")
		GinkgoWriter.Println("generations of a DataServer for 16 nodes that came together:", rose)
		Expect(exists(&internalv1.ShareExport{}, namespace, export.Name).ResourceVersion).To(Equal(export.ResourceVersion), "an export has nothing to do with nodes")

		By("a tunnel that a network plugin makes later, and another address")
		began := time.Now()
		change(first, func(n *corev1.Node) {
			metav1.SetMetaDataAnnotation(&n.ObjectMeta, "projectcalico.org/IPv4VXLANTunnelAddr", "10.245.1.64")
		})
		Eventually(networks("training-1"), timeout, "20ms").Should(And(ContainElement("10.245.1.64/32"), Not(ContainElement("10.244.3.0/31"))))
		GinkgoWriter.Println("from a change of a node to the DataServer:", time.Since(began))

		By("a node that goes")
		Expect(admin.Delete(ctx, first)).To(Succeed())
		Eventually(networks("training-1"), timeout, "50ms").ShouldNot(Or(ContainElement("192.168.7.2/32"), ContainElement("10.245.1.64/32")))

		By("the user's own networks")
		change(fs, func(fs *v1alpha1.FileServer) { fs.Spec.AdditionalNodeNetworks = []string{"192.168.0.0/16"} })
		Eventually(networks("training-0"), timeout, "50ms").Should(And(ContainElement("192.168.0.0/16"), Not(ContainElement(HavePrefix("192.168.8.")))))
	})

	It("are let in by the NetworkPolicies of FileServers whose shares say nothing else", func() {
		join(builders.Node("netted").Address(corev1.NodeInternalIP, "192.168.9.2").PodCIDRs("10.244.9.0/24"))
		create(builders.FileServer(namespace, "netted").Replicas(1).Build())
		blocks := func() string {
			var policy networkingv1.NetworkPolicy
			if err := admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: naming.NamespaceServers("netted")}, &policy); err != nil {
				return err.Error()
			}
			var found []string
			for _, rule := range policy.Spec.Ingress {
				if !isForNFS(rule) {
					continue
				}
				for _, peer := range rule.From {
					if peer.IPBlock != nil {
						found = append(found, peer.IPBlock.CIDR)
					}
				}
			}
			return strings.Join(found, " ")
		}
		create(builders.FileShare(namespace, "data", "netted").Build())
		Eventually(blocks, timeout, "50ms").Should(And(ContainSubstring("10.244.9.0/31"), ContainSubstring("192.168.9.2/32"), Not(ContainSubstring("0.0.0.0/0"))))
	})
})
