package e2e

import (
	"context"
	"encoding/hex"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/naming"
	"github.com/howdah/howdah/test/cluster"
)

// onNodes is the share whose data servers are on the networks of their nodes.
const onNodes = "on-nodes"

// established has the remote addresses of a kernel's connections at a local port, of its tables /proc/net/tcp and tcp6, each once.
func established(tables string, port int32) (remote []string) {
	for _, connection := range connectionsAt(tables, port) {
		remote = append(remote, connection.remote)
	}
	slices.Sort(remote)
	return slices.Compact(remote)
}

type connection struct{ local, remote string }

// connectionsAt are the connections of a kernel at a local port, of its tables /proc/net/tcp and tcp6.
func connectionsAt(tables string, port int32) (found []connection) {
	for line := range strings.Lines(tables) {
		fields := strings.Fields(line)
		if len(fields) < 4 || fields[3] != "01" {
			continue
		}
		near, local, _ := strings.Cut(fields[1], ":")
		if number, err := strconv.ParseUint(local, 16, 16); err != nil || int32(number) != port {
			continue
		}
		far, _, _ := strings.Cut(fields[2], ":")
		found = append(found, connection{addressInTable(near), addressInTable(far)})
	}
	return found
}

// addressInTable reads an address of /proc/net/tcp and tcp6: words of 32 bits, in the byte order of the machine.
func addressInTable(text string) string {
	words, err := hex.DecodeString(text)
	if err != nil || len(words)%4 != 0 {
		return text
	}
	for i := 0; i < len(words); i += 4 {
		slices.Reverse(words[i : i+4])
	}
	address, ok := netip.AddrFromSlice(words)
	if !ok {
		return text
	}
	return address.Unmap().String()
}

// needNodesOfTheirOwn skips what two data servers on a node can't do: on its network they want the same ports.
func needNodesOfTheirOwn(ctx context.Context) {
	GinkgoHelper()
	pods, err := dataPods(ctx)
	Expect(err).NotTo(HaveOccurred())
	nodes := map[string]bool{}
	for _, pod := range pods {
		nodes[pod.Spec.NodeName] = true
	}
	if len(nodes) < serverCount {
		Skip("two data servers share a node, whose volumes may be there")
	}
}

