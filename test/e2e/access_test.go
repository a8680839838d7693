package e2e

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/gateway"
	"github.com/howdah/howdah/internal/naming"
)

// unprivilegedUser is the user of a pod without rights.
const unprivilegedUser = int64(1000)

var _ = Describe("A share without access rules", Label("access"), func() {
	It("lets no pod in that speaks NFS by itself, at a namespace server or at a data server", func(ctx SpecContext) {
		everybody := newShare("everybody", "/everybody", 1, "d")
		everybody.Spec.Access = []v1alpha1.AccessRule{{Clients: []string{"0.0.0.0/0", "::/0"}}}
		everybody.Spec.ReclaimPolicy = v1alpha1.ReclaimDelete
		Expect(c.Create(ctx, everybody)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) {
			Expect(c.Delete(ctx, everybody)).To(Succeed())
			Expect(c.WaitGone(ctx, everybody)).To(Succeed())
		}, NodeTimeout(bound(time.Minute)))
		Eventually(ctx, func(ctx context.Context) error { return shareReady(ctx, everybody.Name) }).Should(Succeed())

		By("a pod of user 1000 without capabilities, with a client of NFS")
		pod := unprivilegedPod("unprivileged")
		Expect(c.Create(ctx, pod)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(c.Delete(ctx, pod)).To(Succeed()) }, NodeTimeout(bound(time.Minute)))
		Expect(c.WaitPodReady(ctx, pod.Name)).To(Succeed())
		Expect(c.Get(ctx, pod.Name, pod)).To(Succeed())
		program, err := os.Open(nfsClient(ctx, pod.Spec.NodeName))
		Expect(err).NotTo(HaveOccurred())
		defer func() { Expect(program.Close()).To(Succeed()) }()
		_, err = c.ShellInput(ctx, pod.Name, "cat > /tmp/nfsclient && chmod 755 /tmp/nfsclient", program)
		Expect(err).NotTo(HaveOccurred())

		door, targets := namespaceServers(ctx), []string{}
		for _, object := range []string{share, everybody.Name} {
			targets = append(targets, door+"/"+object)
		}
		for ordinal := range int32(serverCount) {
			server := &internalv1.DataServer{}
			Expect(c.Get(ctx, naming.DataServer(fileServer, ordinal), server)).To(Succeed())
			for _, address := range []string{server.Spec.Address, server.Status.PodIP} {
				for _, object := range []string{share, everybody.Name} {
					targets = append(targets, address+naming.ExportPseudo(object, 0))
				}
			}
		}
		output := shell(ctx, pod.Name, "id -u; grep CapEff /proc/self/status; cat /proc/sys/net/ipv4/ip_unprivileged_port_start; /tmp/nfsclient %s", strings.Join(targets, " "))
		fmt.Fprintf(GinkgoWriter, "a pod at %s:\n%s", pod.Status.PodIP, output)
		Expect(output).To(MatchRegexp(`^1000\nCapEff:\s*0000000000000000\n`))
		// From a port below 1024 as well: a pod's network has no ports for root alone. The share for everybody shows that the client works.
		for _, target := range targets {
			for _, port := range []string{"any", "reserved"} {
				want := " NFS4ERR_NOENT\n"
				if strings.Contains(target, everybody.Name) {
					want = " OK 1\n"
					if !strings.HasPrefix(target, door) {
						want = " OK" // One of the servers has the directory.
					}
				}
				Expect(output).To(ContainSubstring(target + " " + port + want))
			}
		}
	}, SpecTimeout(bound(3*time.Minute)))

	It("lets in what kubelets mount: every client of a data server has an address that is a node's", func(ctx SpecContext) {
		for _, pod := range []string{clientA, clientB} {
			shell(ctx, pod, "for d in /share/train/*/; do ls $d > /dev/null || exit 1; done")
		}
		// Namespace servers ask with NULL, which needs no right, whether clients can be sent there.
		var probing []string
		for _, pod := range namespacePods(ctx) {
			probing = append(probing, pod.Status.PodIP)
		}
		object := &v1alpha1.FileServer{}
		Expect(c.Get(ctx, fileServer, object)).To(Succeed())
		Expect(object.Status.NodeAddresses).To(HaveValue(BeNumerically(">=", 1)))
		for ordinal := range int32(serverCount) {
			server := &internalv1.DataServer{}
			Expect(c.Get(ctx, naming.DataServer(fileServer, ordinal), server)).To(Succeed())
			var nodes []netip.Prefix
			for _, network := range server.Spec.NodeNetworks {
				nodes = append(nodes, netip.MustParsePrefix(network))
			}
			// The server's own node comes by the pod's default gateway.
			for _, gateway := range gateway.Parse(shell(ctx, server.Name, "cat /proc/net/route"), shell(ctx, server.Name, "cat /proc/net/ipv6_route")) {
				nodes = append(nodes, netip.PrefixFrom(gateway, gateway.BitLen()))
			}
			clients := slices.DeleteFunc(nfsPeers(shell(ctx, server.Name, "cat /proc/net/tcp /proc/net/tcp6")), func(peer netip.AddrPort) bool {
				return slices.Contains(probing, peer.Addr().String())
			})
			Expect(clients).NotTo(BeEmpty())
			reserved := map[netip.Addr][2]int{}
			for _, peer := range clients {
				Expect(slices.ContainsFunc(nodes, func(n netip.Prefix) bool { return n.Contains(peer.Addr()) })).To(BeTrue(), "%s is in none of %v", peer, nodes)
				count := reserved[peer.Addr()]
				count[0]++
				if peer.Port() < 1024 {
					count[1]++
				}
				reserved[peer.Addr()] = count
			}
			fmt.Fprintf(GinkgoWriter, "%s on %s, which knows the nodes %v, has clients (connections, of these from ports below 1024): %v\n",
				server.Name, server.Status.NodeName, nodes, reserved)
		}
	}, SpecTimeout(bound(time.Minute)))
})

