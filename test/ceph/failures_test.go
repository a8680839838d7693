package ceph

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/naming"
	"github.com/howdah/howdah/test/cluster"
)

// afterCutGoal is how long clients may wait after a cut: libcephfs tries to connect every 15 s at the least.
const afterCutGoal = 20 * time.Second

// cutFor is how long the network is cut. Ceph ends the sessions of clients that were away for five minutes;
// HOWDAH_E2E_CUT=330s tests that case.
func cutFor() time.Duration {
	GinkgoHelper()
	text := os.Getenv("HOWDAH_E2E_CUT")
	if text == "" {
		return time.Minute
	}
	duration, err := time.ParseDuration(text)
	Expect(err).NotTo(HaveOccurred(), "HOWDAH_E2E_CUT is how long the network is cut, as 330s")
	return duration
}

// cephPods returns the pods of Ceph's daemons by name.
func cephPods(ctx context.Context) map[string]corev1.Pod {
	GinkgoHelper()
	list := &corev1.PodList{}
	Expect(c.List(ctx, list, client.InNamespace(cephNamespace), client.MatchingLabels{"ceph": "daemon"})).To(Succeed())
	found := map[string]corev1.Pod{}
	for _, pod := range list.Items {
		found[pod.Name] = pod
	}
	return found
}

// killDaemon kills a daemon with SIGKILL from outside its pod.
func killDaemon(ctx context.Context, pod corev1.Pod, program string) {
	GinkgoHelper()
	output := onNode(ctx, pod.Spec.NodeName, fmt.Sprintf(
		`for p in /proc/[0-9]*; do [ "$(cat $p/comm 2>/dev/null)" = %s ] && kill -KILL ${p#/proc/} && echo killed; done; true`, program))
	Expect(output).To(ContainSubstring("killed"))
}

// scale sets how many daemons of a kind run.
func scale(ctx context.Context, set string, replicas int) {
	GinkgoHelper()
	output, err := c.Kubectl(ctx, "--namespace", cephNamespace, "scale", "statefulset", set, fmt.Sprintf("--replicas=%d", replicas))
	Expect(err).NotTo(HaveOccurred(), output)
}

// forceAway deletes a daemon's pod without waiting for its processes, which have ended already.
func forceAway(ctx context.Context, pod string) {
	GinkgoHelper()
	output, err := c.Kubectl(ctx, "--namespace", cephNamespace, "delete", "pod", pod, "--grace-period=0", "--force", "--wait=false")
	Expect(err).NotTo(HaveOccurred(), output)
}

// activeMDS returns the MDS that has a rank now, or "" and 0 if there is none.
func activeMDS(ctx context.Context, rank int) (name string, gid int64) {
	GinkgoHelper()
	return mdsOf(ctx, rank, "up:active")
}

// mdsOf returns the MDS that has or follows a rank, in the given state. Its gid is new after each start: an MDS that was
// killed can be back within a second and take the same rank again.
func mdsOf(ctx context.Context, rank int, state string) (name string, gid int64) {
	GinkgoHelper()
	var dump struct {
		FileSystems []struct {
			Map struct {
				Info map[string]struct {
					GID   int64  `json:"gid"`
					Name  string `json:"name"`
					Rank  int    `json:"rank"`
					State string `json:"state"`
				} `json:"info"`
			} `json:"mdsmap"`
		} `json:"filesystems"`
	}
	Expect(json.Unmarshal([]byte(admin.must(ctx, toMon("fs dump", request{}))), &dump)).To(Succeed())
	for _, fs := range dump.FileSystems {
		for _, info := range fs.Map.Info {
			if info.Rank == rank && info.State == state {
				return info.Name, info.GID
			}
		}
	}
	return "", 0
}

func cephWell(ctx context.Context) {
	GinkgoHelper()
	Eventually(ctx, func(ctx context.Context) string {
		var health struct {
			Status string         `json:"status"`
			Checks map[string]any `json:"checks"`
		}
		Expect(json.Unmarshal([]byte(admin.must(ctx, toMon("health", request{"detail": "detail"}))), &health)).To(Succeed())
		return fmt.Sprint(health.Status, health.Checks)
	}).WithPolling(time.Second).Should(HavePrefix("HEALTH_OK"))
}

// cut drops all packets between a pod and Ceph, in the pod's network namespace; joined removes these rules.
const (
	inNetwork = `for ns in /run/netns/*; do
		nsenter --net=$ns ip -4 -o addr | grep -q ' %[1]s/' || continue
		for ceph in %[2]s; do
			nsenter --net=$ns iptables -w %[3]s OUTPUT -d $ceph -j DROP && nsenter --net=$ns iptables -w %[3]s INPUT -s $ceph -j DROP || exit 1
		done
		echo done
	done`
	cut, joined = "-I", "-D"
)

