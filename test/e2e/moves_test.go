package e2e

import (
	"context"
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/load"
	"github.com/howdah/howdah/internal/naming"
	"github.com/howdah/howdah/internal/placement"
	"github.com/howdah/howdah/test/cluster"
)

const (
	// movedShare is a share that moves, of the FileServer that all clients have mounted.
	movedShare = "moved"
	// shrinking is a FileServer of its own that is scaled in, with its share and its client: other FileServers have roots of Single shares,
	// which can't move.
	shrinking      = "shrinking"
	shrinkingMount = "/shrinking"
	// moveLimit is how long a move of some megabytes takes at most.
	moveLimit = 4 * time.Minute
)

// movingDirectory is the ShareDirectory of a directory.
func movingDirectory(ctx context.Context, server, share, path string) *internalv1.ShareDirectory {
	GinkgoHelper()
	directory := &internalv1.ShareDirectory{}
	Expect(c.Get(ctx, naming.Directory(server, share, path), directory)).To(Succeed())
	return directory
}

// editFileServer changes a FileServer.
func editFileServer(ctx context.Context, name string, change func(fs *v1alpha1.FileServer)) {
	GinkgoHelper()
	fs := &v1alpha1.FileServer{}
	Expect(c.Get(ctx, name, fs)).To(Succeed())
	before := fs.DeepCopy()
	change(fs)
	Expect(c.Patch(ctx, fs, client.MergeFrom(before))).To(Succeed())
}

// askToMove asks for the move of a directory of a share to another of the first two data servers, and returns that.
func askToMove(ctx context.Context, server, share, path string) (to string) {
	GinkgoHelper()
	to = naming.DataServer(server, 0)
	if movingDirectory(ctx, server, share, path).Spec.DataServerRef.Name == to {
		to = naming.DataServer(server, 1)
	}
	editFileServer(ctx, server, func(fs *v1alpha1.FileServer) {
		if fs.Annotations == nil {
			fs.Annotations = map[string]string{}
		}
		fs.Annotations[v1alpha1.MovesAnnotation] = placement.FormatRequests([]placement.Request{{Share: share, Path: path, To: to}})
	})
	return to
}

// moved waits until a directory is on a data server, and nothing is left to do.
func moved(ctx context.Context, server, share, path, to string) {
	GinkgoHelper()
	Eventually(ctx, func(ctx context.Context) string {
		directory := movingDirectory(ctx, server, share, path)
		return fmt.Sprintf("on %s, step %q", directory.Spec.DataServerRef.Name, directory.Spec.Move.Step)
	}).WithTimeout(bound(moveLimit)).Should(Equal(fmt.Sprintf("on %s, step %q", to, "")))
}

// stoppedAfterMoves ends a load that found no wrong data and had no errors. Work by paths only waits for a move (docs/operate/operations.md): alone a
// listing that is under way at the end of the move may be stale.
func stoppedAfterMoves(ctx context.Context, running *cluster.Load) load.Result {
	GinkgoHelper()
	result, err := running.Stop(ctx)
	Expect(err).NotTo(HaveOccurred())
	for _, d := range result.Directories {
		Expect(d.ErrorCount()-d.StaleListings).To(BeZero(), result.Text())
		Expect(d.Wrong()).To(BeZero(), result.Text())
	}
	return result
}

