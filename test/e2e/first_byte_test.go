package e2e

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/test/cluster"
	"github.com/howdah/howdah/test/timeline"
)

// firstByteRounds is how often a FileServer, a share and a pod are applied.
const firstByteRounds = 5

// settle is how long the cluster has between two rounds.
const settle = 5 * time.Second

// readsFirst writes and reads a byte as soon as it can, and prints when that was, in seconds since 1970.
const readsFirst = `until echo seed 2>/dev/null >/share/train/0/first && [ "$(cat /share/train/0/first)" = seed ]; do sleep 0.05; done; date +%s.%N; exec sleep infinity`

// applied applies a FileServer, a share and a pod at once, and follows them to the pod's first byte. It removes them afterwards.
func applied(ctx context.Context, name string) (*timeline.Timeline, time.Duration) {
	GinkgoHelper()
	following, stop := context.WithCancel(ctx)
	defer stop()
	var mutex sync.Mutex
	var steps *timeline.Timeline
	for _, list := range []client.ObjectList{
		&corev1.PodList{}, &corev1.PersistentVolumeClaimList{}, &appsv1.StatefulSetList{}, &appsv1.DeploymentList{}, &discoveryv1.EndpointSliceList{},
		&internalv1.DataServerList{}, &v1alpha1.FileServerList{}, &v1alpha1.FileShareList{},
	} {
		Expect(c.Follow(following, list, func(object client.Object) {
			if !strings.Contains(object.GetName(), name) { // Objects of the suite's own FileServer.
				return
			}
			now := time.Now()
			mutex.Lock()
			defer mutex.Unlock()
			if steps == nil {
				return
			}
			for _, step := range timeline.Steps(object) {
				steps.Reach(now, step)
			}
		})).To(Succeed())
	}
	server := newFileServer(ctx, name, serverCount)
	tree := newShare(name, "/"+name, 2, "train/{0..5}")
	tree.Spec.FileServerRef.Name = name
	tree.Spec.ReclaimPolicy = v1alpha1.ReclaimDelete
	start := time.Now()
	mutex.Lock()
	steps = timeline.New(start)
	mutex.Unlock()
	Expect(c.Create(ctx, server)).To(Succeed())
	Expect(c.Create(ctx, tree)).To(Succeed())
	Expect(c.RunClient(ctx, cluster.ClientPod{
		Name: name, Claims: map[string]string{shareMount: name}, Beside: true, Command: []string{"sh", "-c", readsFirst},
	})).To(Succeed())

	var first time.Time
	Eventually(ctx, func(ctx context.Context) error {
		output, err := c.Kubectl(ctx, "logs", name)
		if err != nil {
			return err
		}
		seconds, fraction, _ := strings.Cut(strings.TrimSpace(output), ".")
		whole, err := strconv.ParseInt(seconds, 10, 64)
		if err != nil {
			return fmt.Errorf("pod %s has not read yet: %w", name, err)
		}
		parts, err := strconv.ParseInt(fraction, 10, 64)
		first = time.Unix(whole, parts)
		return err
	}).WithTimeout(bound(2 * time.Minute)).Should(Succeed())
	stop()
	mutex.Lock()
	defer mutex.Unlock()
	steps.Reach(first, "pod "+name+" has read its first byte")
	steps.Rename(name, "x")

	Expect(c.Delete(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: c.Namespace}})).To(Succeed())
	Expect(c.WaitGone(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: c.Namespace}})).To(Succeed())
	Expect(c.Delete(ctx, tree)).To(Succeed())
	Expect(c.WaitGone(ctx, tree)).To(Succeed())
	Expect(c.Delete(ctx, server)).To(Succeed())
	Expect(c.WaitGone(ctx, server)).To(Succeed())
	// What is still being removed would disturb the next round.
	for _, args := range [][]string{
		{"delete", "pvc", "-l", v1alpha1.FileServerLabel + "=" + name}, {"wait", "--for=delete", "pods", "-l", v1alpha1.FileServerLabel + "=" + name, "--timeout=2m"},
	} {
		output, err := c.Kubectl(ctx, args...)
		Expect(err).NotTo(HaveOccurred(), output)
	}
	time.Sleep(settle)
	return steps, first.Sub(start)
}

// The times of the pod and of the machine that runs the tests are compared: their clocks must agree, as those of a lab do.
var _ = Describe("the first byte after apply", Label("first-byte"), func() {
	It("comes, and the report shows where the time goes", func(ctx SpecContext) {
		var rounds []*timeline.Timeline
		var times []time.Duration
		for i := range firstByteRounds {
			round, took := applied(ctx, fmt.Sprintf("round-%d", i))
			rounds, times = append(rounds, round), append(times, took)
		}
		report := fmt.Sprintf("FIGURE from apply to the first byte read in a pod, in the order of the rounds: %v\n%s", times, timeline.Report(rounds))
		AddReportEntry("where the time goes", report, ReportEntryVisibilityAlways)
	}, NodeTimeout(bound(10*time.Minute)))
})
