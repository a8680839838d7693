package ceph

import (
	"context"
	"crypto/sha256"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/hotdirectories"
	"github.com/howdah/howdah/internal/naming"
	"github.com/howdah/howdah/test/cluster"
)

const (
	// flatFiles are in a flat directory, of flatBytes and some more each: the first is called flatFirst, so that all names are equally long.
	flatFiles, flatFirst, flatBytes = 300, 100, 6000
	// renamedFor bounds how long a client can find a file under a name that another client has given to another file. The client itself asks
	// at most every two seconds (acdirmax). A data server that kept names or attributes would give the old file for a minute.
	renamedFor = 20 * time.Second
	// hotRounds is how often clients write for others, countedEach how often each adds one to a number under a lock.
	hotRounds, countedEach = 12, 10
)

// writeFlat writes the files from one to before another, of a flat directory, and starts no process for each.
func writeFlat(from, to int) string {
	return fmt.Sprintf(`pad=$(head -c %d /dev/zero | tr '\0' x); i=%d
		while [ $i -lt %d ]; do printf 'file %%d %%s\n' $i "$pad" >$i || exit 1; i=$((i+1)); done`, flatBytes, from, to)
}

// flatSums are the files of a flat directory as sha256sum lists them.
func flatSums(from, to int) string {
	var list strings.Builder
	for i := from; i < to; i++ {
		fmt.Fprintf(&list, "%x  %d\n", sha256.Sum256(fmt.Appendf(nil, "file %d %s\n", i, strings.Repeat("x", flatBytes))), i)
	}
	return list.String()
}

// gotFrom is how many bytes a client's kernel has got from the data server of a directory (the fifth number of "bytes:").
func gotFrom(ctx context.Context, pod, directory string) int {
	GinkgoHelper()
	count, err := strconv.Atoi(strings.TrimSpace(sh(ctx, pod, `awk '$1 == "device" {at = $5} $1 == "bytes:" && at == "%s/%s" {print $6}' /proc/self/mountstats`, mountPoint, directory)))
	Expect(err).NotTo(HaveOccurred())
	return count
}

