package ceph

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/ceph"
	"github.com/howdah/howdah/test/cluster"
)

// A whole share is restored from a snapshot: as a new share that Ceph clones, and in place, by copying files.
var _ = Describe("A share from a snapshot in Ceph", Ordered, Label("ceph"), func() {
	const (
		name     = "copying"
		original = "original"
		restored = "restored"
		user     = "clone-user"
		reader   = "clone-reader"
		mi       = int64(1) << 20
		// In MiB. While the lab's manager copied this much, it ended with a segmentation fault in three of three runs, until
		// the lab raised the host's vm.max_map_count.
		size = 96
	)
	var uid string
	condition := func(ctx context.Context, share, conditionType string) string {
		object := &v1alpha1.FileShare{}
		if err := c.Get(ctx, share, object); err != nil {
			return err.Error()
		}
		found := cluster.Condition(object.Status.Conditions, conditionType)
		return fmt.Sprintf("%s %s %s", found.Status, found.Reason, found.Message)
	}
	from := func(ctx context.Context, share, snapshot, quota string) {
		GinkgoHelper()
		object := &v1alpha1.FileShare{
			ObjectMeta: metav1.ObjectMeta{Name: share, Namespace: c.Namespace},
			Spec: v1alpha1.FileShareSpec{
				FileServerRef: v1alpha1.FileServerReference{Name: name}, Path: "/" + share, Mode: "0777", ReclaimPolicy: v1alpha1.ReclaimDelete,
				Source: v1alpha1.ShareSource{SnapshotRef: v1alpha1.SnapshotReference{Name: snapshot}},
			},
		}
		if quota != "" {
			parsed := resource.MustParse(quota)
			object.Spec.Quota.Size = &parsed
		}
		Expect(c.Create(ctx, object)).To(Succeed())
	}
	inGroup := func(more request) request {
		more["vol_name"], more["group_name"] = filesystem, ceph.Group(uid)
		return more
	}
	// subvolume returns what Ceph reports about a share's subvolume.
	subvolume := func(ctx context.Context, share string) (info struct {
		Used      int64  `json:"bytes_used"`
		Namespace string `json:"pool_namespace"`
		Type      string `json:"type"`
	},
	) {
		GinkgoHelper()
		answer := admin.must(ctx, toMgr("fs subvolume info", inGroup(request{"sub_name": ceph.Subvolume(uid, share)})))
		Expect(json.Unmarshal([]byte(answer), &info)).To(Succeed(), answer)
		return info
	}
	snapshotOf := func(ctx context.Context, snapshot string) {
		GinkgoHelper()
		newSnapshot(ctx, snapshot, original)
		Eventually(ctx, snapshotReady(snapshot)).Should(Succeed())
	}

	BeforeAll(func(ctx SpecContext) {
		stewarded(ctx, name, 2)
		DeferCleanup(func(ctx SpecContext) { // Before the FileServer's, which is deferred first.
			for _, arguments := range [][]string{
				{"delete", "pods", "-l", cluster.ClientLabel, "--grace-period=1"},
				{"delete", "filesharesnapshots", "--all"},
				{"delete", "fileshares", "--all"},
			} {
				output, err := c.Kubectl(ctx, append(arguments, "--timeout=5m")...)
				Expect(err).NotTo(HaveOccurred(), output)
			}
		}, NodeTimeout(limit))
		uid = identityOf(ctx, name)
		Expect(c.Create(ctx, &v1alpha1.FileShare{
			ObjectMeta: metav1.ObjectMeta{Name: original, Namespace: c.Namespace},
			Spec: v1alpha1.FileShareSpec{
				FileServerRef: v1alpha1.FileServerReference{Name: name}, Path: "/original", Directories: []string{"d{0..2}"}, Mode: "0777", ReclaimPolicy: v1alpha1.ReclaimDelete,
			},
		})).To(Succeed())
		Eventually(ctx, func(ctx context.Context) error { return c.ShareReady(ctx, original) }).Should(Succeed())
		Expect(c.RunClient(ctx, cluster.ClientPod{Name: user, Claims: map[string]string{mountPoint: original}})).To(Succeed())
		Expect(c.WaitPodReady(ctx, user)).To(Succeed())
		sh(ctx, user, `set -e; cd %[1]s; mkdir -m 2750 made; chown 1000:1000 made; for d in d0 d1 d2 made; do mkdir $d/below; echo "first of $d" >$d/changed; echo "kept of $d" >$d/below/removed; ln -s changed $d/link; done
			chown 1000:100 d1/below/removed; head -c %[2]d /dev/urandom >d0/large; sha256sum d0/large | cut -c1-64 >d0/sum; sync`, mountPoint, size*mi)
		// Ceph's figures are some seconds late.
		Eventually(ctx, func(ctx context.Context) int64 { return subvolume(ctx, original).Used }).Should(BeNumerically(">", size*mi))
		snapshotOf(ctx, "before")
		sh(ctx, user, `set -e; cd %s; for d in d0 d1 d2 made; do echo second >$d/changed; rm -r $d/below; echo new >$d/new; done; rm d0/large; sync`, mountPoint)
	}, NodeTimeout(limit))

	It("is created only when the quota has room, and then has all data of the snapshot", func(ctx SpecContext) {
		from(ctx, restored, "before", "4Mi")
		Eventually(ctx, condition).WithArguments(restored, v1alpha1.FileSharePlaced).Should(And(HavePrefix("False QuotaBelowUse"), ContainSubstring(fmt.Sprintf("FileShareSnapshot before has %d", size))))
		output, err := c.Kubectl(ctx, "patch", "fileshare", restored, "--type=merge", "-p", `{"spec":{"quota":{"size":"256Mi"}}}`)
		Expect(err).NotTo(HaveOccurred(), output)
		began := time.Now()
		seen := map[string]bool{}
		Eventually(ctx, func(ctx context.Context) string {
			now := condition(ctx, restored, v1alpha1.FileShareCloned)
			if !seen[now] {
				seen[now] = true
				fmt.Fprintf(GinkgoWriter, "after %s: %s\n", time.Since(began).Round(100*time.Millisecond), now)
			}
			return now
		}).Should(HavePrefix("True Ready the share began with what snapshot before of share original had in it"))
		AddReportEntry(fmt.Sprintf("from the FileShare to a copy of %d MiB in 13 files that is whole", size), time.Since(began).Round(100*time.Millisecond).String(), ReportEntryVisibilityAlways)
		Eventually(ctx, func(ctx context.Context) error { return c.ShareReady(ctx, restored) }).Should(Succeed())
		AddReportEntry("from the FileShare to one that is ready", time.Since(began).Round(100*time.Millisecond).String(), ReportEntryVisibilityAlways)

		found := owners(ctx, restored)
		// Spread over the data servers that serve the share when its first directory is placed.
		AddReportEntry("directories that were found, by data server", fmt.Sprintf("%d and %d", len(found[name+"-0"]), len(found[name+"-1"])), ReportEntryVisibilityAlways)
		Expect(append(found[name+"-0"], found[name+"-1"]...)).To(ConsistOf("d0", "d1", "d2", "made"))
		Expect(c.RunClient(ctx, cluster.ClientPod{Name: reader, Claims: map[string]string{mountPoint: restored}})).To(Succeed())
		Expect(c.WaitPodReady(ctx, reader)).To(Succeed())
		for _, d := range []string{"d0", "d1", "d2", "made"} {
			Expect(sh(ctx, reader, "cd %s/%s && cat link below/removed && ls -A", mountPoint, d)).To(HavePrefix("first of " + d + "\nkept of " + d + "\nbelow\nchanged\n"))
		}
		Expect(sh(ctx, reader, "cd %s && stat -c '%%u:%%g %%a' d1/below/removed made", mountPoint)).To(Equal("1000:100 644\n1000:1000 2750\n"))
		Expect(sh(ctx, reader, "cd %s/d0 && sha256sum large | cut -c1-64 | cmp - sum && df -P -B1 . | awk 'END {print $2}'", mountPoint)).To(Equal(fmt.Sprintln(256 * mi)))

		By("being independent of the source share")
		sh(ctx, reader, "cd %s && echo third >d0/changed && mkdir later && echo x >later/file", mountPoint)
		Expect(sh(ctx, user, "cat %s/d0/changed", mountPoint)).To(Equal("second\n"))
		// Its user's key also gives access to objects past the metadata servers (docs/operate/security.md).
		info := subvolume(ctx, restored)
		Expect(info.Type).To(Equal("clone"))
		Expect(info.Namespace).To(Equal("fsvolumens_" + ceph.Subvolume(uid, original)))
	}, SpecTimeout(limit))

	It("outlives its snapshot, whose deletion waits for running clones", func(ctx SpecContext) {
		snapshotOf(ctx, "again")
		for _, share := range []string{"second", "third"} {
			from(ctx, share, "before", "")
			Eventually(ctx, condition).WithArguments(share, v1alpha1.FileShareCloned).Should(ContainSubstring(" since "))
		}
		output, err := c.Kubectl(ctx, "delete", "fsnap", "before", "--wait=false")
		Expect(err).NotTo(HaveOccurred(), output)
		snapshot := &v1alpha1.FileShareSnapshot{}
		waited := map[string]bool{}
		began := time.Now()
		Eventually(ctx, func(ctx context.Context) error {
			err := c.Get(ctx, "before", snapshot)
			if message := cluster.Condition(snapshot.Status.Conditions, v1alpha1.ConditionReady).Message; err == nil && !waited[message] {
				waited[message] = true
				fmt.Fprintf(GinkgoWriter, "after %s: %s\n", time.Since(began).Round(100*time.Millisecond), message)
			}
			return client.IgnoreNotFound(err)
		}).Should(Succeed())
		Expect(c.WaitGone(ctx, snapshot)).To(Succeed())
		AddReportEntry("from kubectl delete to a snapshot that is gone, of which two copies were being made", time.Since(began).Round(100*time.Millisecond).String(), ReportEntryVisibilityAlways)
		for _, share := range []string{"second", "third"} {
			Eventually(ctx, func(ctx context.Context) error { return c.ShareReady(ctx, share) }).Should(Succeed())
		}
		Expect(sh(ctx, reader, "cat %s/d1/changed", mountPoint)).To(Equal("first of d1\n"))
		from(ctx, "late", "before", "")
		Eventually(ctx, condition).WithArguments("late", v1alpha1.FileSharePlaced).Should(HavePrefix(`False SnapshotNotFound spec.source.snapshotRef: there is no FileShareSnapshot "before"`))
	}, SpecTimeout(limit))

	It("leaves nothing behind when it is deleted while Ceph copies it", func(ctx SpecContext) {
		from(ctx, "given-up", "again", "")
		Eventually(ctx, condition).WithArguments("given-up", v1alpha1.FileShareCloned).Should(ContainSubstring(" since "))
		output, err := c.Kubectl(ctx, "delete", "fileshare", "given-up", "--timeout=5m")
		Expect(err).NotTo(HaveOccurred(), output)
		Expect(admin.must(ctx, toMgr("fs subvolume ls", inGroup(request{})))).NotTo(ContainSubstring(ceph.Subvolume(uid, "given-up")))
	}, SpecTimeout(limit))

	It("refuses data that an earlier share of the same name left", func(ctx SpecContext) {
		output, err := c.Kubectl(ctx, "patch", "fileshare", "second", "--type=merge", "-p", `{"spec":{"reclaimPolicy":"Retain"}}`)
		Expect(err).NotTo(HaveOccurred(), output)
		output, err = c.Kubectl(ctx, "delete", "fileshare", "second", "--timeout=5m")
		Expect(err).NotTo(HaveOccurred(), output)
		from(ctx, "second", "again", "")
		Eventually(ctx, condition).WithArguments("second", v1alpha1.FileShareCloned).Should(And(HavePrefix("False CloneRefused"), ContainSubstring("with the data of an earlier share of this name")))
		output, err = c.Kubectl(ctx, "delete", "fileshare", "second", "--timeout=5m")
		Expect(err).NotTo(HaveOccurred(), output)
		Expect(admin.must(ctx, toMgr("fs subvolume ls", inGroup(request{})))).To(ContainSubstring(ceph.Subvolume(uid, "second")), "reclaimPolicy Delete removed an earlier share's data")
		admin.ask(ctx, toMgr("fs subvolume rm", inGroup(request{"sub_name": ceph.Subvolume(uid, "second")})))
	}, SpecTimeout(limit))

	It("can be restored in place by copying files", func(ctx SpecContext) {
		path := pathOf(ctx, "again")
		sh(ctx, user, `set -e; cd %s; for d in d0 d1 d2 made; do echo broken >$d/changed; rm $d/new; mkdir $d/unwanted; done; sync`, mountPoint)
		sh(ctx, user, `set -e; for d in %s/*/; do cd $d; find . -mindepth 1 -delete; cp -a %s/. .; done; sync`, mountPoint, path)
		for _, d := range []string{"d0", "d1", "d2", "made"} {
			Expect(sh(ctx, user, "cd %s/%s && cat link new && ls -A unwanted 2>&1 || true", mountPoint, d)).To(And(HavePrefix("second\nnew\n"), ContainSubstring("No such file")))
		}
	}, SpecTimeout(limit))
})
