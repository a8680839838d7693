package e2e

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/naming"
)

// seenWithin is how soon a mounted client must see a change of the namespace.
const seenWithin = 3 * time.Second

// waitInside runs a command in a client again and again until it succeeds, and reports how long that took beside
// the goal. The client itself looks and takes the time: kubectl exec costs more than what is measured.
func waitInside(ctx SpecContext, what, pod, command string) {
	GinkgoHelper()
	output := shell(ctx, pod, `start=$(date +%%s%%N); limit=$((start+%d))
		until %s > /dev/null 2>&1; do [ $(date +%%s%%N) -lt $limit ] || exit 1; sleep 0.1; done
		echo $(( ($(date +%%s%%N)-start)/1000000 ))`, bound(time.Minute).Nanoseconds(), command)
	milliseconds, err := strconv.Atoi(strings.TrimSpace(output))
	Expect(err).NotTo(HaveOccurred())
	expectWithin(what, time.Duration(milliseconds)*time.Millisecond, seenWithin)
}

// ganeshaProcesses tells the pid and the start time of every ganesha.
func ganeshaProcesses(ctx SpecContext) string {
	GinkgoHelper()
	var all []string
	for ordinal := range int32(serverCount) {
		output := shell(ctx, naming.DataServer(fileServer, ordinal), `for p in /proc/[0-9]*; do
			[ "$(cat $p/comm 2>/dev/null)" = ganesha.nfsd ] && echo "${p#/proc/} $(cut -d' ' -f22 $p/stat)"; done; true`)
		Expect(output).NotTo(BeEmpty(), "no ganesha in server %d", ordinal)
		all = append(all, output)
	}
	return strings.Join(all, "")
}

var _ = Describe("Shares that come and go under mounted clients", Label("shares"), func() {
	It("are seen within 3 s without a remount, a restart or an ESTALE elsewhere", func(ctx SpecContext) {
		before := ganeshaProcesses(ctx)
		shell(ctx, clientA, "ls /tree /tree/unet3d/train/0 > /dev/null")
		defer func() { Expect(ganeshaProcesses(ctx)).To(Equal(before), "a ganesha was restarted") }()

		By("a second share, of layout Single")
		single := newShare("scratch", "/scratch", 1)
		single.Spec.Depth, single.Spec.Layout = 0, v1alpha1.LayoutSingle
		Expect(c.Create(ctx, single.DeepCopy())).To(Succeed())
		Eventually(ctx, func() error { return shareReady(ctx, "scratch") }).Should(Succeed())
		waitInside(ctx, "a new share is seen after it is Ready", clientA, "ls /tree/scratch")
		shell(ctx, clientA, "echo kept > /tree/scratch/file && mkdir /tree/scratch/sub && mv /tree/scratch/file /tree/scratch/sub/")

		By("a directory added to a share")
		patch := &v1alpha1.FileShare{}
		Expect(c.Get(ctx, share, patch)).To(Succeed())
		changed := patch.DeepCopy()
		changed.Spec.Directories = append(changed.Spec.Directories, "train/added")
		Expect(c.Patch(ctx, changed, client.MergeFrom(patch))).To(Succeed())
		waitInside(ctx, "a directory added to a share is seen after the patch", clientB, "ls /share/train/added")

		By("the second share deleted")
		Expect(c.Delete(ctx, single.DeepCopy())).To(Succeed())
		waitInside(ctx, "a deleted share is gone", clientB, "sh -c '! ls /tree | grep scratch'")
		Expect(c.WaitGone(ctx, single.DeepCopy())).To(Succeed())
		Expect(shell(ctx, clientA, "cat /share/train/0/first")).To(Equal("seed\n"))

		By("the second share made again: its data is where it was")
		Expect(c.Create(ctx, single.DeepCopy())).To(Succeed())
		Eventually(ctx, func() error { return shareReady(ctx, "scratch") }).Should(Succeed())
		waitInside(ctx, "a share made again is seen after it is Ready", clientB, "grep -x kept /tree/scratch/sub/file")
		waitInside(ctx, "and by the client that had its old incarnation mounted", clientA, "grep -x kept /tree/scratch/sub/file")

		By("reclaimPolicy Delete removes the data")
		kept := &v1alpha1.FileShare{}
		Expect(c.Get(ctx, "scratch", kept)).To(Succeed())
		doomed := kept.DeepCopy()
		doomed.Spec.ReclaimPolicy = v1alpha1.ReclaimDelete
		Expect(c.Patch(ctx, doomed, client.MergeFrom(kept))).To(Succeed())
		Expect(c.Delete(ctx, doomed)).To(Succeed())
		Expect(c.WaitGone(ctx, single.DeepCopy())).To(Succeed())
		for ordinal := range int32(serverCount) {
			Expect(namesOfData(ctx, ordinal)).NotTo(ContainSubstring("scratch"))
		}
		Expect(shell(ctx, clientA, "cat /share/train/0/first")).To(Equal("seed\n"), "other shares are as they were")
	}, SpecTimeout(bound(3*time.Minute)))

	It("refuse to lose a declared directory that holds data", func(ctx SpecContext) {
		small := newShare("small", "/small", 1, "a", "b")
		Expect(c.Create(ctx, small)).To(Succeed())
		Eventually(ctx, func() error { return shareReady(ctx, "small") }).Should(Succeed())
		Eventually(ctx, func() error { _, err := c.Shell(ctx, clientA, "echo precious > /tree/small/a/file"); return err }).Should(Succeed())
		changed := small.DeepCopy()
		Expect(c.Get(ctx, "small", changed)).To(Succeed())
		base := changed.DeepCopy()
		changed.Spec.Directories = nil
		Expect(c.Patch(ctx, changed, client.MergeFrom(base))).To(Succeed())
		Eventually(ctx, func() (string, error) {
			object := &v1alpha1.FileShare{}
			err := c.Get(ctx, "small", object)
			return fmt.Sprint(object.Status.Conditions), err
		}).Should(ContainSubstring(v1alpha1.ReasonDirectoryInUse))
		Eventually(ctx, func() string { return shell(ctx, clientB, "ls /tree/small") }).Should(Equal("a\n"), "b was empty and went")
		Expect(shell(ctx, clientB, "cat /tree/small/a/file")).To(Equal("precious\n"))
		Expect(c.Delete(ctx, changed)).To(Succeed())
		Expect(c.WaitGone(ctx, changed)).To(Succeed())
	}, SpecTimeout(bound(2*time.Minute)))
})
