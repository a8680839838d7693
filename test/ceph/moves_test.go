package ceph

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/plugin/view"
	"github.com/howdah/howdah/test/cluster"
)

// howdah runs the kubectl plugin and returns its output.
func howdah(ctx context.Context, arguments ...string) string {
	GinkgoHelper()
	command := exec.CommandContext(ctx, "go", append([]string{"run", "../../cmd/kubectl-howdah", "-n", c.Namespace}, arguments...)...)
	output, err := command.CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), "%v: %s", arguments, output)
	return string(output)
}

// ownerOf returns the data server that owns a share's directory.
func ownerOf(ctx context.Context, share, directory string) string {
	GinkgoHelper()
	for server, directories := range owners(ctx, share) {
		if slices.Contains(directories, directory) {
			return server
		}
	}
	return ""
}

// mountedFrom returns the address from which a client's kernel has mounted a directory, or "" if it has not mounted it.
func mountedFrom(ctx context.Context, pod, directory string) string {
	GinkgoHelper()
	for _, line := range strings.Split(sh(ctx, pod, "cat /proc/mounts"), "\n") {
		fields := strings.Fields(line)
		if len(fields) > 2 && fields[1] == mountPoint+"/"+directory {
			return strings.Trim(fields[0][:strings.LastIndex(fields[0], ":/")], "[]")
		}
	}
	return ""
}

// addressOf returns the address where clients reach a data server.
func addressOf(ctx context.Context, server string) string {
	GinkgoHelper()
	object := &internalv1.DataServer{}
	Expect(c.Get(ctx, server, object)).To(Succeed())
	return object.Spec.Address
}

// changeFileServer reads a FileServer and patches it.
func changeFileServer(ctx context.Context, name string, mutate func(*v1alpha1.FileServer)) {
	GinkgoHelper()
	fs := &v1alpha1.FileServer{}
	Expect(c.Get(ctx, name, fs)).To(Succeed())
	before := fs.DeepCopy()
	mutate(fs)
	Expect(c.Patch(ctx, fs, client.MergeFrom(before))).To(Succeed())
}

