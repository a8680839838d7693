package e2e

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/naming"
	"github.com/howdah/howdah/test/cluster"
)

// refusedRoom is the error of what needs more room than there is.
const refusedRoom = "ENOSPC"

// fill writes a file of a client until there is no more room.
func fill(ctx context.Context, file string) {
	GinkgoHelper()
	output := shell(ctx, brim, "dd if=/dev/zero of=%s bs=1M count=100 conv=fsync 2>&1 && echo it all fit || true", file)
	Expect(output).To(ContainSubstring("No space left on device"))
}

// startLoads starts two: growing takes room again and again, steady has all that it needs from its start.
func startLoads(ctx context.Context) (growing, steady *cluster.Load) {
	GinkgoHelper()
	shell(ctx, brim, "mkdir /brim/growing /brim/steady")
	growing, err := c.StartLoad(ctx, brim, "growing", []string{"/brim/growing"}, "--do", "files", "--bytes", "8Mi")
	Expect(err).NotTo(HaveOccurred())
	steady, err = c.StartLoad(ctx, brim, "steady", []string{"/brim/steady"}, "--do", "random,lock,opens", "--bytes", "1Mi", "--random-pause", "50ms")
	Expect(err).NotTo(HaveOccurred())
	return growing, steady
}

// goesOn expects a load to do something from now on.
func goesOn(ctx context.Context, running *cluster.Load) {
	GinkgoHelper()
	before, err := running.Entries(ctx)
	Expect(err).NotTo(HaveOccurred())
	Eventually(ctx, running.Entries).Should(BeNumerically(">", before), "%s does nothing", running.Name)
}

// killGaneshaOf kills the ganesha of a data server.
func killGaneshaOf(ctx context.Context, server string) {
	GinkgoHelper()
	pod := &corev1.Pod{}
	Expect(c.Get(ctx, server, pod)).To(Succeed())
	assassin := killer(pod.Spec.NodeName)
	Expect(c.Create(ctx, assassin)).To(Succeed())
	DeferCleanup(func(ctx SpecContext) { deleted(ctx, assassin) }, NodeTimeout(bound(time.Minute)))
	Expect(c.WaitPodReady(ctx, assassin.Name)).To(Succeed())
	Expect(shell(ctx, assassin.Name, kill, server, "ganesha.nfsd")).To(ContainSubstring("killed"))
}

// storageIs expects the condition StorageAvailable to be True with a reason, and gives its message.
func storageIs(ctx context.Context, reason string) (message string) {
	GinkgoHelper()
	Eventually(ctx, func() error {
		condition := cluster.Condition(brimServer(ctx).Status.Conditions, v1alpha1.FileServerStorageAvailable)
		if message = condition.Message; condition.Status != metav1.ConditionTrue || condition.Reason != reason {
			return fmt.Errorf("StorageAvailable is %s, %s: %s", condition.Status, condition.Reason, message)
		}
		return nil
	}).WithTimeout(bound(2*time.Minute)).Should(Succeed(), "volumes are measured once a minute")
	return message
}

// staysServedWhileFull: a client fills the volume, under a load that needs room and one that needs none; ganesha is killed meanwhile. The first
// load gets errors that say so, and nothing else is noticed: no wrong data, no error of the second one, and levels that say it.
func staysServedWhileFull(ctx context.Context) {
	GinkgoHelper()
	shell(ctx, brim, "echo kept > /brim/kept && sync /brim/kept")
	growing, steady := startLoads(ctx)
	fill(ctx, "/brim/full")
	// A whole MiB was refused. This takes what is left of it.
	shell(ctx, brim, "dd if=/dev/zero of=/brim/full.rest bs=8k count=200 oflag=sync 2>&1 && echo it all fit || true")
	killGaneshaOf(ctx, naming.DataServer(brim, 0))
	goesOn(ctx, steady)
	Expect(shell(ctx, brim, "cat /brim/kept && mv /brim/kept /brim/moved && mv /brim/moved /brim/kept")).To(Equal("kept\n"))

	message := storageIs(ctx, v1alpha1.ReasonVolumesFull)
	Expect(message).To(And(ContainSubstring("claim data-0-brim-0 of brim-0 is full"), ContainSubstring("raise spec.storage.volumes.size")))
	status := brimServer(ctx).Status
	Expect(status.Servers[0].Fill).To(Equal(v1alpha1.FillFull))
	Expect(*status.Servers[0].Capacity.FreeBytes).To(BeNumerically("<", 1<<20))
	Expect(cluster.Expect(status.Conditions, v1alpha1.ConditionReady, metav1.ConditionTrue)).To(Succeed())
	Eventually(ctx, func() (string, error) {
		return c.Kubectl(ctx, "get", "events", "--field-selector", "involvedObject.name="+brim+",reason="+v1alpha1.ReasonVolumesFull, "-o", "name")
	}).ShouldNot(BeEmpty())

	By("making room")
	shell(ctx, brim, "rm -f /brim/full /brim/full.rest")
	goesOn(ctx, growing)
	storageIs(ctx, v1alpha1.ReasonReady)
	Expect(brimServer(ctx).Status.Servers[0].Fill).To(BeEmpty())

	result, err := growing.Stop(ctx)
	Expect(err).NotTo(HaveOccurred())
	seen := result.Directories[0]
	AddReportEntry("a load that needs room", fmt.Sprintf("%d operations, errors %v, first: %s; %d wrong", seen.Operations, seen.Errors, seen.FirstError, seen.Wrong()), ReportEntryVisibilityAlways)
	Expect(slices.Collect(maps.Keys(seen.Errors))).To(Equal([]string{refusedRoom}), result.Text())
	Expect(seen.Stale+seen.Wrong()).To(BeZero(), result.Text())
	stopped(ctx, steady)
	auditAll(ctx, growing, steady)
	shell(ctx, brim, "rm -r /brim/growing /brim/steady")
}

// auditAll expects that everything is there which loads got confirmed.
func auditAll(ctx context.Context, loads ...*cluster.Load) {
	GinkgoHelper()
	for _, running := range loads {
		ledger, err := running.Ledger(ctx)
		Expect(err).NotTo(HaveOccurred())
		audited(ctx, running.Pod, running.Directories, []string{ledger})
	}
}
