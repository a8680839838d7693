package argocd

import (
	"context"
	"strconv"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/test/cluster"
)

const (
	loadPod = "load"
	// loadScript writes half a MB to the directories in turn and reads it back. It ends at the first error, and the pod with it.
	loadScript = `i=0
while :; do
  d=/data/train/$((i % 6))
  dd if=/dev/zero of=$d/load bs=64k count=8 status=none && cmp -s -n 524288 $d/load /dev/zero || exit 1
  i=$((i + 1))
  echo $i >/tmp/rounds
done`
)

// rounds is how many rounds the load has done; it fails the spec if the load has ended with an error.
func rounds(ctx context.Context) int {
	GinkgoHelper()
	output, err := c.Shell(ctx, loadPod, "cat /tmp/rounds")
	Expect(err).NotTo(HaveOccurred())
	n, err := strconv.Atoi(strings.TrimSpace(output))
	Expect(err).NotTo(HaveOccurred())
	return n
}

func startLoad(ctx context.Context) {
	GinkgoHelper()
	Expect(c.RunClient(ctx, cluster.ClientPod{Name: loadPod, Claims: map[string]string{"/data": share}, Command: []string{"sh", "-c", loadScript}})).To(Succeed())
	Eventually(ctx, func(ctx context.Context) error {
		_, err := c.Shell(ctx, loadPod, "test -s /tmp/rounds")
		return err
	}).WithTimeout(scaled(90 * time.Second)).Should(Succeed())
}

// inShare runs a script in a pod that mounts the share "home" at /data, and returns its output.
func inShare(ctx context.Context, pod, script string) string {
	GinkgoHelper()
	Expect(c.RunClient(ctx, cluster.ClientPod{Name: pod, Claims: map[string]string{"/data": "home"}})).To(Succeed())
	timeout, cancel := context.WithTimeout(ctx, scaled(time.Minute))
	defer cancel()
	Expect(c.WaitPodReady(timeout, pod)).To(Succeed())
	output, err := c.Shell(ctx, pod, script)
	Expect(err).NotTo(HaveOccurred())
	deletePod(ctx, team, pod)
	return output
}

// deletePod deletes a pod and does not wait until it is gone.
func deletePod(ctx context.Context, namespace, name string) {
	GinkgoHelper()
	pod := &corev1.Pod{}
	pod.Namespace, pod.Name = namespace, name
	Expect(c.Delete(ctx, pod)).To(Succeed())
}

// pods are the names of the pods of a component.
func pods(ctx context.Context, namespace, component string) []string {
	GinkgoHelper()
	list := &corev1.PodList{}
	Expect(c.List(ctx, list, client.InNamespace(namespace), client.MatchingLabels{v1alpha1.ComponentLabel: component})).To(Succeed())
	var names []string
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	Expect(names).NotTo(BeEmpty(), "pods of %s in %s", component, namespace)
	return names
}

// samples count what an Application was in each second.
type samples struct {
	total, synced, healthy int
	syncs, comparisons     map[string]bool
}

func (s *samples) add(app application) {
	s.total++
	if app.Sync.Status == "Synced" {
		s.synced++
	}
	if app.Health.Status == "Healthy" {
		s.healthy++
	}
	s.syncs[app.OperationState.StartedAt] = true
	s.comparisons[app.ReconciledAt] = true
}

// watch samples Applications every second for a time and has Argo CD compare them every ten seconds. It calls each disturbance at its part
// of the time; the last part has none.
func watch(ctx context.Context, duration time.Duration, names []string, disturbances ...func()) map[string]*samples {
	GinkgoHelper()
	all := map[string]*samples{}
	for _, name := range names {
		all[name] = &samples{syncs: map[string]bool{}, comparisons: map[string]bool{}}
	}
	part := duration / time.Duration(len(disturbances)+1)
	start, done := time.Now(), 0
	for second := 1; time.Since(start) < duration; second++ {
		if done < len(disturbances) && time.Since(start) >= time.Duration(done)*part {
			disturbances[done]()
			done++
		}
		Expect(sleep(ctx, time.Second)).To(Succeed())
		for _, name := range names {
			app, err := readApplication(ctx, name)
			Expect(err).NotTo(HaveOccurred())
			all[name].add(app)
		}
		if second%10 == 0 {
			refreshAll(ctx)
		}
	}
	return all
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