// killedAt kills a part as soon as the move is at a step, and tells whether it was there.
func killedAt(ctx context.Context, path string, step internalv1.MoveStep, part, from, to string) bool {
	GinkgoHelper()
	var pods corev1.PodList
	Expect(c.List(ctx, &pods, client.InNamespace(operator), client.MatchingLabels{"app.kubernetes.io/name": "howdah"})).To(Succeed())
	pod, program := pods.Items[0].Name, "howdah"
	node := pods.Items[0].Spec.NodeName
	if part != "the operator" {
		pod = map[string]string{"the source's supervisor": from, "the source's ganesha": from, "the target's supervisor": to}[part]
		if part == "the source's ganesha" {
			program = "ganesha.nfsd"
		}
		var one corev1.Pod
		Expect(c.Get(ctx, pod, &one)).To(Succeed())
		node = one.Spec.NodeName
	}
	hit := false
	Eventually(ctx, func(ctx context.Context) bool {
		directory := movingDirectory(ctx, fileServer, movedShare, path)
		hit = directory.Spec.Move.Step == step
		return hit || directory.Spec.DataServerRef.Name == to && directory.Spec.Move.ID == ""
	}).WithTimeout(bound(moveLimit)).WithPolling(20 * time.Millisecond).Should(BeTrue())
	_, err := c.Shell(ctx, killer(node).Name, fmt.Sprintf(kill, pod, program))
	Expect(err).NotTo(HaveOccurred())
	return hit
}

