package e2e

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/naming"
)

const (
	// onSecond is the share whose data servers are reached at the second addresses of their nodes.
	onSecond  = "on-second"
	firstPort = 20490
)

// secondNetworks are those that the nodes get beside the one that Kubernetes knows. They have it on the same card: what is tried is
// where packets go.
var secondNetworks = [2]string{"10.99.77.0/24", "fd00:10:99::/112"}

// secondNetwork has the family of a node's first address.
func secondNetwork(first string) netip.Prefix {
	network := secondNetworks[0]
	if netip.MustParseAddr(first).Is6() {
		network = secondNetworks[1]
	}
	return netip.MustParsePrefix(network)
}

// secondAddress has the same last bytes as the node's first one: those that are the node's own part of it.
func secondAddress(first string) string {
	network, own := secondNetwork(first), netip.MustParseAddr(first).AsSlice()
	copy(own, network.Addr().AsSlice()[:network.Bits()/8])
	address, _ := netip.AddrFromSlice(own)
	return address.String()
}

// uplinkOf is the interface with an address, in a shell.
const uplinkOf = "device=$(ip -o addr | awk '$4 ~ /^%[1]s\\//{print $2; exit}'); test -n \"$device\" || exit 1; "

// Files go by the nodes' second network: the Services of data servers lead to addresses there that Kubernetes does not know.
var _ = Describe("Data servers on the nodes' second network", Label("host-network"), Ordered, Serial, func() {
	var directories []string
	firsts := map[string]string{} // The nodes' first addresses, by name.
	var network, rules string     // The second network, and the program of its family's packet filter.
	onSecondNetwork := func(fs *v1alpha1.FileServer) {
		fs.Spec.Network.HostNetwork = &v1alpha1.HostNetwork{FirstPort: firstPort, AddressesIn: []string{network}}
	}
	address := func(ctx context.Context, node, what string) {
		GinkgoHelper()
		onNode(ctx, node, fmt.Sprintf(uplinkOf+`ip addr %[2]s %[3]s dev "$device"`, firsts[node], what,
			netip.PrefixFrom(netip.MustParseAddr(secondAddress(firsts[node])), netip.MustParsePrefix(network).Bits())))
	}
	// received is how many bytes came to the NFS port of a node's addresses since the last call.
	received := func(ctx context.Context, node string) (first, second uint64) {
		GinkgoHelper()
		table := onNode(ctx, node, fmt.Sprintf("%[1]s -w -nvxL INPUT && %[1]s -w -Z INPUT", rules))
		for line := range strings.Lines(table) {
			// Packets, bytes, [target,] protocol, [options,] in, out, source, destination, and the match.
			fields := strings.Fields(line)
			if !strings.Contains(line, fmt.Sprintf("dpt:%d", firstPort)) || len(fields) < 8 {
				continue
			}
			bytes, err := strconv.ParseUint(fields[1], 10, 64)
			Expect(err).NotTo(HaveOccurred(), line)
			if strings.Contains(line, " "+secondAddress(firsts[node])+" ") {
				second += bytes
			} else {
				first += bytes
			}
		}
		return first, second
	}
	count := func(ctx context.Context, node, what string) {
		GinkgoHelper()
		for _, to := range []string{firsts[node], secondAddress(firsts[node])} {
			onNode(ctx, node, fmt.Sprintf("%s -w %s INPUT -d %s -p tcp --dport %d", rules, what, to, firstPort))
		}
	}
	// goes expects that all that came to data servers since the last look came to the second addresses of their nodes.
	goes := func(ctx context.Context) {
		GinkgoHelper()
		pods, err := dataPods(ctx)
		Expect(err).NotTo(HaveOccurred())
		from := &corev1.Pod{}
		Expect(c.Get(ctx, clientA, from)).To(Succeed())
		for name, pod := range pods {
			node := pod.Spec.NodeName
			var first, second uint64
			Eventually(func() uint64 { // The load is slow where the storage is.
				newFirst, newSecond := received(ctx, node)
				first, second = first+newFirst, second+newSecond
				return second
			}, bound(time.Minute), time.Second).Should(BeNumerically(">", 1<<20), "bytes to the second address of node %s", node)
			found := slices.DeleteFunc(connectionsAt(onNode(ctx, node, "cat /proc/net/tcp /proc/net/tcp6"), firstPort), func(at connection) bool {
				return netip.MustParseAddr(at.local).IsLoopback() // The supervisor's own.
			})
			AddReportEntry(fmt.Sprintf("%s on %s", name, node), fmt.Sprintf("%d bytes to %s, %d to %s; connections %v", second, secondAddress(firsts[node]), first, firsts[node], found),
				ReportEntryVisibilityAlways)
			Expect(first).To(BeZero(), "bytes to the first address of node %s", node)
			Expect(found).NotTo(BeEmpty())
			for _, at := range found {
				Expect(at.local).To(Equal(secondAddress(firsts[node])), "a connection of %s", at.remote)
			}
			if node != from.Spec.NodeName {
				Expect(found).To(ContainElement(connection{secondAddress(firsts[node]), secondAddress(firsts[from.Spec.NodeName])}), "the load of %s comes from its node's second address", clientA)
			}
		}
	}
	// led expects that each Service leads to the node of its pod, and that Kubernetes' own slices lead no client to NFS beside it.
	led := func(ctx context.Context) {
		GinkgoHelper()
		object := &v1alpha1.FileServer{}
		Expect(c.Get(ctx, fileServer, object)).To(Succeed())
		for _, server := range object.Status.Servers {
			Expect(server.NodeAddress).To(Equal(secondAddress(firsts[server.NodeName])), "%s on %s", server.Name, server.NodeName)
			list := &discoveryv1.EndpointSliceList{}
			Expect(c.List(ctx, list, client.InNamespace(c.Namespace), client.MatchingLabels{discoveryv1.LabelServiceName: server.Name})).To(Succeed())
			kubernetes := 0
			for _, slice := range list.Items {
				if slice.Labels[discoveryv1.LabelManagedBy] == v1alpha1.EndpointSlicesManagedBy {
					continue
				}
				kubernetes += len(slice.Endpoints)
				for _, port := range slice.Ports {
					Expect(*port.Name).To(Equal(naming.PortMetrics), "of slice %s", slice.Name)
				}
			}
			Expect(kubernetes).To(Equal(1), "Kubernetes' own endpoint for metrics of %s", server.Name)
		}
	}
	switched := func(ctx context.Context, to func(*v1alpha1.FileServer)) {
		GinkgoHelper()
		changeFileServer(ctx, to)
		serversUpdated(ctx, fileServer)
	}

	BeforeAll(func(ctx SpecContext) {
		if nodeExec == "" {
			Skip("the nodes of this cluster can't be given second addresses")
		}
		needNodesOfTheirOwn(ctx)
		nodes := &corev1.NodeList{}
		Expect(c.Client.List(ctx, nodes)).To(Succeed())
		for _, node := range nodes.Items {
			for _, known := range node.Status.Addresses {
				if known.Type == corev1.NodeInternalIP && firsts[node.Name] == "" {
					firsts[node.Name] = known.Address // The family of the cluster's Services comes first.
				}
			}
			network, rules = secondNetwork(firsts[node.Name]).String(), "iptables"
			if strings.Contains(network, ":") {
				rules = "ip6tables"
			}
		}
		// First: of several IPv6 addresses on a card Linux takes the newest, so clients come from there at once.
		changeFileServer(ctx, func(fs *v1alpha1.FileServer) { fs.Spec.AdditionalNodeNetworks = []string{network} })
		for node := range firsts {
			address(ctx, node, "add")
			count(ctx, node, "-I")
		}
		DeferCleanup(func(ctx SpecContext) {
			switched(ctx, func(fs *v1alpha1.FileServer) { fs.Spec.Network.HostNetwork = nil })
			changeFileServer(ctx, func(fs *v1alpha1.FileServer) { fs.Spec.AdditionalNodeNetworks = nil })
			for node := range firsts {
				count(ctx, node, "-D")
				address(ctx, node, "del")
			}
		}, NodeTimeout(bound(8*time.Minute)))
		directories = directoryOfEach(ctx, onSecond)
	}, NodeTimeout(bound(4*time.Minute)))

	It("get there under load, and all of it comes by the second addresses", func(ctx SpecContext) {
		underRandomLoad(ctx, "to the second network", directories, 1, func() {
			switched(ctx, onSecondNetwork)
			led(ctx)
			for node := range firsts {
				received(ctx, node)
			}
			time.Sleep(calm)
			goes(ctx)
		})
	}, SpecTimeout(bound(15*time.Minute)))

	It("are killed, and lose a pod, under load, with the operator and without it", func(ctx SpecContext) {
		before, err := c.Kubectl(ctx, "get", "deployment/howdah", "-n", operator, "-o", "jsonpath={.spec.replicas}")
		Expect(err).NotTo(HaveOccurred(), before)
		operators := func(ctx context.Context, replicas string) {
			GinkgoHelper()
			_, err := c.Kubectl(ctx, "scale", "deployment/howdah", "-n", operator, "--replicas="+replicas)
			Expect(err).NotTo(HaveOccurred())
			_, err = c.Kubectl(ctx, "rollout", "status", "deployment/howdah", "-n", operator, "--timeout="+bound(3*time.Minute).String())
			Expect(err).NotTo(HaveOccurred())
		}
		lose := func(server string) {
			GinkgoHelper()
			pod := &corev1.Pod{}
			Expect(c.Get(ctx, server, pod)).To(Succeed())
			_, err := c.Kubectl(ctx, "delete", "pod", pod.Name, "--grace-period=0", "--force")
			Expect(err).NotTo(HaveOccurred())
			Eventually(ctx, func(ctx context.Context) (bool, error) {
				next := &corev1.Pod{}
				err := c.Get(ctx, server, next)
				return err == nil && next.UID != pod.UID && isReady(*next), client.IgnoreNotFound(err)
			}).WithTimeout(bound(3 * time.Minute)).Should(BeTrue())
			time.Sleep(calm)
		}
		underRandomLoad(ctx, "killed on the second network", directories, 1, func() {
			killGaneshaOf(ctx, fileServer+"-0")
			time.Sleep(calm)
			lose(fileServer + "-1")
			operators(ctx, "0")
			func() {
				defer operators(context.WithoutCancel(ctx), before)
				lose(fileServer + "-2")
			}()
			serversUpdated(ctx, fileServer)
			led(ctx)
			goes(ctx)
		})
	}, SpecTimeout(bound(15*time.Minute)))

	It("wait for an address that their node has lost, and say so", func(ctx SpecContext) {
		pod := &corev1.Pod{}
		Expect(c.Get(ctx, fileServer+"-1", pod)).To(Succeed())
		condition := func(ctx context.Context) (string, error) {
			object := &v1alpha1.FileServer{}
			if err := c.Get(ctx, fileServer, object); err != nil {
				return "", err
			}
			found := meta.FindStatusCondition(object.Status.Conditions, v1alpha1.FileServerServersAvailable)
			return found.Reason + ": " + found.Message, nil
		}
		underRandomLoad(ctx, "without an address", directories, 0, func() {
			address(ctx, pod.Spec.NodeName, "del")
			func() {
				defer address(context.WithoutCancel(ctx), pod.Spec.NodeName, "add")
				Eventually(ctx, condition).WithTimeout(bound(time.Minute)).Should(SatisfyAll(
					HavePrefix(v1alpha1.ReasonNodeAddressMissing), ContainSubstring("node %s has no address in %s", pod.Spec.NodeName, network),
					ContainSubstring("spec.placement"), ContainSubstring("spec.network.hostNetwork.addressesIn")))
			}()
			Eventually(ctx, condition).WithTimeout(bound(time.Minute)).Should(HavePrefix(v1alpha1.ReasonReady))
			led(ctx)
		})
	}, SpecTimeout(bound(10*time.Minute)))

	It("come back to the first addresses under load", func(ctx SpecContext) {
		underRandomLoad(ctx, "back to the first network", directories, 1, func() {
			switched(ctx, func(fs *v1alpha1.FileServer) { fs.Spec.Network.HostNetwork.AddressesIn = nil })
			for node := range firsts {
				received(ctx, node)
			}
			time.Sleep(calm)
			pods, err := dataPods(ctx)
			Expect(err).NotTo(HaveOccurred())
			for name, pod := range pods {
				first, second := received(ctx, pod.Spec.NodeName)
				Expect(second).To(BeZero(), "bytes to the second address of node %s", pod.Spec.NodeName)
				Expect(first).To(BeNumerically(">", 1<<20), "bytes to %s at the first address of node %s", name, pod.Spec.NodeName)
			}
		})
	}, SpecTimeout(bound(15*time.Minute)))
})