var _ = Describe("Directories that move between data servers", Ordered, Label("ceph"), func() {
	const (
		name   = "moving"
		share  = "moved"
		writer = "move-writer"
		late   = "move-late"
		worker = "move-worker"
		// Appends a line to a file every tenth of a second, with one descriptor that stays open.
		write = `exec 3>%[1]s || exit 1
			i=0; max=0; last=$(date +%%s%%N)
			while [ ! -e /tmp/stop ]; do
				echo "line $i" >&3 && sync -d %[1]s || exit 2
				now=$(date +%%s%%N); took=$(( (now-last)/1000000 )); [ $took -gt $max ] && max=$took
				last=$now; i=$((i+1)); sleep 0.1
			done
			exec 3>&-; rm -f /tmp/stop; echo $i $max >/tmp/result`
	)
	var fs *v1alpha1.FileServer

	// whileWriting runs do while a client appends to an open file in a directory. It returns how many lines the client wrote
	// and its longest pause.
	whileWriting := func(ctx context.Context, file string, do func()) (lines, longest int) {
		GinkgoHelper()
		done := make(chan error, 1)
		go func() {
			_, err := c.Shell(ctx, writer, fmt.Sprintf(write, file))
			done <- err
		}()
		Eventually(ctx, func(ctx context.Context) string { return sh(ctx, writer, "wc -c <%s 2>/dev/null || true", file) }).ShouldNot(HavePrefix("0"))
		do()
		time.Sleep(5 * time.Second)
		sh(ctx, writer, "touch /tmp/stop")
		Expect(<-done).NotTo(HaveOccurred(), "a write failed")
		_, err := fmt.Sscan(sh(ctx, writer, "cat /tmp/result"), &lines, &longest)
		Expect(err).NotTo(HaveOccurred())
		return lines, longest
	}

	// spread waits until the data servers own the given numbers of directories and no move is pending.
	spread := func(ctx context.Context, counts ...any) {
		GinkgoHelper()
		Eventually(ctx, func(ctx context.Context) []int {
			var counts []int
			for _, directories := range owners(ctx, share) {
				counts = append(counts, len(directories))
			}
			return counts
		}).Should(ConsistOf(counts...))
		Eventually(ctx, func(ctx context.Context) map[string]string {
			object := &v1alpha1.FileServer{}
			Expect(c.Get(ctx, name, object)).To(Succeed())
			return object.Annotations
		}).ShouldNot(Or(HaveKey(v1alpha1.MovesAnnotation), HaveKey(v1alpha1.RebalanceAnnotation)))
	}

	BeforeAll(func(ctx SpecContext) {
		fs = newFileServer(ctx, name, func(fs *v1alpha1.FileServer) { fs.Spec.Replicas = servers })
		removeAfterwards(fs, share)
		fmt.Fprint(GinkgoWriter, cephShares(ctx, "secret", name, share))
		Eventually(ctx, fileServerReady(name)).Should(Succeed())
		Expect(c.Create(ctx, &v1alpha1.FileShare{
			ObjectMeta: metav1.ObjectMeta{Name: share, Namespace: c.Namespace},
			Spec: v1alpha1.FileShareSpec{
				FileServerRef: v1alpha1.FileServerReference{Name: name}, Path: "/moved", Directories: []string{"d{0..5}"}, Mode: "0777",
			},
		})).To(Succeed())
		Eventually(ctx, func(ctx context.Context) error { return c.ShareReady(ctx, share) }).Should(Succeed())
		Expect(c.RunClient(ctx, cluster.ClientPod{Name: writer, Claims: map[string]string{mountPoint: share}})).To(Succeed())
		Expect(c.WaitPodReady(ctx, writer)).To(Succeed())
		sh(ctx, writer, "set -e; for i in 0 1 2 3 4 5; do echo data-$i >%s/d$i/file; done", mountPoint)
	}, NodeTimeout(limit))

	It("keeps a client with an open file at the old owner, and sends later clients to the new owner", func(ctx SpecContext) {
		from := ownerOf(ctx, share, "d0")
		to := map[string]string{name + "-0": name + "-1", name + "-1": name + "-2", name + "-2": name + "-0"}[from]
		file := mountPoint + "/d0/open"
		lines, longest := whileWriting(ctx, file, func() {
			Expect(mountedFrom(ctx, writer, "d0")).To(Equal(addressOf(ctx, from)))
			Expect(howdah(ctx, "move", share+"/d0", "--to", to)).To(ContainSubstring("Requested"))
			began := time.Now()
			Eventually(ctx, func(ctx context.Context) string { return ownerOf(ctx, share, "d0") }).Should(Equal(to))
			AddReportEntry("from the request to the directory's new owner", time.Since(began).Round(100*time.Millisecond).String(), ReportEntryVisibilityAlways)

			Expect(c.RunClient(ctx, cluster.ClientPod{Name: late, Claims: map[string]string{mountPoint: share}})).To(Succeed())
			Expect(c.WaitPodReady(ctx, late)).To(Succeed())
			Expect(sh(ctx, late, "cat %s/d0/file", mountPoint)).To(Equal("data-0\n"))
			Expect(mountedFrom(ctx, late, "d0")).To(Equal(addressOf(ctx, to)))
			Expect(mountedFrom(ctx, writer, "d0")).To(Equal(addressOf(ctx, from)), "the writer must have mounted the directory from its owner")
			// Both write into the same directory, and each sees what the other wrote.
			sh(ctx, late, "echo from-late >%s/d0/late", mountPoint)
			Eventually(ctx, func(ctx context.Context) string {
				output, _ := c.Shell(ctx, writer, fmt.Sprintf("cat %s/d0/late", mountPoint))
				return output
			}).Should(Equal("from-late\n"))
			sh(ctx, writer, "ls %s >/dev/null; stat %s/d0 >/dev/null", mountPoint, mountPoint)
			Expect(mountedFrom(ctx, writer, "d0")).To(Equal(addressOf(ctx, from)), "a lookup removed the mount of the directory")
		})
		AddReportEntry("longest pause of a client that writes and syncs while its directory moves", fmt.Sprintf("%d ms", longest), ReportEntryVisibilityAlways)
		Expect(strings.TrimSpace(sh(ctx, late, "wc -l <%s", file))).To(Equal(fmt.Sprint(lines)), "the number of lines in the file")
	}, SpecTimeout(limit))

	It("takes clients along where that is requested, and what they have open goes on at the old owner", func(ctx SpecContext) {
		old := mountedFrom(ctx, writer, "d0")
		to := name + "-" + map[string]string{addressOf(ctx, name+"-0"): "1", addressOf(ctx, name+"-1"): "2", addressOf(ctx, name+"-2"): "0"}[old]
		if ownerOf(ctx, share, "d0") == to {
			to = map[string]string{name + "-0": name + "-1", name + "-1": name + "-2", name + "-2": name + "-0"}[to]
		}
		file := mountPoint + "/d0/followed"
		lines, longest := whileWriting(ctx, file, func() {
			Expect(howdah(ctx, "move", share+"/d0", "--to", to, "--follow")).To(ContainSubstring("Requested"))
			began := time.Now()
			for _, pod := range []string{writer, late} {
				Eventually(ctx, func(ctx context.Context) string {
					Expect(sh(ctx, pod, "cat %s/d0/file", mountPoint)).To(Equal("data-0\n"))
					return mountedFrom(ctx, pod, "d0")
				}).Should(Equal(addressOf(ctx, to)), pod)
			}
			AddReportEntry("from the request until both clients use the new owner", time.Since(began).Round(100*time.Millisecond).String(), ReportEntryVisibilityAlways)
		})
		AddReportEntry("longest pause of a client that writes and syncs while it follows its directory", fmt.Sprintf("%d ms", longest), ReportEntryVisibilityAlways)
		Expect(strings.TrimSpace(sh(ctx, late, "wc -l <%s", file))).To(Equal(fmt.Sprint(lines)), "the number of lines in the file")
	}, SpecTimeout(limit))

	It("rebalances directories as the dry run showed, or as the operator plans it", func(ctx SpecContext) {
		shown := howdah(ctx, "rebalance", name, "--dry-run")
		fmt.Fprint(GinkgoWriter, shown)
		howdah(ctx, "rebalance", name)
		spread(ctx, 2, 2, 2)

		By("requesting it with an annotation, as Argo CD's action does")
		howdah(ctx, "move", share+"/"+owners(ctx, share)[name+"-0"][0], "--to", name+"-1")
		spread(ctx, 1, 3, 2)
		changeFileServer(ctx, name, func(fs *v1alpha1.FileServer) {
			metav1.SetMetaDataAnnotation(&fs.ObjectMeta, v1alpha1.RebalanceAnnotation, "100")
		})
		spread(ctx, 2, 2, 2)
	}, SpecTimeout(limit))

	It("rebalances directories by their size, and by their load", func(ctx SpecContext) {
		first := name + "-0"
		heavy := owners(ctx, share)[first]
		Expect(heavy).To(HaveLen(2), "the previous spec leaves two on each data server")
		for _, directory := range heavy {
			sh(ctx, writer, "dd if=/dev/urandom of=%s/%s/large bs=1M count=8 conv=fsync 2>/dev/null", mountPoint, directory)
		}
		plan := func(arguments ...string) (moves view.Moves) {
			GinkgoHelper()
			output := howdah(ctx, append([]string{"rebalance", name, "--dry-run", "-o", "json"}, arguments...)...)
			Expect(json.Unmarshal([]byte(output), &moves)).To(Succeed(), output)
			return moves
		}
		// Ceph's count of what is in a directory is some seconds late, and data servers cache it for half a minute.
		Eventually(ctx, func() []view.PlannedMove { return plan("--by", "bytes").Moves }, limit, "5s").Should(And(HaveLen(1), HaveEach(And(
			HaveField("From", first), HaveField("Path", BeElementOf(heavy)), HaveField("Weight", BeNumerically(">=", 8<<20))))))
		fmt.Fprint(GinkgoWriter, howdah(ctx, "rebalance", name, "--by", "bytes"))
		Eventually(ctx, func(ctx context.Context) string { return ownerOf(ctx, share, heavy[0]) + ownerOf(ctx, share, heavy[1]) }).ShouldNot(Equal(first + first))
		Expect(plan("--by", "bytes").Moves).To(BeEmpty(), "directories move although they are balanced")

		By("finding the busy data server")
		busy := ownerOf(ctx, share, heavy[0])
		if busy == first {
			busy = ownerOf(ctx, share, heavy[1])
		}
		Expect(owners(ctx, share)[busy]).To(HaveLen(3))
		Expect(c.RunClient(ctx, cluster.ClientPod{Name: worker, Claims: map[string]string{mountPoint: share}})).To(Succeed())
		Expect(c.WaitPodReady(ctx, worker)).To(Succeed())
		work := fmt.Sprintf("while [ ! -e /tmp/stop ]; do dd if=/dev/zero of=%s/%s/busy bs=64k count=16 conv=fsync 2>/dev/null || exit 1; done",
			mountPoint, owners(ctx, share)[busy][0])
		done := make(chan error, 1)
		go func() {
			_, err := c.Shell(ctx, worker, work)
			done <- err
		}()
		Eventually(ctx, func() []view.PlannedMove { return plan("--by", "load").Moves }, limit, "1s").Should(And(HaveLen(2), HaveEach(HaveField("From", busy))),
			"two of three directories move, as the load is known for a data server only")
		fmt.Fprint(GinkgoWriter, howdah(ctx, "plan", "rebalance", name, "--by", "load"))
		sh(ctx, worker, "touch /tmp/stop")
		Expect(<-done).NotTo(HaveOccurred(), "a write failed")
		howdah(ctx, "rebalance", name)
		spread(ctx, 2, 2, 2)
	}, SpecTimeout(limit))

	It("drains a data server that is removed, waits for its clients, and loses no data", func(ctx SpecContext) {
		last := name + "-2"
		directory := owners(ctx, share)[last][0]
		file := mountPoint + "/" + directory + "/kept"
		var replicas int32
		count := func(ctx context.Context) int32 {
			object := &v1alpha1.FileServer{}
			if err := c.Get(ctx, name, object); err == nil {
				replicas = ptr.Deref(object.Status.Replicas, 0)
			}
			return replicas
		}
		lines, longest := whileWriting(ctx, file, func() {
			began := time.Now()
			changeFileServer(ctx, name, func(fs *v1alpha1.FileServer) { fs.Spec.Replicas = 2 })
			Eventually(ctx, func(ctx context.Context) map[string][]string { return owners(ctx, share) }).ShouldNot(HaveKey(last))
			AddReportEntry("from spec.replicas to an empty data server", time.Since(began).Round(100*time.Millisecond).String(), ReportEntryVisibilityAlways)
			Consistently(ctx, count, 2*time.Minute, 5*time.Second).Should(BeEquivalentTo(3), "the data server was removed while a client had a file open")
		})
		AddReportEntry("longest pause of a client that writes and syncs while its data server is emptied", fmt.Sprintf("%d ms", longest), ReportEntryVisibilityAlways)

		By("removing it once the clients are gone")
		output, err := c.Kubectl(ctx, "delete", "pods", "-l", cluster.ClientLabel, "--grace-period=1", "--timeout=5m")
		Expect(err).NotTo(HaveOccurred(), output)
		began := time.Now()
		Eventually(ctx, count).Should(BeEquivalentTo(2))
		AddReportEntry("from the last client to a data server that goes", time.Since(began).Round(time.Second).String(), ReportEntryVisibilityAlways)
		Eventually(ctx, fileServerReady(name)).Should(Succeed())
		Expect(c.RunClient(ctx, cluster.ClientPod{Name: writer, Claims: map[string]string{mountPoint: share}})).To(Succeed())
		Expect(c.WaitPodReady(ctx, writer)).To(Succeed())
		Expect(sh(ctx, writer, "cat %s/d[0-5]/file", mountPoint)).To(Equal("data-0\ndata-1\ndata-2\ndata-3\ndata-4\ndata-5\n"))
		Expect(strings.TrimSpace(sh(ctx, writer, "wc -l <%s", file))).To(Equal(fmt.Sprint(lines)), "the number of lines in the file")
		Expect(mountedFrom(ctx, writer, directory)).To(BeElementOf(addressOf(ctx, name+"-0"), addressOf(ctx, name+"-1")))
	}, SpecTimeout(limit))

	It("places no new directories on a data server in maintenance, and reports when it is idle", func(ctx SpecContext) {
		resting := name + "-1"
		changeFileServer(ctx, name, func(fs *v1alpha1.FileServer) {
			fs.Spec.Drain = &v1alpha1.Drain{Servers: []string{resting}, TimeoutSeconds: ptr.To(int32(30))}
		})
		Eventually(ctx, func(ctx context.Context) map[string][]string { return owners(ctx, share) }).ShouldNot(HaveKey(resting))
		began := time.Now()
		sh(ctx, writer, "mkdir %s/new && echo new >%s/new/file", mountPoint, mountPoint)
		// It would take 300 s if the removed data server had left its sessions behind.
		within("a mkdir after a data server has gone for good", time.Since(began), 10*time.Second, 0)
		Expect(ownerOf(ctx, share, "new")).To(Equal(name + "-0"))
		Eventually(ctx, func(ctx context.Context) v1alpha1.DrainState {
			object := &v1alpha1.FileServer{}
			Expect(c.Get(ctx, name, object)).To(Succeed())
			at := slices.IndexFunc(object.Status.Servers, func(s v1alpha1.FileServerServerStatus) bool { return s.Name == resting })
			return object.Status.Servers[at].Drain.State
		}).Should(Equal(v1alpha1.DrainDone))
		changeFileServer(ctx, name, func(fs *v1alpha1.FileServer) { fs.Spec.Drain = nil })
		Eventually(ctx, fileServerReady(name)).Should(Succeed())
		Expect(howdah(ctx, "move", share+"/new", "--to", resting)).To(ContainSubstring("Requested"))
		Eventually(ctx, func(ctx context.Context) string { return ownerOf(ctx, share, "new") }).Should(Equal(resting))
	}, SpecTimeout(limit))
})