// Kernel clients, one on each node, in directories that three data servers serve. The hour after which a directory cools down
// (hotdirectories.HotFor, a constant) takes too long for this suite, so it writes an earlier time into the record.
var _ = Describe("Hot directories", Ordered, Label("ceph", "hot"), func() {
	const (
		name, share = "hot", "heated"
		// The share names flat, and found is found.
		flat, found = "flat", "found"
		findClients = 2
		// foundFiles are in found.
		foundFiles = 40
	)
	var (
		fs   *v1alpha1.FileServer
		pods = []string{"hot-user-0", "hot-user-1", "hot-user-2"}
		data = []string{name + "-0", name + "-1", name + "-2"}
		// nodeOf has the node of each client, and at the data server from which it has flat.
		nodeOf, at = map[string]string{}, map[string]string{}
	)
	// everyone has all clients do something at the same time. One that fails does not stop the others.
	everyone := func(do func(i int, pod string)) {
		GinkgoHelper()
		var all sync.WaitGroup
		for i, pod := range pods {
			all.Go(func() {
				defer GinkgoRecover()
				do(i, pod)
			})
		}
		all.Wait()
	}
	// in runs a script in a directory.
	in := func(ctx context.Context, pod, directory, script string) string {
		GinkgoHelper()
		return sh(ctx, pod, "cd %s/%s || exit 1\n%s", mountPoint, directory, script)
	}
	// serverOf is the data server from which a client has a directory.
	serverOf := func(ctx context.Context, pod, directory string) string {
		GinkgoHelper()
		address := mountedFrom(ctx, pod, directory)
		for _, server := range data {
			if addressOf(ctx, server) == address {
				return server
			}
		}
		Fail(fmt.Sprintf("%s has %s from %q, which is no data server's address", pod, directory, address))
		return ""
	}
	// serversByNode are the data servers by the node that each runs on.
	serversByNode := func(ctx context.Context) (map[string]string, error) {
		byNode := map[string]string{}
		for _, server := range data {
			object := &internalv1.DataServer{}
			if err := c.Get(ctx, server, object); err != nil {
				return nil, err
			}
			if len(object.Spec.NodeAddresses) == 0 {
				return nil, fmt.Errorf("DataServer %s has no spec.nodeAddresses yet", server)
			}
			byNode[object.Status.NodeName] = server
		}
		return byNode, nil
	}
	directoryAt := func(ctx context.Context, path string) *internalv1.ShareDirectory {
		GinkgoHelper()
		list := &internalv1.ShareDirectoryList{}
		Expect(c.List(ctx, list, client.InNamespace(c.Namespace), client.MatchingLabels{v1alpha1.FileShareLabel: share})).To(Succeed())
		for i := range list.Items {
			if list.Items[i].Spec.Path == path {
				return &list.Items[i]
			}
		}
		Fail("there is no ShareDirectory of " + path)
		return nil
	}
	hotTime := func(ctx context.Context, path string) *metav1.Time { return directoryAt(ctx, path).Status.HotTime }
	served := func(ctx context.Context) string {
		object := &v1alpha1.FileShare{}
		if err := c.Get(ctx, share, object); err != nil {
			return err.Error()
		}
		condition := cluster.Condition(object.Status.Conditions, v1alpha1.FileShareHotDirectoriesServed)
		return fmt.Sprintf("%s %s", condition.Status, condition.Message)
	}
	// closeToOpen has clients write in turns what all read at once.
	closeToOpen := func(ctx context.Context, directory string) {
		GinkgoHelper()
		from := map[string]string{}
		for _, pod := range pods {
			from[pod] = serverOf(ctx, pod, directory)
		}
		for round := range hotRounds {
			writer := pods[round%len(pods)]
			// As long as the one before in every other round: a size that is the same must not hide a change.
			text := fmt.Sprintf("round %02d of %s%s\n", round, writer, strings.Repeat(".", round/2%3))
			fresh := fmt.Sprintf("fresh-%d", round)
			in(ctx, writer, directory, fmt.Sprintf("printf '%[1]s' >shared && printf '%[1]s' >%[2]s && printf '%[1]s' >next && mv next renamed", text, fresh))
			everyone(func(_ int, reader string) {
				who := fmt.Sprintf("round %d: written by %s at %s, read by %s at %s", round, writer, from[writer], reader, from[reader])
				Expect(in(ctx, reader, directory, "cat shared "+fresh)).To(Equal(text+text), "%s: a file written over, and a new one", who)
				Eventually(ctx, func(ctx context.Context) (string, error) {
					return c.Shell(ctx, reader, fmt.Sprintf("cat %s/%s/renamed", mountPoint, directory))
				}).WithTimeout(renamedFor).Should(Equal(text), "%s: a file renamed over another", who)
			})
		}
	}

	BeforeAll(func(ctx SpecContext) {
		fs = newFileServer(ctx, name, func(fs *v1alpha1.FileServer) {
			fs.Spec.Replicas = servers
			// Each namespace server counts the clients of a directory for itself, and there are only as many clients as nodes. test/kernels has two.
			fs.Spec.NamespaceServers = &v1alpha1.NamespaceServers{Replicas: 1}
		})
		removeAfterwards(fs, share)
		fmt.Fprint(GinkgoWriter, cephShares(ctx, "secret", name, share))
		Eventually(ctx, fileServerReady(name)).Should(Succeed())
		Expect(c.Create(ctx, &v1alpha1.FileShare{
			ObjectMeta: metav1.ObjectMeta{Name: share, Namespace: c.Namespace},
			Spec: v1alpha1.FileShareSpec{
				FileServerRef: v1alpha1.FileServerReference{Name: name}, Path: "/" + share, Directories: []string{flat, found}, Mode: "0777",
				HotDirectories:     []v1alpha1.HotDirectories{{Paths: []string{flat}, DataServers: servers}},
				FindHotDirectories: v1alpha1.HotDirectorySearch{Clients: findClients, DataServers: servers},
			},
		})).To(Succeed())
		Eventually(ctx, func(ctx context.Context) error { return c.ShareReady(ctx, share) }).Should(Succeed())
		Eventually(ctx, served).WithTimeout(2 * time.Minute).Should(HavePrefix("True 1 directory is hot; no directory is hot because 2 clients use it"))
		Eventually(ctx, serversByNode).WithTimeout(2*time.Minute).Should(HaveLen(servers), "the specs need a data server on each of three nodes, and the scheduler only prefers that")
		for _, pod := range pods {
			Expect(c.RunClient(ctx, cluster.ClientPod{Name: pod, Claims: map[string]string{mountPoint: share}})).To(Succeed())
		}
		for _, pod := range pods {
			Expect(c.WaitPodReady(ctx, pod)).To(Succeed())
			object := &corev1.Pod{}
			Expect(c.Get(ctx, pod, object)).To(Succeed())
			nodeOf[pod] = object.Spec.NodeName
		}
	}, NodeTimeout(limit))

	It("send each client to the data server on its node, and all read and write the same files", func(ctx SpecContext) {
		const part = flatFiles / 3
		began := time.Now()
		everyone(func(i int, pod string) { in(ctx, pod, flat, writeFlat(flatFirst+i*part, flatFirst+(i+1)*part)) })
		AddReportEntry(fmt.Sprintf("%d files of %d bytes made in one directory, by three data servers", flatFiles, flatBytes), time.Since(began).Round(100*time.Millisecond).String(), ReportEntryVisibilityAlways)
		byNode, err := serversByNode(ctx)
		Expect(err).NotTo(HaveOccurred())
		clients := map[string]string{}
		for _, pod := range pods {
			at[pod] = serverOf(ctx, pod, flat)
			clients[at[pod]] = pod
			AddReportEntry(pod+" on "+nodeOf[pod], "has the directory from "+at[pod], ReportEntryVisibilityAlways)
		}
		Expect(clients).To(HaveLen(servers), "each of the three data servers has one client")
		for _, pod := range pods {
			Expect(at[pod]).To(Equal(byNode[nodeOf[pod]]), "the data server of %s, which is on %s", pod, nodeOf[pod])
		}

		want := flatSums(flatFirst, flatFirst+flatFiles)
		began = time.Now()
		everyone(func(_ int, pod string) {
			before := gotFrom(ctx, pod, flat)
			Expect(in(ctx, pod, flat, "sha256sum [0-9]*")).To(Equal(want), pod)
			// What a client wrote itself it has in its cache.
			Expect(gotFrom(ctx, pod, flat)-before).To(BeNumerically(">=", (flatFiles-part)*flatBytes), "bytes that %s got from %s", pod, at[pod])
		})
		AddReportEntry("all of them read by each of three clients", time.Since(began).Round(100*time.Millisecond).String(), ReportEntryVisibilityAlways)
	}, SpecTimeout(limit))

	It("are one directory for the clients of all their data servers", func(ctx SpecContext) {
		closeToOpen(ctx, flat)

		By("locking a file at one data server, and asking for the lock at the others")
		try := func(ctx context.Context, pod string) string {
			GinkgoHelper()
			return in(ctx, pod, flat, `exec 9<>lock; if flock -n -E 75 9 2>&1; then echo taken; else echo "refused with $?"; fi`)
		}
		for _, holder := range pods {
			done := make(chan error, 1)
			go func() {
				_, err := c.Shell(ctx, holder, fmt.Sprintf(`cd %s/%s && exec 9<>lock && flock -n 9 || exit 1
					touch /tmp/held; until [ -e /tmp/release ]; do sleep 0.2; done; rm /tmp/held /tmp/release`, mountPoint, flat))
				done <- err
			}()
			Eventually(ctx, func(ctx context.Context) error {
				_, err := c.Shell(ctx, holder, "test -e /tmp/held")
				return err
			}).WithTimeout(time.Minute).Should(Succeed(), "%s takes a lock that no client has", holder)
			for _, other := range pods {
				if other != holder {
					Expect(try(ctx, other)).To(Equal("refused with 75\n"), "%s at %s has the lock, and %s at %s asks", holder, at[holder], other, at[other])
				}
			}
			sh(ctx, holder, "touch /tmp/release")
			Expect(<-done).NotTo(HaveOccurred())
			for _, other := range pods {
				Eventually(ctx, try).WithArguments(other).WithTimeout(time.Minute).Should(Equal("taken\n"), "%s asks, after %s has given the lock back", other, holder)
			}
		}

		By("adding to a number under a lock")
		in(ctx, pods[0], flat, "echo 0 >number")
		everyone(func(_ int, pod string) {
			in(ctx, pod, flat, fmt.Sprintf(`i=0
				while [ $i -lt %d ]; do
					exec 9<>number.lock || exit 1
					until flock -n 9; do sleep 0.1; done
					read n <number && echo $((n+1)) >number || exit 1
					exec 9>&-; i=$((i+1))
				done`, countedEach))
		})
		for _, pod := range pods {
			Expect(in(ctx, pod, flat, "cat number")).To(Equal(fmt.Sprintf("%d\n", countedEach*len(pods))), pod)
		}
	}, SpecTimeout(limit))

	It("give a load at all their data servers no error, each the rival of the others", func(ctx SpecContext) {
		run := func(pod string) string { return "rivals-" + pod }
		loads := make([]*cluster.Load, len(pods))
		for i, pod := range pods {
			flags := []string{"--do", "files,records,opens,lock", "--bytes", "8Mi", "--pause", "100ms"}
			for _, other := range pods {
				if other != pod {
					flags = append(flags, "--rival", run(other))
				}
			}
			var err error
			loads[i], err = c.StartLoad(ctx, pod, run(pod), []string{mountPoint + "/" + flat}, flags...)
			Expect(err).NotTo(HaveOccurred())
		}
		time.Sleep(30 * time.Second)
		for i, pod := range pods {
			result, err := loads[i].Stop(ctx)
			Expect(err).NotTo(HaveOccurred())
			Expect(result.Verdict(0)).To(Succeed(), "the load in %s: %s", pod, result.Text())
			Expect(result.Directories[0].Operations).NotTo(BeZero(), result.Text())
			AddReportEntry(fmt.Sprintf("the load in %s, at %s", pod, at[pod]), fmt.Sprintf("%d operations, the longest %.1f s", result.Directories[0].Operations, result.Directories[0].Longest.Seconds),
				ReportEntryVisibilityAlways)
		}
	}, SpecTimeout(limit))

	It("are found when enough clients have entered, and later ones are sent elsewhere", func(ctx SpecContext) {
		owner := ownerOf(ctx, share, found)
		Expect(owner).NotTo(BeEmpty())
		byNode, err := serversByNode(ctx)
		Expect(err).NotTo(HaveOccurred())
		// The last client is on the owner's node: by nearness alone, or if those that came before did not count, it would be sent to the owner.
		var early []string
		late := ""
		for _, pod := range pods {
			if byNode[nodeOf[pod]] == owner {
				late = pod
			} else {
				early = append(early, pod)
			}
		}
		Expect(early).To(HaveLen(findClients), "the owner, %s, shares its node with one client: data servers by node: %v, clients: %v", owner, byNode, nodeOf)
		enter := func(pod, script string) string {
			GinkgoHelper()
			in(ctx, pod, found, script)
			return serverOf(ctx, pod, found)
		}
		notHot := func(when string) {
			GinkgoHelper()
			time.Sleep(time.Second) // It is recorded while the client gets its answer.
			Expect(hotTime(ctx, found)).To(BeNil(), when)
		}
		for range 2 {
			everyone(func(_ int, pod string) {
				Expect(sh(ctx, pod, "ls -la %s", mountPoint)).To(ContainSubstring(" " + found + "\n"))
			})
		}
		notHot("three clients have listed the directory above")
		Expect(enter(early[0], writeFlat(flatFirst, flatFirst+foundFiles))).To(Equal(owner), "the first client")
		notHot("one client has entered")
		Expect(enter(early[1], "sha256sum [0-9]* >/dev/null")).To(Equal(owner), "the second client")
		began := time.Now()
		Eventually(ctx, func(ctx context.Context) *metav1.Time { return hotTime(ctx, found) }).WithTimeout(time.Minute).ShouldNot(BeNil(), "two clients have entered")
		AddReportEntry("from the second client's entry until the directory is recorded as hot", time.Since(began).Round(100*time.Millisecond).String(), ReportEntryVisibilityAlways)
		Eventually(ctx, served).WithTimeout(time.Minute).Should(Equal(`True 1 directory is hot; found hot: "found"`))
		Expect(enter(late, "sha256sum [0-9]* >/dev/null")).NotTo(Equal(owner), "the third client, on the owner's node")

		want := flatSums(flatFirst, flatFirst+foundFiles)
		everyone(func(_ int, pod string) { Expect(in(ctx, pod, found, "sha256sum [0-9]*")).To(Equal(want), pod) })
		closeToOpen(ctx, found)
		for _, pod := range early {
			Expect(serverOf(ctx, pod, found)).To(Equal(owner), "%s came before the directory was hot", pod)
		}
	}, SpecTimeout(limit))

	// No rival here: a lock can be lost to a client of another data server when its own is killed (docs/operate/ceph.md).
	It("lose nothing when pods of their data servers are deleted, and the clients of those wait", func(ctx SpecContext) {
		owner := ownerOf(ctx, share, flat)
		others := []string{}
		for _, server := range data {
			if server != owner {
				others = append(others, server)
			}
		}
		loads := make([]*cluster.Load, len(pods))
		for i, pod := range pods {
			var err error
			loads[i], err = c.StartLoad(ctx, pod, "kept-"+pod, []string{mountPoint + "/" + flat}, "--do", "files,records,opens,lock", "--bytes", "8Mi", "--pause", "100ms")
			Expect(err).NotTo(HaveOccurred())
		}
		time.Sleep(5 * time.Second)
		uidOf := func(ctx context.Context, server string) (types.UID, error) {
			pod := &corev1.Pod{}
			err := c.Get(ctx, server, pod)
			return pod.UID, err
		}
		for _, deletion := range [][]string{{others[0], "--wait=false"}, {owner, "--wait=false", "--grace-period=0", "--force"}} {
			before, err := uidOf(ctx, deletion[0])
			Expect(err).NotTo(HaveOccurred())
			output, err := c.Kubectl(ctx, append([]string{"delete", "pod"}, deletion...)...)
			Expect(err).NotTo(HaveOccurred(), output)
			Eventually(ctx, uidOf).WithArguments(deletion[0]).ShouldNot(Equal(before))
			time.Sleep(5 * time.Second)
			Eventually(ctx, fileServerReady(name)).Should(Succeed())
			time.Sleep(12 * time.Second) // As long as a lease and a grace period at most, to see late effects.
		}
		what := map[string]string{
			others[0]: "the data server whose pod was deleted", owner: "the owner, whose pod was deleted by force", others[1]: "the data server that stayed",
		}
		ledgers := make([]string, len(pods))
		for i, pod := range pods {
			result, err := loads[i].Stop(ctx)
			Expect(err).NotTo(HaveOccurred())
			Expect(result.Verdict(0)).To(Succeed(), "the load in %s, at %s: %s", pod, what[at[pod]], result.Text())
			longest := time.Duration(result.Directories[0].Longest.Seconds * float64(time.Second)).Round(100 * time.Millisecond)
			if at[pod] == others[1] {
				within("longest stall of a client of "+what[at[pod]], longest, othersGoal, 0)
			} else {
				AddReportEntry("longest stall of a client of "+what[at[pod]], longest.String(), ReportEntryVisibilityAlways)
			}
			ledgers[i], err = loads[i].Ledger(ctx)
			Expect(err).NotTo(HaveOccurred())
		}
		want := flatSums(flatFirst, flatFirst+flatFiles)
		everyone(func(i int, pod string) {
			Expect(serverOf(ctx, pod, flat)).To(Equal(at[pod]), "%s stays at its data server", pod)
			// By another data server than the one that wrote it.
			writer := (i + 1) % len(pods)
			audit, err := c.Audit(ctx, pod, loads[writer].Directories, []string{ledgers[writer]})
			Expect(err).NotTo(HaveOccurred())
			Expect(audit.Verdict(0)).To(Succeed(), "what was written by %s at %s, as %s at %s reads it: %s", pods[writer], what[at[pods[writer]]], pod, what[at[pod]], audit.Text())
			Expect(in(ctx, pod, flat, "sha256sum [0-9]*")).To(Equal(want), pod)
		})
	}, SpecTimeout(limit))

	It("that were found cool down: who enters is sent to the owner, and who is elsewhere stays there", func(ctx SpecContext) {
		owner := ownerOf(ctx, share, found)
		before := map[string]string{}
		var early, late string
		for _, pod := range pods {
			if before[pod] = serverOf(ctx, pod, found); before[pod] == owner {
				early = pod
			} else {
				late = pod
			}
		}
		Expect(late).NotTo(BeEmpty(), "a client has the directory from another data server than its owner, %s: %v", owner, before)
		loads := make([]*cluster.Load, len(pods))
		for i, pod := range pods {
			var err error
			loads[i], err = c.StartLoad(ctx, pod, "cooling-"+pod, []string{mountPoint + "/" + found}, "--do", "files,records,opens,lock", "--bytes", "8Mi", "--pause", "100ms")
			Expect(err).NotTo(HaveOccurred())
		}

		By("having the namespace server forget its clients, and making the record older than an hour")
		output, err := c.Kubectl(ctx, "delete", "pods", "-l", labels.SelectorFromSet(naming.SelectNamespaceServers(name)).String())
		Expect(err).NotTo(HaveOccurred(), output)
		Eventually(ctx, fileServerReady(name)).Should(Succeed())
		directory := directoryAt(ctx, found)
		Expect(directory.Status.HotTime).NotTo(BeNil(), "the directory is hot while its record is younger")
		old := directory.DeepCopy()
		old.Status.HotTime = &metav1.Time{Time: time.Now().Add(-hotdirectories.HotFor - time.Minute)}
		Expect(c.Client.Status().Patch(ctx, old, client.MergeFrom(directory))).To(Succeed())
		began := time.Now()
		Eventually(ctx, hotTime).WithArguments(found).WithTimeout(3 * time.Minute).Should(BeNil())
		AddReportEntry("from a record older than an hour until the directory has one data server", time.Since(began).Round(100*time.Millisecond).String(), ReportEntryVisibilityAlways)
		Eventually(ctx, served).WithTimeout(time.Minute).Should(HavePrefix("True 1 directory is hot; no directory is hot because 2 clients use it"))

		By("entering with a new mount where nearness would lead elsewhere")
		want := flatSums(flatFirst, flatFirst+foundFiles)
		enter := func(node string) {
			GinkgoHelper()
			pod := "hot-new-" + node
			DeferCleanup(func(ctx SpecContext) { _, _ = c.Kubectl(ctx, "delete", "pod", pod, "--ignore-not-found") })
			Expect(c.RunClient(ctx, cluster.ClientPod{
				Name: pod, Claims: map[string]string{mountPoint: share}, Beside: true, NodeSelector: map[string]string{corev1.LabelHostname: node},
			})).To(Succeed())
			Expect(c.WaitPodReady(ctx, pod)).To(Succeed())
			Expect(in(ctx, pod, found, "sha256sum [0-9]*")).To(Equal(want), pod)
			Expect(serverOf(ctx, pod, found)).To(Equal(owner), "%s enters a directory that has cooled down", pod)
		}
		enter(nodeOf[late])
		closeToOpen(ctx, found)
		for i, pod := range pods {
			result, err := loads[i].Stop(ctx)
			Expect(err).NotTo(HaveOccurred())
			Expect(result.Verdict(0)).To(Succeed(), "the load in %s, at %s: %s", pod, before[pod], result.Text())
			Expect(serverOf(ctx, pod, found)).To(Equal(before[pod]), "%s keeps its mount", pod)
		}
		Expect(hotTime(ctx, found)).To(BeNil(), "one client has entered since")

		By("entering on another node, which makes it hot again")
		enter(nodeOf[early])
		Eventually(ctx, hotTime).WithArguments(found).WithTimeout(time.Minute).ShouldNot(BeNil())
	}, SpecTimeout(limit))
})