var _ = Describe("A FileServer whose Ceph fails", Ordered, ContinueOnFailure, Label("ceph", "failures"), func() {
	const (
		name     = "failing"
		share    = "failing"
		writer   = "failing-client"
		reader   = "failing-reader"
		plain    = "failing-fuse"
		throughB = "through Howdah (kernel NFS, 3 data servers)"
		directB  = "a plain client (ceph-fuse)"
	)
	var (
		users []user
		// monNode has the only monitor and the NFS client, fuseNode the plain client; failingNode is the third node.
		monNode, fuseNode, failingNode string
		// mount returns the command that mounts the plain client's directory below /mnt.
		mount func(at string) string
	)
	storage := func(ctx context.Context) string {
		found := storageOf(ctx, name)
		return fmt.Sprintf("%s %s %s", found.Status, found.Reason, found.Message)
	}
	shareReady := func(ctx context.Context) string {
		object := &v1alpha1.FileShare{}
		if err := c.Get(ctx, share, object); err != nil {
			return err.Error()
		}
		found := cluster.Condition(object.Status.Conditions, v1alpha1.ConditionReady)
		return fmt.Sprintf("%s %s %s", found.Status, found.Reason, found.Message)
	}
	// waitFor waits until a condition contains the wanted texts, and adds the time and the text to the report.
	waitFor := func(ctx context.Context, run, who string, says func(context.Context) string, want ...string) {
		GinkgoHelper()
		began := time.Now()
		last := ""
		Eventually(ctx, func(ctx context.Context) string {
			last = says(ctx)
			return last
		}).WithTimeout(2 * time.Minute).Should(containing(want...))
		AddReportEntry(run+": "+who+" says after "+time.Since(began).Round(time.Second).String(), last, ReportEntryVisibilityAlways)
	}
	mended := func(ctx context.Context) {
		GinkgoHelper()
		Eventually(ctx, storage).Should(HavePrefix("True Ready"))
		Eventually(ctx, fileServerReady(name)).Should(Succeed())
		Eventually(ctx, func(ctx context.Context) error { return c.ShareReady(ctx, share) }).Should(Succeed())
	}

	BeforeAll(func(ctx SpecContext) {
		if nodeExec == "" {
			Skip("HOWDAH_E2E_NODE_EXEC is not set: the command that runs a command on a node (hack/e2e.sh sets it for the lab)")
		}
		monNode = cephPods(ctx)["ceph-mon-0"].Spec.NodeName
		nodes := &corev1.NodeList{}
		Expect(c.List(ctx, nodes)).To(Succeed())
		operators := &corev1.PodList{}
		Expect(c.List(ctx, operators, client.InNamespace("howdah-system"), client.MatchingLabels{"app.kubernetes.io/name": "howdah"})).To(Succeed())
		var others []string
		for _, node := range nodes.Items {
			if node.Name != monNode {
				others = append(others, node.Name)
			}
		}
		Expect(others).To(HaveLen(2))
		// The operator must stay to report the failure. Ceph's manager must stay, or quotas and new shares would wait as well.
		weight := func(node string) (weight int) {
			for _, pod := range operators.Items {
				if pod.Spec.NodeName == node {
					weight += 2
				}
			}
			if cephPods(ctx)["ceph-mgr-0"].Spec.NodeName == node {
				weight++
			}
			return weight
		}
		slices.SortFunc(others, func(a, b string) int { return weight(a) - weight(b) })
		failingNode, fuseNode = others[0], others[1]

		cephWell(ctx)
		stewarded(ctx, name, servers)
		DeferCleanup(func(ctx SpecContext) {
			output, err := c.Kubectl(ctx, "delete", "pod", writer, reader, plain, "--ignore-not-found", "--grace-period=1", "--timeout=5m")
			Expect(err).NotTo(HaveOccurred(), output)
			output, err = c.Kubectl(ctx, "delete", "fileshare", share, "--ignore-not-found", "--timeout=5m")
			Expect(err).NotTo(HaveOccurred(), output)
		}, NodeTimeout(limit))
		Expect(c.Create(ctx, &v1alpha1.FileShare{
			ObjectMeta: metav1.ObjectMeta{Name: share, Namespace: c.Namespace},
			Spec: v1alpha1.FileShareSpec{
				FileServerRef: v1alpha1.FileServerReference{Name: name}, Path: "/failing", Directories: []string{"d{0..2}"}, Mode: "0777",
				ReclaimPolicy: v1alpha1.ReclaimDelete,
			},
		})).To(Succeed())
		Eventually(ctx, func(ctx context.Context) error { return c.ShareReady(ctx, share) }).Should(Succeed())
		Expect(owners(ctx, share)).To(HaveLen(servers))
		for pod, node := range map[string]string{writer: monNode, reader: fuseNode} {
			Expect(c.RunClient(ctx, cluster.ClientPod{Name: pod, Claims: map[string]string{mountPoint: share}, NodeSelector: map[string]string{corev1.LabelHostname: node}})).To(Succeed())
		}
		for _, pod := range []string{writer, reader} {
			Expect(c.WaitPodReady(ctx, pod)).To(Succeed())
		}
		through := user{what: throughB, pod: writer}
		for i := range servers {
			through.directories = append(through.directories, fmt.Sprintf("%s/d%d", mountPoint, i))
		}
		through.auditor, through.seenAt = reader, through.directories

		place := newSubvolume(ctx, "plain")
		files(ctx, "plain", clientFiles(place.account))
		mount = func(at string) string {
			return fmt.Sprintf("mkdir -p /mnt/%[1]s && ceph-fuse --id %[2]s --client_fs %[3]s -r %[4]s /mnt/%[1]s >/dev/null 2>&1", at, place.user, filesystem, place.path)
		}
		pod := podWith(plain, cephImage, "plain", "/etc/ceph", "sleep", "infinity")
		pod.Spec.NodeSelector = map[string]string{corev1.LabelHostname: fuseNode}
		pod.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{Privileged: ptr.To(true)}
		withHowdah(pod)
		started(ctx, pod)
		direct := user{what: directB, pod: plain, auditor: plain}
		sh(ctx, plain, "%s", mount("share"))
		for i := range servers {
			directory := fmt.Sprintf("/mnt/share/d%d", i)
			sh(ctx, plain, "mkdir %s", directory)
			direct.directories = append(direct.directories, directory)
			direct.seenAt = append(direct.seenAt, fmt.Sprintf("/mnt/again/d%d", i))
		}
		direct.forget = func(ctx context.Context) {
			GinkgoHelper()
			sh(ctx, plain, "umount /mnt/again 2>/dev/null; %s", mount("again"))
		}
		users = []user{through, direct}
	}, NodeTimeout(limit))

	BeforeEach(func(ctx SpecContext) {
		cephWell(ctx)
		mended(ctx)
	}, NodeTimeout(limit))

	It("survives the loss of an OSD for half a minute", func(ctx SpecContext) {
		felt := under(ctx, "osd", users, func() {
			DeferCleanup(func(ctx SpecContext) { scale(ctx, "ceph-osd", 3) }, NodeTimeout(limit))
			pod := cephPods(ctx)["ceph-osd-2"]
			killDaemon(ctx, pod, "ceph-osd")
			scale(ctx, "ceph-osd", 2)
			forceAway(ctx, pod.Name)
			waitFor(ctx, "osd", "the FileServer", storage, "True StorageDegraded", "OSDs that are down: osd.2", "[OSD_DOWN]")
			time.Sleep(30 * time.Second)
			scale(ctx, "ceph-osd", 3)
			cephWell(ctx)
			mended(ctx)
		})
		Expect(errorsOf(felt[throughB])).To(BeZero())
	}, SpecTimeout(limit))

	// killMDS kills the MDS of rank 0 under load, and waits until another MDS, or the same one restarted, has the rank.
	killMDS := func(ctx context.Context, run string) {
		GinkgoHelper()
		felt := under(ctx, run, users, func() {
			name, before := activeMDS(ctx, 0)
			killDaemon(ctx, cephPods(ctx)[name], "ceph-mds")
			began := time.Now()
			var after string
			Eventually(ctx, func(ctx context.Context) (gid int64) {
				after, gid = activeMDS(ctx, 0)
				return gid
			}).Should(Not(BeElementOf(before, int64(0))))
			took := time.Since(began).Round(100 * time.Millisecond)
			AddReportEntry(run+": "+name+" was killed, and "+after+" is active after", took.String(), ReportEntryVisibilityAlways)
			mended(ctx)
		})
		Expect(errorsOf(felt[throughB])).To(BeZero())
	}

	It("survives the kill of an active MDS, whose rank a standby or the restarted MDS takes", func(ctx SpecContext) {
		killMDS(ctx, "mds")
	}, SpecTimeout(limit))

	It("survives the kill of an active MDS with a standby-replay follower", Label("standby-replay"), func(ctx SpecContext) {
		follow := func(ctx context.Context, whether string) {
			GinkgoHelper()
			admin.must(ctx, toMon("fs set", request{"fs_name": filesystem, "var": "allow_standby_replay", "val": whether}))
		}
		DeferCleanup(func(ctx SpecContext) { follow(ctx, "false") }, NodeTimeout(limit))
		follow(ctx, "true")
		Eventually(ctx, func(ctx context.Context) string {
			name, _ := mdsOf(ctx, 0, "up:standby-replay")
			return name
		}).ShouldNot(BeEmpty())
		killMDS(ctx, "mds-followed")
	}, SpecTimeout(limit))

	It("survives the loss of all MDS for half a minute", func(ctx SpecContext) {
		felt := under(ctx, "all-mds", users, func() {
			DeferCleanup(func(ctx SpecContext) { scale(ctx, "ceph-mds", 3) }, NodeTimeout(limit))
			scale(ctx, "ceph-mds", 0)
			waitFor(ctx, "all-mds", "the FileServer", storage, "False StorageFailing", "[MDS_ALL_DOWN]", "start MDS daemons")
			waitFor(ctx, "all-mds", "the FileShare", shareReady, "False StorageFailing", "as the storage of FileServer "+name+" reports", "[MDS_ALL_DOWN]")
			time.Sleep(10 * time.Second)
			scale(ctx, "ceph-mds", 3)
			mended(ctx)
		})
		Expect(errorsOf(felt[throughB])).To(BeZero())
	}, SpecTimeout(limit))

	It("survives the loss of the only monitor for half a minute", func(ctx SpecContext) {
		felt := under(ctx, "mon", users, func() {
			DeferCleanup(func(ctx SpecContext) { scale(ctx, "ceph-mon", 1) }, NodeTimeout(limit))
			pod := cephPods(ctx)["ceph-mon-0"]
			killDaemon(ctx, pod, "ceph-mon")
			scale(ctx, "ceph-mon", 0)
			forceAway(ctx, pod.Name)
			waitFor(ctx, "mon", "the FileServer", storage, "False StorageFailing", "no monitor answers at ", "is a majority of the monitors running")
			time.Sleep(10 * time.Second)
			scale(ctx, "ceph-mon", 1)
			Eventually(ctx, storage).Should(Not(ContainSubstring("no monitor answers")))
		})
		mended(ctx)
		Expect(errorsOf(felt[throughB])).To(BeZero())
	}, SpecTimeout(limit))

	It("survives the power loss of a node with an OSD, an MDS and a data server", func(ctx SpecContext) {
		if nodeOff == "" {
			Skip("HOWDAH_E2E_NODE_OFF is not set: the command that switches a node off (hack/e2e.sh sets it for the lab)")
		}
		lost := ""
		pods := &corev1.PodList{}
		Expect(c.List(ctx, pods, client.InNamespace(c.Namespace), client.MatchingLabels(naming.SelectDataServers(name)))).To(Succeed())
		for _, pod := range pods.Items {
			if pod.Spec.NodeName == failingNode {
				lost = pod.Name
			}
		}
		Expect(lost).NotTo(BeEmpty(), "no data server is on %s", failingNode)
		felt := under(ctx, "node", users, func() {
			DeferCleanup(func(ctx SpecContext) { switchNode(ctx, nodeOn, failingNode) }, NodeTimeout(limit))
			switchNode(ctx, nodeOff, failingNode)
			waitFor(ctx, "node", "the FileServer", storage, "StorageDegraded", "OSDs that are down: osd.", "host="+failingNode)
			waitFor(ctx, "node", "the FileShare", shareReady, v1alpha1.ReasonDataServersUnavailable, lost)
			time.Sleep(30 * time.Second)
			switchNode(ctx, nodeOn, failingNode)
			cephWell(ctx)
			mended(ctx)
		})
		for i, f := range felt[throughB] {
			owner := ownerOf(ctx, share, fmt.Sprintf("d%d", i))
			AddReportEntry("node: a directory of "+map[bool]string{true: "the data server that was lost", false: "another data server"}[owner == lost], f.String(), ReportEntryVisibilityAlways)
		}
		Expect(errorsOf(felt[throughB])).To(BeZero())
	}, SpecTimeout(limit))

	It("reports a nearly full cluster, and then a full one", func(ctx SpecContext) {
		ratios := func(ctx context.Context, nearly, backfill, full float64) {
			GinkgoHelper()
			for _, r := range []struct {
				prefix string
				ratio  float64
			}{{"osd set-nearfull-ratio", nearly}, {"osd set-backfillfull-ratio", backfill}, {"osd set-full-ratio", full}} {
				admin.must(ctx, toMon(r.prefix, request{"ratio": r.ratio}))
			}
		}
		usual := func(ctx context.Context) { ratios(ctx, 0.85, 0.90, 0.95) }
		felt := under(ctx, "full", users, func() {
			DeferCleanup(func(ctx SpecContext) { usual(ctx) }, NodeTimeout(limit))
			ratios(ctx, 0.0001, 0.90, 0.95)
			waitFor(ctx, "nearly full", "the FileServer", storage, "True StorageDegraded", "nearly full", "[OSD_NEARFULL]")
			ratios(ctx, 0.0001, 0.0002, 0.0003)
			waitFor(ctx, "full", "the FileServer", storage, "False StorageFailing", "[POOL_FULL]", "remove files or snapshots")
			waitFor(ctx, "full", "the FileShare", shareReady, "False StorageFailing", "[POOL_FULL]")
			usual(ctx)
			mended(ctx)
		})
		for _, u := range users {
			for _, f := range felt[u.what] {
				Expect(f.first).To(Or(BeEmpty(), ContainSubstring("no space left on device")), u.what)
			}
		}
		Expect(errorsOf(felt[throughB])).NotTo(BeZero(), "writes to a full cluster are acknowledged")
	}, SpecTimeout(limit))

	It("survives a network cut between data servers and Ceph", func(ctx SpecContext) {
		long := cutFor()
		var ceph []string
		for _, pod := range cephPods(ctx) {
			ceph = append(ceph, pod.Status.PodIP)
		}
		address := &corev1.Service{}
		Expect(c.Client.Get(ctx, client.ObjectKey{Namespace: cephNamespace, Name: "ceph-mon"}, address)).To(Succeed())
		ceph = append(ceph, address.Spec.ClusterIP)
		pods := &corev1.PodList{}
		Expect(c.List(ctx, pods, client.InNamespace(c.Namespace), client.MatchingLabels(naming.SelectDataServers(name)))).To(Succeed())
		fuse := &corev1.Pod{}
		Expect(c.Get(ctx, plain, fuse)).To(Succeed())
		network := func(ctx context.Context, change string) {
			GinkgoHelper()
			for _, pod := range append(slices.Clone(pods.Items), *fuse) {
				Expect(onNode(ctx, pod.Spec.NodeName, fmt.Sprintf(inNetwork, pod.Status.PodIP, strings.Join(ceph, " "), change))).To(ContainSubstring("done"))
			}
		}
		run := "cut-" + long.String()
		felt := under(ctx, run, users, func() {
			network(ctx, cut)
			ended := false
			DeferCleanup(func(ctx SpecContext) {
				if !ended {
					network(ctx, joined)
				}
			}, NodeTimeout(limit))
			began := time.Now()
			waitFor(ctx, run, "the FileServer", storage, "False StorageFailing", "no monitor answers at ", "does the network let the data servers' pods reach them")
			waitFor(ctx, run, "the FileShare", shareReady, "False StorageFailing", "no monitor answers at ")
			time.Sleep(time.Until(began.Add(long)))
			network(ctx, joined)
			ended = true
			back := time.Now()
			mended(ctx)
			AddReportEntry(run+": all conditions are True again after", time.Since(back).Round(time.Second).String(), ReportEntryVisibilityAlways)
			// The data server checks an export whose client Ceph has blocklisted every 30 s.
			time.Sleep(40 * time.Second)
			Eventually(ctx, func(ctx context.Context) error { return c.ShareReady(ctx, share) }).Should(Succeed())
			if long > 4*time.Minute {
				// A plain client that Ceph has blocklisted must be mounted again.
				sh(ctx, plain, "timeout 10 ls /mnt/share >/dev/null || { umount -l /mnt/share; %s; }", mount("share"))
			}
		})
		if long < 4*time.Minute {
			Expect(errorsOf(felt[throughB])).To(BeZero())
			for _, f := range felt[throughB] {
				within(run+": longest wait through Howdah", max(f.write, f.make), long+afterCutGoal, 0)
			}
		}
	}, SpecTimeout(limit+5*time.Minute))
})

func containing(words ...string) types.GomegaMatcher {
	var all []types.GomegaMatcher
	for _, one := range words {
		all = append(all, ContainSubstring(one))
	}
	return And(all...)
}