var _ = Describe("A directory of a volume", Label("volumes", "moves", volumesHaveSizes), Ordered, func() {
	pods := []string{clientA, clientB}

	BeforeAll(func(ctx SpecContext) {
		editFileServer(ctx, fileServer, func(fs *v1alpha1.FileServer) { fs.Spec.Moves.Copying = v1alpha1.MoveCopyingAllow })
		DeferCleanup(func(ctx SpecContext) {
			editFileServer(ctx, fileServer, func(fs *v1alpha1.FileServer) { fs.Spec.Moves = v1alpha1.Moves{} })
		}, NodeTimeout(bound(time.Minute)))
		share := newShare(movedShare, "/"+movedShare, 1, "d{0..2}")
		share.Spec.ReclaimPolicy = v1alpha1.ReclaimDelete
		Expect(c.Create(ctx, share)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { deleted(ctx, share) }, NodeTimeout(bound(2*time.Minute)))
		Eventually(ctx, func() error { return shareReady(ctx, movedShare) }).Should(Succeed())
	}, NodeTimeout(bound(3*time.Minute)))

	It("moves while two clients work in it by paths, and they lose nothing", func(ctx SpecContext) {
		const path = "d0"
		directories := []string{treeMount + "/" + movedShare + "/" + path}
		loads := map[string]*cluster.Load{}
		for _, pod := range pods {
			Eventually(ctx, func(ctx context.Context) error {
				_, err := c.Shell(ctx, pod, "ls "+directories[0])
				return err
			}).Should(Succeed())
			var err error
			loads[pod], err = c.StartLoad(ctx, pod, pod, directories, "--do", "files,opens", "--pause", "100ms", "--bytes", "16Mi")
			Expect(err).NotTo(HaveOccurred())
		}
		time.Sleep(3 * time.Second)
		for range 2 {
			moved(ctx, fileServer, movedShare, path, askToMove(ctx, fileServer, movedShare, path))
			time.Sleep(5 * time.Second)
		}
		var ledgers []string
		for _, pod := range pods {
			result := stoppedAfterMoves(ctx, loads[pod])
			AddReportEntry("the load in "+pod, result.Text(), ReportEntryVisibilityAlways)
			ledger, err := loads[pod].Ledger(ctx)
			Expect(err).NotTo(HaveOccurred())
			ledgers = append(ledgers, ledger)
		}
		for i, pod := range pods {
			audited(ctx, pods[1-i], directories, []string{ledgers[i]})
			shell(ctx, pod, "echo after > %[1]s/after-%[2]s && sync %[1]s/after-%[2]s", directories[0], pod)
		}
	}, SpecTimeout(bound(8*time.Minute)))

	It("waits while files are open and a lock is held, and moves when they are closed", func(ctx SpecContext) {
		const path = "d2"
		directories := []string{treeMount + "/" + movedShare + "/" + path}
		Eventually(ctx, func(ctx context.Context) error {
			_, err := c.Shell(ctx, clientA, "ls "+directories[0])
			return err
		}).Should(Succeed())
		running, err := c.StartLoad(ctx, clientA, "open", directories, "--pause", "100ms", "--bytes", "16Mi")
		Expect(err).NotTo(HaveOccurred())
		from := movingDirectory(ctx, fileServer, movedShare, path).Spec.DataServerRef.Name
		to := askToMove(ctx, fileServer, movedShare, path)
		Eventually(ctx, func(ctx context.Context) (string, error) {
			return c.Kubectl(ctx, "get", "events", "--field-selector", "reason=MoveDelayed", "-o", "jsonpath={.items[*].note}{.items[*].message}")
		}).WithTimeout(bound(moveLimit)).Should(ContainSubstring("open files"))
		Expect(movingDirectory(ctx, fileServer, movedShare, path).Spec.DataServerRef.Name).To(Equal(from))
		stopped(ctx, running)
		ledger, err := running.Ledger(ctx)
		Expect(err).NotTo(HaveOccurred())
		moved(ctx, fileServer, movedShare, path, to)
		audited(ctx, clientB, directories, []string{ledger})
	}, SpecTimeout(bound(8*time.Minute)))

	It("stays where it is if the move is cancelled", func(ctx SpecContext) {
		const path = "d1"
		const directory = treeMount + "/" + movedShare + "/" + path
		from := movingDirectory(ctx, fileServer, movedShare, path).Spec.DataServerRef.Name
		shell(ctx, clientA, "dd if=/dev/urandom of=%[1]s/file bs=1M count=20 2>/dev/null && sync %[1]s/file && md5sum %[1]s/file > /tmp/sum", directory)
		editFileServer(ctx, fileServer, func(fs *v1alpha1.FileServer) { fs.Spec.Moves.MegabytesPerSecond = 1 })
		askToMove(ctx, fileServer, movedShare, path)
		Eventually(ctx, func(ctx context.Context) internalv1.MoveStep {
			return movingDirectory(ctx, fileServer, movedShare, path).Spec.Move.Step
		}).Should(Equal(internalv1.MoveCopying))
		time.Sleep(3 * time.Second)
		editFileServer(ctx, fileServer, func(fs *v1alpha1.FileServer) { delete(fs.Annotations, v1alpha1.MovesAnnotation) })
		moved(ctx, fileServer, movedShare, path, from)
		shell(ctx, clientA, "md5sum -c /tmp/sum")
		editFileServer(ctx, fileServer, func(fs *v1alpha1.FileServer) { fs.Spec.Moves.MegabytesPerSecond = 0 })
	}, SpecTimeout(bound(6*time.Minute)))

	It("goes to the others when its data server is scaled in, and all data is there", func(ctx SpecContext) {
		fs := newFileServer(ctx, shrinking, serverCount)
		fs.Spec.Moves.Copying = v1alpha1.MoveCopyingAllow
		share := newShare(shrinking, "/"+shrinking, 1, "d{0..5}")
		share.Spec.FileServerRef.Name, share.Spec.ReclaimPolicy = shrinking, v1alpha1.ReclaimDelete
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: shrinking, Namespace: c.Namespace}}
		Expect(c.Create(ctx, fs)).To(Succeed())
		Expect(c.Create(ctx, share)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) {
			for _, object := range []client.Object{pod, share, fs} {
				Expect(c.Delete(ctx, object)).To(Succeed())
				Expect(c.WaitGone(ctx, object)).To(Succeed())
			}
		}, NodeTimeout(bound(3*time.Minute)))
		Eventually(ctx, func() error { return shareReady(ctx, shrinking) }).Should(Succeed())
		Expect(c.RunClient(ctx, cluster.ClientPod{
			Name: shrinking, Claims: map[string]string{shrinkingMount: shrinking}, NodeSelector: map[string]string{},
		})).To(Succeed())
		Expect(c.WaitPodReady(ctx, shrinking)).To(Succeed())
		shell(ctx, shrinking, `cd %s && for d in *; do echo $d > $d/name; dd if=/dev/urandom of=$d/data bs=1M count=2 2>/dev/null; done
			sync; md5sum */data > /tmp/sums; test $(wc -l < /tmp/sums) = 6`, shrinkingMount)
		editFileServer(ctx, shrinking, func(fs *v1alpha1.FileServer) { fs.Spec.Replicas = serverCount - 1 })
		last := naming.DataServer(shrinking, serverCount-1)
		Eventually(ctx, func(ctx context.Context) []string {
			var left []string
			for i := range 6 {
				directory := movingDirectory(ctx, shrinking, shrinking, fmt.Sprintf("d%d", i))
				if directory.Spec.DataServerRef.Name == last || directory.Spec.Move.ID != "" {
					left = append(left, directory.Spec.Path)
				}
			}
			return left
		}).WithTimeout(bound(2 * moveLimit)).Should(BeEmpty())
		Expect(shell(ctx, shrinking, "cd %s && cat */name", shrinkingMount)).To(Equal("d0\nd1\nd2\nd3\nd4\nd5\n"))
		shell(ctx, shrinking, "cd %s && md5sum -c /tmp/sums", shrinkingMount)
	}, SpecTimeout(bound(15*time.Minute)))

	It("moves though its servers and the operator are killed at each step", Label("move-kills"), func(ctx SpecContext) {
		startKillers(ctx)
		const path = "d0"
		directories := []string{treeMount + "/" + movedShare + "/" + path}
		var timeline []string
		DeferCleanup(func() { AddReportEntry("the kills", strings.Join(timeline, "\n"), ReportEntryVisibilityAlways) })
		running, err := c.StartLoad(ctx, clientA, "kills", directories, "--do", "files,opens", "--pause", "100ms", "--bytes", "16Mi")
		Expect(err).NotTo(HaveOccurred())
		for _, step := range []internalv1.MoveStep{internalv1.MoveFreezing, internalv1.MovePlacing, internalv1.MoveLeaving, internalv1.MoveCopying} {
			// In this order, as the directory goes there and back, each of the two data servers has its supervisor killed once in each step:
			// kubelets wait ever longer with a container that ends often.
			for _, part := range []string{"the source's supervisor", "the source's ganesha", "the target's supervisor", "the operator"} {
				By(fmt.Sprintf("%s is killed in step %s", part, step))
				from := movingDirectory(ctx, fileServer, movedShare, path).Spec.DataServerRef.Name
				began, to := time.Now(), askToMove(ctx, fileServer, movedShare, path)
				hit := killedAt(ctx, path, step, part, from, to)
				killed := time.Now()
				moved(ctx, fileServer, movedShare, path, to)
				// The load's stalls have times, too.
				timeline = append(timeline, fmt.Sprintf("%s: %s is killed in step %s (hit: %v), the move took %.0f s",
					killed.UTC().Format(time.TimeOnly), part, step, hit, time.Since(began).Seconds()))
				Eventually(ctx, allReady).WithTimeout(bound(recoveryAfterwards)).Should(Succeed())
			}
			// The operator has a new pod for the next step, for the same reason.
			_, err := c.Kubectl(ctx, "-n", operator, "delete", "pod", "-l", "app.kubernetes.io/name=howdah", "--wait=true")
			Expect(err).NotTo(HaveOccurred())
			_, err = c.Kubectl(ctx, "-n", operator, "rollout", "status", "deployment/howdah", "--timeout="+bound(2*time.Minute).String())
			Expect(err).NotTo(HaveOccurred())
		}
		result := stoppedAfterMoves(ctx, running)
		AddReportEntry("the load", result.Text(), ReportEntryVisibilityAlways)
		ledger, err := running.Ledger(ctx)
		Expect(err).NotTo(HaveOccurred())
		audited(ctx, clientB, directories, []string{ledger})
	}, SpecTimeout(bound(30*time.Minute)))
})