// Traffic of fast networks takes no overlay: the pods of data servers are on the networks of their nodes, and what clients know stays.
var _ = Describe("Data servers on the networks of their nodes", Label("host-network"), Ordered, Serial, func() {
	var directories []string
	var addresses map[string]string
	addressesNow := func(ctx context.Context) map[string]string {
		GinkgoHelper()
		object, found := &v1alpha1.FileServer{}, map[string]string{}
		Expect(c.Get(ctx, fileServer, object)).To(Succeed())
		for _, server := range object.Status.Servers {
			found[server.Name] = server.Address
		}
		return found
	}
	// switched changes spec.network.hostNetwork, and waits until all data servers have done so.
	switched := func(ctx context.Context, to *v1alpha1.HostNetwork) {
		GinkgoHelper()
		changeFileServer(ctx, func(fs *v1alpha1.FileServer) { fs.Spec.Network.HostNetwork = to })
		serversUpdated(ctx, fileServer)
		pods, err := dataPods(ctx)
		Expect(err).NotTo(HaveOccurred())
		for name, pod := range pods {
			Expect(pod.Spec.HostNetwork).To(Equal(to != nil), "pod %s", name)
			address := Equal(pod.Status.HostIP)
			if to == nil {
				address = Not(address)
			}
			Expect(pod.Status.PodIP).To(address, "the address of pod %s", name)
		}
		Expect(addressesNow(ctx)).To(Equal(addresses), "what clients know stays")
	}

	BeforeAll(func(ctx SpecContext) {
		needNodesOfTheirOwn(ctx)
		addresses = addressesNow(ctx)
		directories = directoryOfEach(ctx, onNodes)
		DeferCleanup(func(ctx SpecContext) {
			changeFileServer(ctx, func(fs *v1alpha1.FileServer) { fs.Spec.Network.HostNetwork = nil })
			serversUpdated(ctx, fileServer)
		}, NodeTimeout(bound(8*time.Minute)))
	}, NodeTimeout(bound(4*time.Minute)))

	It("get there one after the other under load, and clients' connections come from node to node", func(ctx SpecContext) {
		underRandomLoad(ctx, "to the nodes", directories, 1, func() {
			switched(ctx, &v1alpha1.HostNetwork{})
			if nodeExec == "" {
				return
			}
			pods, err := dataPods(ctx)
			Expect(err).NotTo(HaveOccurred())
			from := &corev1.Pod{}
			Expect(c.Get(ctx, clientA, from)).To(Succeed())
			ports, ownNode := naming.DataServerPorts(firstPort), false
			for name, pod := range pods {
				// The load's kernel notices only after a moment that the last of the pods is another one.
				var remote []string
				Eventually(ctx, func(ctx context.Context) []string {
					remote = established(onNode(ctx, pod.Spec.NodeName, "cat /proc/net/tcp /proc/net/tcp6"), ports.NFS)
					return remote
				}).WithTimeout(bound(15*time.Second)).Should(ContainElement(from.Status.HostIP), "the load of %s on node %s, at %s", clientA, from.Spec.NodeName, name)
				AddReportEntry(fmt.Sprintf("%s at %s, port %d", name, pod.Status.HostIP, ports.NFS),
					"from "+strings.Join(remote, ", "), ReportEntryVisibilityAlways)
				ownNode = ownNode || pod.Spec.NodeName == from.Spec.NodeName
			}
			Expect(ownNode).To(BeTrue(), "one of the data servers is on the client's own node")
			tables := onNode(ctx, from.Spec.NodeName, "cat /proc/net/tcp /proc/net/tcp6")
			for name, address := range addresses {
				Expect(establishedTo(tables, address)).NotTo(BeZero(), "the client knows %s by its Service", name)
			}
		})
	}, SpecTimeout(bound(15*time.Minute)))

	It("are killed, and lose a pod, under load", func(ctx SpecContext) {
		underRandomLoad(ctx, "killed on the nodes", directories, 1, func() {
			killGaneshaOf(ctx, fileServer+"-0")
			time.Sleep(calm)
			pod := &corev1.Pod{}
			Expect(c.Get(ctx, fileServer+"-1", pod)).To(Succeed())
			_, err := c.Kubectl(ctx, "delete", "pod", pod.Name, "--grace-period=0", "--force")
			Expect(err).NotTo(HaveOccurred())
			serversUpdated(ctx, fileServer)
		})
	}, SpecTimeout(bound(12*time.Minute)))

	It("share a node with those of another FileServer that has other ports, and say so if it has the same", func(ctx SpecContext) {
		const neighbour = "neighbour"
		fs := newFileServer(ctx, neighbour, 1)
		fs.Spec.Network.HostNetwork = &v1alpha1.HostNetwork{}
		Expect(c.Create(ctx, fs)).To(Succeed())
		share := newShare(neighbour, "/"+neighbour, 1, "d")
		share.Spec.FileServerRef.Name, share.Spec.ReclaimPolicy = neighbour, v1alpha1.ReclaimDelete
		Expect(c.Create(ctx, share)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) {
			deleted(ctx, clientPod("beside-"+neighbour))
			deleted(ctx, share)
			deleted(ctx, fs)
		}, NodeTimeout(bound(4*time.Minute)))
		// Each node of the lab has a data server with these ports.
		var found metav1.Condition
		Eventually(ctx, func(ctx context.Context) (string, error) {
			err := c.Get(ctx, neighbour, fs)
			if now := meta.FindStatusCondition(fs.Status.Conditions, v1alpha1.FileServerServersAvailable); now != nil {
				found = *now
			}
			return found.Reason, err
		}).Should(Equal(v1alpha1.ReasonHostPortsTaken))
		AddReportEntry("the condition", found.Message, ReportEntryVisibilityAlways)
		Expect(found.Message).To(And(ContainSubstring("free ports"), ContainSubstring("TCP ports 20490 to 20494"), ContainSubstring("spec.network.hostNetwork.firstPort")))

		after := fs.DeepCopy()
		after.Spec.Network.HostNetwork.FirstPort = 20500
		Expect(c.Patch(ctx, after, client.MergeFrom(fs))).To(Succeed())
		Eventually(ctx, func(ctx context.Context) error { return shareReady(ctx, neighbour) }).WithTimeout(bound(3 * time.Minute)).Should(Succeed())
		server := &corev1.Pod{}
		Expect(c.Get(ctx, naming.DataServer(neighbour, 0), server)).To(Succeed())
		pods, err := dataPods(ctx)
		Expect(err).NotTo(HaveOccurred())
		var beside []string
		for _, pod := range pods {
			beside = append(beside, pod.Status.PodIP)
		}
		Expect(beside).To(ContainElement(server.Status.PodIP), "two data servers on the network of node %s", server.Spec.NodeName)
		// A client on that node, and one on another.
		Expect(c.RunClient(ctx, cluster.ClientPod{
			Name: "beside-" + neighbour, Claims: map[string]string{"/neighbour": neighbour}, Beside: true, NodeSelector: map[string]string{corev1.LabelHostname: server.Spec.NodeName},
		})).To(Succeed())
		Expect(c.WaitPodReady(ctx, "beside-"+neighbour)).To(Succeed())
		Expect(shell(ctx, "beside-"+neighbour, "echo here > /neighbour/d/file && cat /neighbour/d/file")).To(Equal("here\n"))
		for _, directory := range directories {
			Expect(shell(ctx, clientA, "echo there > %[1]s/file && cat %[1]s/file", directory)).To(Equal("there\n"))
		}
	}, SpecTimeout(bound(8*time.Minute)))

	It("come back from there under load", func(ctx SpecContext) {
		underRandomLoad(ctx, "back from the nodes", directories, 1, func() { switched(ctx, nil) })
	}, SpecTimeout(bound(15*time.Minute)))
})
