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
	corev1 "k8s.io/api/core/v1"
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
	// mountThere mounts the share from an address at a directory of the machine outside.
	mountThere = "mkdir -p /mnt/%[2]s && mount -t nfs4 -o vers=4.1,nconnect=16,hard,acdirmin=1,acdirmax=2 %[1]s:/beyond /mnt/%[2]s"
)

// establishedTo counts a kernel's connections to port 2049 of an address in its tables (/proc/net/tcp and tcp6).
func establishedTo(tables, address string) (count int) {
	for line := range strings.Lines(tables) {
		fields := strings.Fields(line)
		if len(fields) < 4 || fields[3] != "01" {
			continue
		}
		far, port, _ := strings.Cut(fields[2], ":")
		if port == fmt.Sprintf("%04X", v1alpha1.NFSPort) && addressInTable(far) == address {
			count++
		}
	}
	return count
}

// mountedAt are the addresses of the NFS mounts at and below a directory, in the text of /proc/mounts: those that the kernel uses
// (mount option addr).
func mountedAt(text, below string) (addresses []string) {
	for _, mount := range nfsMounts(text, below) {
		for option := range strings.SplitSeq(mount.options, ",") {
			if address, is := strings.CutPrefix(option, "addr="); is {
				addresses = append(addresses, address)
			}
		}
	}
	return addresses
}

// inMount is an address as mount takes it before a colon.
func inMount(address string) string {
	if strings.Contains(address, ":") {
		return "[" + address + "]"
	}
	return address
}

// familyOf is that of an address.
func familyOf(address string) corev1.IPFamily {
	if netip.MustParseAddr(address).Is4() {
		return corev1.IPv4Protocol
	}
	return corev1.IPv6Protocol
}

// ofFamily are the addresses of a family.
func ofFamily(addresses []string, family corev1.IPFamily) []string {
	return slices.DeleteFunc(slices.Clone(addresses), func(a string) bool { return familyOf(a) != family })
}

// A client outside Kubernetes, such as a Slurm node: it knows no way to pods and Services, and comes by load balancers.
var _ = Describe("A client outside the cluster", Label("outside"), Ordered, func() {
	var own []string // An address of each family of the nodes' network.
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
		own = strings.Fields(there(ctx, "ip -o addr show dev vec0 scope global | awk '{sub(\"/.*\", \"\", $4); print $4}'"))
		Expect(own).NotTo(BeEmpty())
		pool := map[corev1.IPFamily][]string{}
		for _, address := range own {
			for i := range 20 {
				pool[familyOf(address)] = append(pool[familyOf(address)], fmt.Sprint(address[:strings.LastIndexAny(address, ".:")+1], 200+i))
			}
		}
		fs := newFileServer(ctx, beyond, 2)
		fs.Spec.Network.LoadBalancer = &v1alpha1.LoadBalancer{
			Class: balancerClass, NodePorts: v1alpha1.NodePortsOmit, IPFamilyPolicy: corev1.IPFamilyPolicyPreferDualStack,
		}
		Expect(c.Create(ctx, fs)).To(Succeed())
		share := newShare(beyond, "/beyond", 1, "d{0..5}")
		share.Spec.FileServerRef.Name, share.Spec.ReclaimPolicy = beyond, v1alpha1.ReclaimDelete
		// It may write by its own address only: by that of a node it could not.
		share.Spec.Access = []v1alpha1.AccessRule{
			{Clients: own, AccessType: v1alpha1.AccessReadWrite},
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
		DeferCleanup(func(ctx SpecContext) {
			there(ctx, "for at in beyond beyond-other; do ! grep -q \" /mnt/$at \" /proc/mounts || umount -R /mnt/$at || exit 1; done")
		}, NodeTimeout(bound(time.Minute)))
	}, NodeTimeout(bound(6*time.Minute)))

	It("mounts, waits for a data server without an outside address, and is led to outside addresses only", func(ctx SpecContext) {
		Eventually(ctx, func() []string { return fileServerOf(ctx).Status.OutsideAddresses }).ShouldNot(BeEmpty())
		status := fileServerOf(ctx).Status
		output, err := tryOn(ctx, outsideMachine, fmt.Sprintf("ping -c 1 -W 2 %[1]s || timeout 3 bash -c '</dev/tcp/%[1]s/2049'", status.Address))
		Expect(err).To(HaveOccurred(), "the address inside must not be reached from outside: %s", output)
		there(ctx, mountThere, inMount(status.OutsideAddresses[0]), "beyond")
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
		mounted := mountedAt(there(ctx, "cat /proc/mounts"), "/mnt/beyond")
		AddReportEntry("mounts outside", fmt.Sprint(mounted), ReportEntryVisibilityAlways)
		family := familyOf(status.OutsideAddresses[0])
		for _, server := range status.Servers {
			Expect(server.OutsideAddresses).To(HaveLen(len(own)))
			address := ofFamily(server.OutsideAddresses, family)[0]
			Expect(mounted).To(ContainElement(address), "of %s", server.Name)
			Expect(mounted).NotTo(ContainElement(server.Address), "the address inside of %s", server.Name)
			Expect(establishedTo(there(ctx, "cat /proc/net/tcp /proc/net/tcp6"), address)).To(Equal(16), "connections to %s", server.Name)
		}
	}, SpecTimeout(bound(6*time.Minute)))

	It("is led to addresses of the family by which it came, if it has both", func(ctx SpecContext) {
		if len(own) < 2 {
			Skip("the machine outside has addresses of one family; make test-ipv6 FAMILY=Dual gives it both")
		}
		status := fileServerOf(ctx).Status
		Expect(status.OutsideAddresses).To(HaveLen(2))
		first, second := ownedBy(ctx, naming.DataServer(beyond, 0)), ownedBy(ctx, naming.DataServer(beyond, 1))
		for i, at := range []string{"beyond", "beyond-other"} {
			family := familyOf(status.OutsideAddresses[i])
			if i > 0 {
				there(ctx, mountThere, inMount(status.OutsideAddresses[i]), at)
			}
			there(ctx, "for d in %[2]s %[3]s; do echo %[1]s > /mnt/%[1]s/$d/by-%[1]s && ls /mnt/%[1]s/$d > /dev/null || exit 1; done", at, first, second)
			mounted := mountedAt(there(ctx, "cat /proc/mounts"), "/mnt/"+at)
			AddReportEntry(fmt.Sprintf("mounts by %s", family), fmt.Sprint(mounted), ReportEntryVisibilityAlways)
			Expect(len(mounted)).To(BeNumerically(">", 2))
			Expect(ofFamily(mounted, family)).To(Equal(mounted), "addresses of %s", family)
			for _, server := range status.Servers {
				address := ofFamily(server.OutsideAddresses, family)[0]
				Expect(mounted).To(ContainElement(address), "of %s", server.Name)
				Expect(establishedTo(there(ctx, "cat /proc/net/tcp /proc/net/tcp6"), address)).NotTo(BeZero(), "connections to %s by %s", server.Name, family)
			}
		}
		for _, directory := range []string{first, second} {
			Expect(there(ctx, "cat /mnt/beyond/%[1]s/by-beyond-other /mnt/beyond-other/%[1]s/by-beyond", directory)).To(Equal("beyond-other\nbeyond\n"))
		}
	}, SpecTimeout(bound(4*time.Minute)))

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
		Expect(mountedAt(shell(ctx, reader.Name, "cat /proc/mounts"), "/beyond")).To(ContainElement(fileServerOf(ctx).Status.Servers[0].Address))
	}, SpecTimeout(bound(6*time.Minute)))
})
