package e2e

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/naming"
	"github.com/howdah/howdah/test/cluster"
)

// outsideMachine is a machine in the nodes' network that is no node: HOWDAH_E2E_NODE_EXEC runs commands on it.
var outsideMachine = os.Getenv("HOWDAH_E2E_OUTSIDE_MACHINE")

const (
	beyond = "beyond"
	// written is a file that can be made again anywhere, to compare.
	written = "seq 1 3000000"
)

// establishedTo counts a kernel's connections to port 2049 of an IPv4 address in its table (/proc/net/tcp).
func establishedTo(table, address string) (count int) {
	ip := netip.MustParseAddr(address).As4()
	far := fmt.Sprintf("%02X%02X%02X%02X:%04X", ip[3], ip[2], ip[1], ip[0], v1alpha1.NFSPort)
	for _, line := range strings.Split(table, "\n") {
		if fields := strings.Fields(line); len(fields) > 3 && fields[2] == far && fields[3] == "01" {
			count++
		}
	}
	return count
}

// A client outside Kubernetes, such as a Slurm node: it knows no way to pods and Services, and comes by load balancers.
var _ = Describe("A client outside the cluster", Label("outside"), Ordered, func() {
	var own string
	var balances *balancer
	fileServerOf := func(ctx context.Context) *v1alpha1.FileServer {
		GinkgoHelper()
		fs := &v1alpha1.FileServer{}
		Expect(c.Get(ctx, beyond, fs)).To(Succeed())
		return fs
	}
	there := func(ctx context.Context, script string, args ...any) string {
		GinkgoHelper()
		return onNode(ctx, outsideMachine, fmt.Sprintf(script, args...))
	}
	// ownedBy is a directory of a data server.
	ownedBy := func(ctx context.Context, server string) string {
		GinkgoHelper()
		var paths []string
		owned, err := owners(ctx, beyond)
		Expect(err).NotTo(HaveOccurred())
		for path, owner := range owned {
			if owner == server {
				paths = append(paths, path)
			}
		}
		Expect(paths).NotTo(BeEmpty(), "directories of %s", server)
		return slices.Min(paths)
	}

	BeforeAll(func(ctx SpecContext) {
		if outsideMachine == "" {
			Skip("HOWDAH_E2E_OUTSIDE_MACHINE names no machine outside the cluster: make test-outside has one")
		}
		own = strings.TrimSpace(there(ctx, "ip -4 -o addr show dev vec0 | awk '{sub(\"/.*\", \"\", $4); print $4}'"))
		address, err := netip.ParseAddr(own)
		Expect(err).NotTo(HaveOccurred())
		network := own[:strings.LastIndex(address.String(), ".")]
		var pool []string
		for i := range 20 {
			pool = append(pool, fmt.Sprintf("%s.%d", network, 200+i))
		}
		fs := newFileServer(ctx, beyond, 2)
		fs.Spec.Network.LoadBalancer = &v1alpha1.LoadBalancer{Class: balancerClass, NodePorts: v1alpha1.NodePortsOmit}
		Expect(c.Create(ctx, fs)).To(Succeed())
		share := newShare(beyond, "/beyond", 1, "d{0..5}")
		share.Spec.FileServerRef.Name, share.Spec.ReclaimPolicy = beyond, v1alpha1.ReclaimDelete
		// It may write by its own address only: by that of a node it could not.
		share.Spec.Access = []v1alpha1.AccessRule{
			{Clients: []string{own}, AccessType: v1alpha1.AccessReadWrite},
			{Clients: []string{v1alpha1.ClientNodes}, AccessType: v1alpha1.AccessReadOnly},
		}
		Expect(c.Create(ctx, share)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) {
			deleted(ctx, share)
			deleted(ctx, fs)
		}, NodeTimeout(bound(5*time.Minute)))
		Eventually(ctx, func() error { return c.ShareReady(ctx, beyond) }).WithTimeout(bound(3 * time.Minute)).Should(Succeed())
		Expect(cluster.Expect(fileServerOf(ctx).Status.Conditions, v1alpha1.FileServerOutsideAddressesAvailable, metav1.ConditionFalse)).To(Succeed())
		balances = startBalancer(pool, naming.DataServer(beyond, 1)+"-outside")
		// Before the addresses go.
		DeferCleanup(func(ctx SpecContext) { there(ctx, "! grep -q ' /mnt/beyond ' /proc/mounts || umount -R /mnt/beyond") }, NodeTimeout(bound(time.Minute)))
	}, NodeTimeout(bound(6*time.Minute)))

	It("mounts, waits for a data server without an outside address, and is led to outside addresses only", func(ctx SpecContext) {
		Eventually(ctx, func() []string { return fileServerOf(ctx).Status.OutsideAddresses }).ShouldNot(BeEmpty())
		status := fileServerOf(ctx).Status
		output, err := tryOn(ctx, outsideMachine, fmt.Sprintf("ping -c 1 -W 2 %[1]s || timeout 3 bash -c '</dev/tcp/%[1]s/2049'", status.Address))
		Expect(err).To(HaveOccurred(), "the address inside must not be reached from outside: %s", output)
		there(ctx, "mkdir -p /mnt/beyond && mount -t nfs4 -o vers=4.1,nconnect=16,hard,acdirmin=1,acdirmax=2 %s:/beyond /mnt/beyond", status.OutsideAddresses[0])
		first, second := ownedBy(ctx, naming.DataServer(beyond, 0)), ownedBy(ctx, naming.DataServer(beyond, 1))
		there(ctx, "echo hello > /mnt/beyond/%s/hello", first)

		By("waiting for the one that has no address yet")
		_, err = tryOn(ctx, outsideMachine, fmt.Sprintf("timeout 10 ls /mnt/beyond/%s/.", second))
		Expect(err).To(HaveOccurred(), "it was led somewhere")
		Expect(cluster.Expect(fileServerOf(ctx).Status.Conditions, v1alpha1.FileServerOutsideAddressesAvailable, metav1.ConditionFalse)).To(Succeed())
		balances.release(naming.DataServer(beyond, 1) + "-outside")
		there(ctx, "timeout 240 sh -c 'echo hello > /mnt/beyond/%s/hello'", second)
		Eventually(ctx, func() error {
			return cluster.Expect(fileServerOf(ctx).Status.Conditions, v1alpha1.FileServerOutsideAddressesAvailable, metav1.ConditionTrue)
		}).Should(Succeed())

		By("having only outside addresses among its mounts, with 16 connections each")
		status = fileServerOf(ctx).Status
		// A connection is made when its turn comes.
		there(ctx, "for i in $(seq 40); do for d in %s %s; do echo $i > /mnt/beyond/$d/small$i || exit 1; done; done", first, second)
		mounts := there(ctx, "awk '$3 == \"nfs4\" {print $1, $2}' /proc/mounts")
		AddReportEntry("mounts outside", mounts, ReportEntryVisibilityAlways)
		for _, server := range status.Servers {
			Expect(server.OutsideAddresses).To(HaveLen(1))
			Expect(mounts).To(ContainSubstring(server.OutsideAddresses[0]+":/"), "of %s", server.Name)
			Expect(mounts).NotTo(ContainSubstring(server.Address+":/"), "the address inside of %s", server.Name)
			Expect(establishedTo(there(ctx, "cat /proc/net/tcp"), server.OutsideAddresses[0])).To(Equal(16), "connections to %s", server.Name)
		}
	}, SpecTimeout(bound(6*time.Minute)))

	It("goes on when ganesha is killed, and what it wrote is what a pod reads", func(ctx SpecContext) {
		first := ownedBy(ctx, naming.DataServer(beyond, 0))
		ended := make(chan error, 1)
		go func() {
			// Each is synced: what is confirmed is on the volume.
			output, err := tryOn(ctx, outsideMachine, fmt.Sprintf("for i in 1 2 3 4; do %s > /mnt/beyond/%s/part$i && sync /mnt/beyond/%s/part$i || exit 1; done", written, first, first))
			if err != nil {
				err = errors.Join(err, errors.New(output))
			}
			ended <- err
		}()
		time.Sleep(2 * time.Second)
		killGaneshaOf(ctx, naming.DataServer(beyond, 0))
		Eventually(ctx, ended).WithTimeout(bound(2 * time.Minute)).Should(Receive(Succeed()))
		want := strings.Fields(there(ctx, written+" | sha256sum"))[0]
		sums := there(ctx, "echo 3 > /proc/sys/vm/drop_caches; sha256sum /mnt/beyond/%s/part*", first)
		Expect(strings.Count(sums, want)).To(Equal(4), sums)

		By("a pod inside, which is led to the addresses inside")
		reader := cluster.ClientPod{Name: "reader-inside", Claims: map[string]string{"/beyond": beyond}, Beside: true, NodeSelector: map[string]string{}}
		Expect(c.RunClient(ctx, reader)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { deleted(ctx, clientPod(reader.Name)) }, NodeTimeout(bound(2*time.Minute)))
		Expect(c.WaitPodReady(ctx, reader.Name)).To(Succeed())
		Expect(strings.Count(shell(ctx, reader.Name, "sha256sum /beyond/%s/part*", first), want)).To(Equal(4))
		Expect(shell(ctx, reader.Name, "cat /proc/mounts")).To(ContainSubstring(fileServerOf(ctx).Status.Servers[0].Address + ":/"))
	}, SpecTimeout(bound(6*time.Minute)))
})
