package ceph

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/ceph"
	"github.com/howdah/howdah/internal/serverpod"
	"github.com/howdah/howdah/test/cluster"
)

var clientsOfBefore = regexp.MustCompile(`clid count\((\d+)\)`)

// waitedFor returns for how many earlier clients a data server's last ganesha waited, from its log.
func waitedFor(ctx context.Context, dataServer string) string {
	GinkgoHelper()
	log, err := c.Kubectl(ctx, "logs", dataServer)
	Expect(err).NotTo(HaveOccurred(), log)
	counts := clientsOfBefore.FindAllStringSubmatch(log, -1)
	Expect(counts).NotTo(BeEmpty(), log)
	return counts[len(counts)-1][1]
}

// The effect of a steward: for clients when a data server dies, and for administrators when accounts are wrong.
var _ = Describe("A FileServer whose steward works in Ceph", Ordered, ContinueOnFailure, Label("ceph"), func() {
	const (
		name                        = "stewarded"
		near                        = "steward-near" // Uses the target data server.
		far                         = "steward-far"  // Uses another one.
		ioGoal, openGoal, otherGoal = 4 * time.Second, 7 * time.Second, time.Second
	)
	var (
		uid         string
		target      string
		hit, spared string // Directories of target and of another data server.
	)
	in := func(share string, more request) request {
		whole := request{"vol_name": filesystem, "group_name": ceph.Group(uid), "sub_name": ceph.Subvolume(uid, share)}
		for key, value := range more {
			whole[key] = value
		}
		return whole
	}
	userOf := func(share string) request { return request{"entity": "client." + ceph.ShareUser(uid, share)} }
	keyOf := func(ctx context.Context, share string) string {
		return admin.ask(ctx, toMon("auth get-key", userOf(share)))[0].Output
	}
	newShare := func(ctx context.Context, share string, policy v1alpha1.ReclaimPolicy) {
		GinkgoHelper()
		Expect(c.Create(ctx, &v1alpha1.FileShare{
			ObjectMeta: metav1.ObjectMeta{Name: share, Namespace: c.Namespace},
			Spec: v1alpha1.FileShareSpec{
				FileServerRef: v1alpha1.FileServerReference{Name: name}, Path: "/" + share, Directories: []string{"d{0..3}"}, Mode: "0777", ReclaimPolicy: policy,
			},
		})).To(Succeed())
	}
	ready := func(share string) func(context.Context) error {
		return func(ctx context.Context) error { return c.ShareReady(ctx, share) }
	}
	deleteShare := func(ctx context.Context, share string) {
		GinkgoHelper()
		output, err := c.Kubectl(ctx, "delete", "fileshare", share, "--ignore-not-found", "--timeout=5m")
		Expect(err).NotTo(HaveOccurred(), output)
	}
	kill := func(ctx context.Context, server string) {
		GinkgoHelper()
		sh(ctx, server, "kill -9 $(cat %s/ganesha.pid)", serverpod.RunDir)
	}
	data := []string{name + "-0", name + "-1"}
	// started returns how often a data server has restarted its ganesha because of a new key.
	started := func(ctx context.Context, server string) (int, error) {
		output, err := c.Kubectl(ctx, "logs", server, "--tail=-1")
		return strings.Count(output, "restarting ganesha"), err
	}
	// stewardLooks restarts the steward, so that it checks everything, as it does at its start and every three minutes.
	stewardLooks := func(ctx context.Context) {
		GinkgoHelper()
		output, err := c.Kubectl(ctx, "rollout", "restart", "deployment/"+name+"-steward")
		Expect(err).NotTo(HaveOccurred(), output)
	}
	// renewing loads both data servers while keys are replaced, until each has restarted its ganesha.
	renewing := func(ctx context.Context, replace func()) map[string]pauses {
		GinkgoHelper()
		before := map[string]int{}
		for _, server := range data {
			var err error
			before[server], err = started(ctx, server)
			Expect(err).NotTo(HaveOccurred())
		}
		return underLoad(ctx, map[string]string{near: hit, far: spared}, func() {
			replace()
			began := time.Now()
			stewardLooks(ctx)
			for _, server := range data {
				Eventually(ctx, func(ctx context.Context) (int, error) { return started(ctx, server) }).Should(BeNumerically(">", before[server]), server)
				AddReportEntry("from the steward's restart to ganesha's restart in "+server, time.Since(began).Round(time.Second).String(), ReportEntryVisibilityAlways)
			}
			Eventually(ctx, fileServerReady(name)).Should(Succeed())
		})
	}
	judge := func(what string, found map[string]pauses) {
		GinkgoHelper()
		within(what+": longest write and sync of its client", found[near].io, ioGoal, found[near].stolen)
		within(what+": longest open of its client", found[near].open, openGoal, found[near].stolen)
		within(what+": longest write and sync of another data server's client", found[far].io, otherGoal, found[far].stolen)
		within(what+": longest open of another data server's client", found[far].open, otherGoal, found[far].stolen)
	}

	BeforeAll(func(ctx SpecContext) {
		stewarded(ctx, name, 2)
		uid = identityOf(ctx, name)
		DeferCleanup(func(ctx SpecContext) { // Before the FileServer's, which is deferred first.
			output, err := c.Kubectl(ctx, "delete", "pod", near, far, "--ignore-not-found", "--grace-period=1", "--timeout=5m")
			Expect(err).NotTo(HaveOccurred(), output)
			for _, share := range []string{"crash", "other", "again"} {
				deleteShare(ctx, share)
				removeShare(ctx, uid, share)
			}
		}, NodeTimeout(limit))
		newShare(ctx, "crash", v1alpha1.ReclaimDelete)
		Eventually(ctx, ready("crash")).Should(Succeed())
		for server, directories := range owners(ctx, "crash") {
			if server == name+"-0" {
				target, hit = server, mountPoint+"/"+directories[0]
			} else {
				spared = mountPoint + "/" + directories[0]
			}
		}
		Expect([]string{target, hit, spared}).NotTo(ContainElement(""))
		for _, pod := range []string{near, far} {
			Expect(c.RunClient(ctx, cluster.ClientPod{Name: pod, Claims: map[string]string{mountPoint: "crash"}})).To(Succeed())
		}
		for _, pod := range []string{near, far} {
			Expect(c.WaitPodReady(ctx, pod)).To(Succeed())
		}
	}, NodeTimeout(limit))

	It("blocklists the sessions of a killed ganesha: its clients continue soon, other clients see no pause", func(ctx SpecContext) {
		for _, time := range []string{"first", "second"} {
			judge("ganesha killed with SIGKILL, the "+time+" time", underLoad(ctx, map[string]string{near: hit, far: spared}, func() { kill(ctx, target) }))
			Eventually(ctx, fileServerReady(name)).Should(Succeed())
			Expect(waitedFor(ctx, target)).To(Equal("1"), "ganesha must wait for the one client that may reclaim state, and not for Howdah's own clients")
		}
		output, err := c.Kubectl(ctx, "logs", "deployment/"+name+"-steward", "--tail=200")
		Expect(err).NotTo(HaveOccurred(), output)
		Expect(strings.Count(output, "blocklisted the Ceph clients of a data server")).To(BeNumerically(">=", 2), output)
	}, SpecTimeout(limit))

	It("serves a data server's clients again when its pod starts on another node", func(ctx SpecContext) {
		pod := &corev1.Pod{}
		Expect(c.Get(ctx, target, pod)).To(Succeed())
		before := pod.Spec.NodeName
		output, err := c.Kubectl(ctx, "cordon", before)
		Expect(err).NotTo(HaveOccurred(), output)
		DeferCleanup(func(ctx SpecContext) {
			output, err := c.Kubectl(ctx, "uncordon", before)
			Expect(err).NotTo(HaveOccurred(), output)
		}, NodeTimeout(limit))
		judge("its pod deleted, and started on another node", underLoad(ctx, map[string]string{near: hit, far: spared}, func() {
			output, err := c.Kubectl(ctx, "delete", "pod", target, "--wait=false")
			Expect(err).NotTo(HaveOccurred(), output)
			Eventually(ctx, func(ctx context.Context) (string, error) {
				moved := &corev1.Pod{}
				err := c.Get(ctx, target, moved)
				if err == nil && moved.UID == pod.UID {
					return before, nil
				}
				return moved.Spec.NodeName, client.IgnoreNotFound(err)
			}).ShouldNot(BeElementOf(before, ""))
			Eventually(ctx, fileServerReady(name)).Should(Succeed())
		}))
	}, SpecTimeout(limit))

	It("removes a share's subvolume and account with reclaimPolicy Delete, and only the account with Retain", func(ctx SpecContext) {
		names := func(ctx context.Context) string {
			return admin.must(ctx, toMgr("fs subvolume ls", request{"vol_name": filesystem, "group_name": ceph.Group(uid)}))
		}
		noUser := func(ctx context.Context, share string) syscall.Errno {
			return admin.ask(ctx, toMon("auth get", userOf(share)))[0].Code
		}
		newShare(ctx, "other", v1alpha1.ReclaimDelete)
		newShare(ctx, "again", v1alpha1.ReclaimRetain)
		for _, share := range []string{"other", "again"} {
			Eventually(ctx, ready(share)).Should(Succeed())
			Expect(names(ctx)).To(ContainSubstring(ceph.Subvolume(uid, share)))
		}
		path := strings.TrimSpace(admin.must(ctx, toMgr("fs subvolume getpath", in("again", nil))))
		for _, share := range []string{"other", "again"} {
			deleteShare(ctx, share)
			Eventually(ctx, func(ctx context.Context) syscall.Errno { return noUser(ctx, share) }).Should(Equal(syscall.ENOENT))
		}
		Expect(names(ctx)).NotTo(ContainSubstring(ceph.Subvolume(uid, "other")))
		Expect(names(ctx)).To(ContainSubstring(ceph.Subvolume(uid, "again")))
		newShare(ctx, "again", v1alpha1.ReclaimDelete)
		Eventually(ctx, ready("again")).Should(Succeed())
		Expect(strings.TrimSpace(admin.must(ctx, toMgr("fs subvolume getpath", in("again", nil))))).To(Equal(path), "a share of the same name does not have the retained data")
	}, SpecTimeout(limit))

	It("uses new keys by restarting one ganesha after the other, without an error at any client", func(ctx SpecContext) {
		entities := []request{userOf("crash")}
		for ordinal := range int32(2) {
			entities = append(entities, request{"entity": "client." + ceph.RecoveryUser(uid, ordinal)})
		}
		key := func(ctx context.Context, entity request) string {
			return admin.ask(ctx, toMon("auth get-key", entity))[0].Output
		}
		var old []string
		for _, entity := range entities {
			old = append(old, key(ctx, entity))
		}
		found := renewing(ctx, func() {
			for _, entity := range entities {
				admin.must(ctx, toMon("auth get-or-create-pending", entity))
			}
		})
		for i, entity := range entities {
			Eventually(ctx, func(ctx context.Context) string { return key(ctx, entity) }).ShouldNot(BeElementOf(old[i], ""), "%v", entity)
			Expect(admin.must(ctx, toMon("auth get", entity))).NotTo(ContainSubstring("pending"))
		}
		for _, pod := range []string{near, far} {
			within("new keys: longest write and sync of the client "+pod, found[pod].io, ioGoal, found[pod].stolen)
			within("new keys: longest open of the client "+pod, found[pod].open, openGoal, found[pod].stolen)
		}
	}, SpecTimeout(limit))

	It("makes a removed Ceph user again, and data servers use its new key without an error at any client", func(ctx SpecContext) {
		before := keyOf(ctx, "crash")
		found := renewing(ctx, func() { admin.must(ctx, toMon("auth rm", userOf("crash"))) })
		Expect(keyOf(ctx, "crash")).NotTo(BeElementOf(before, ""))
		AddReportEntry("a user removed: longest write and sync, and longest open, meanwhile", fmt.Sprintf("%s and %s", found[near].io, found[near].open), ReportEntryVisibilityAlways)
		Eventually(ctx, ready("crash")).Should(Succeed())
	}, SpecTimeout(limit))

	It("reports a user that lost its permissions, serves other shares, and recovers by itself", func(ctx SpecContext) {
		user := ceph.ShareUser(uid, "again")
		admin.must(ctx, toMon("auth caps", request{"entity": "client." + user, "caps": []string{"mon", "allow r"}}))
		admin.must(ctx, toMgr("fs subvolume evict", in("again", request{"auth_id": user})))
		began := time.Now()
		Eventually(ctx, ready("again")).Should(MatchError(ContainSubstring("ceph auth get client." + user + " must show mds 'allow rw path=/volumes/")))
		AddReportEntry("until a share says that its user has no rights", time.Since(began).Round(time.Second).String(), ReportEntryVisibilityAlways)
		Expect(c.ShareReady(ctx, "crash")).To(Succeed(), "the other share is affected")
		sh(ctx, near, "timeout 20 sh -c 'echo served >%s/served && cat %s/served'", hit, hit)
		admin.must(ctx, toMgr("fs subvolume authorize", in("again", request{"auth_id": user, "access_level": "rw"})))
		began = time.Now()
		Eventually(ctx, ready("again")).Should(Succeed())
		AddReportEntry("until it is served again after its user has them back", time.Since(began).Round(time.Second).String(), ReportEntryVisibilityAlways)
	}, SpecTimeout(limit))

	It("reports a refused account and a wrong fsid, and recovers when they are corrected", func(ctx SpecContext) {
		setKey := func(ctx context.Context, key string) {
			GinkgoHelper()
			output, err := c.Kubectl(ctx, "patch", "secret", name+"-ceph", "--type=merge", "-p", fmt.Sprintf(`{"stringData":{"userKey":%q}}`, key))
			Expect(err).NotTo(HaveOccurred(), output)
		}
		setKey(ctx, admin.key)
		DeferCleanup(func(ctx SpecContext) { setKey(ctx, provisioner.key) }, NodeTimeout(limit))

		wrong := newFileServer(ctx, "wrong", func(fs *v1alpha1.FileServer) {
			fs.Spec.Replicas = 1
			external := &fs.Spec.Storage.Ceph.External
			external.RecoveryUser, external.SharesSecretRef = "", v1alpha1.SecretReference{}
			external.FSID, external.ProvisioningSecretRef = "00000000-0000-4000-8000-000000000000", v1alpha1.SecretReference{Name: "other-ceph"}
		})
		files(ctx, "other-ceph", map[string]string{"userID": provisioner.user, "userKey": provisioner.key})
		Eventually(ctx, func(ctx context.Context) string { return storageOf(ctx, "wrong").Message }).
			Should(ContainSubstring("has the fsid " + fsid + ", not " + wrong.Spec.Storage.Ceph.External.FSID))
		output, err := c.Kubectl(ctx, "delete", "fileserver/wrong", "--timeout=5m")
		Expect(err).NotTo(HaveOccurred(), output)

		// The kubelet updates the mounted key now or soon. A new share makes the steward check it.
		newShare(ctx, "other", v1alpha1.ReclaimDelete)
		Eventually(ctx, func(ctx context.Context) string {
			found := storageOf(ctx, name)
			return fmt.Sprintf("%s %s %s", found.Status, found.Reason, found.Message)
		}).Should(And(HavePrefix("True StewardFailing"), ContainSubstring("the monitors do not take the key of client."+provisioner.user), ContainSubstring("Secret "+name+"-ceph")))
		Expect(c.ShareReady(ctx, "crash")).To(Succeed(), "a served share stopped being Ready")
		sh(ctx, near, "timeout 20 sh -c 'echo served >%s/served && cat %s/served'", hit, hit)
		setKey(ctx, provisioner.key)
		began := time.Now()
		Eventually(ctx, ready("other")).Should(Succeed())
		Eventually(ctx, func(ctx context.Context) string { return storageOf(ctx, name).Reason }).Should(Equal(v1alpha1.ReasonReady))
		AddReportEntry("from the right key in the Secret to a share that waited for it", time.Since(began).Round(time.Second).String(), ReportEntryVisibilityAlways)
	}, SpecTimeout(limit))
})