// unprivilegedPod has no capabilities and no mounts.
func unprivilegedPod(name string) *corev1.Pod {
	pod := tenantPod(c.Namespace, name, "none")
	pod.Spec.SecurityContext.RunAsUser = new(unprivilegedUser)
	pod.Spec.Volumes, pod.Spec.Containers[0].VolumeMounts = nil, nil
	return pod
}

// nfsClient builds test/nfsclient for a node.
func nfsClient(ctx context.Context, node string) string {
	GinkgoHelper()
	object := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}
	Expect(c.Client.Get(ctx, client.ObjectKeyFromObject(object), object)).To(Succeed())
	file := filepath.Join(GinkgoT().TempDir(), "nfsclient")
	build := exec.CommandContext(ctx, "go", "build", "-ldflags", "-s -w", "-o", file, "../nfsclient")
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+object.Status.NodeInfo.Architecture)
	output, err := build.CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), string(output))
	return file
}

// addressOf reads an address as the kernel shows it: each group of four bytes is a number of the machine's, which is little-endian.
func addressOf(raw []byte) (netip.Addr, bool) {
	for at := 0; at+4 <= len(raw); at += 4 {
		binary.BigEndian.PutUint32(raw[at:], binary.LittleEndian.Uint32(raw[at:]))
	}
	return netip.AddrFromSlice(raw)
}

// nfsPeers are the other ends of the connections to port 2049 in /proc/net/tcp and tcp6, but for the pod's own.
func nfsPeers(text string) (peers []netip.AddrPort) {
	const established, nfs = "01", ":0801"
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) < 4 || !strings.HasSuffix(fields[1], nfs) || fields[3] != established {
			continue
		}
		address, port, _ := strings.Cut(fields[2], ":")
		number, err := strconv.ParseUint(port, 16, 16)
		raw, err2 := hex.DecodeString(address)
		if err != nil || err2 != nil {
			continue
		}
		if peer, ok := addressOf(raw); ok && !peer.Unmap().IsLoopback() {
			peers = append(peers, netip.AddrPortFrom(peer.Unmap(), uint16(number)))
		}
	}
	return peers
}
