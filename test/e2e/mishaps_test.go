package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/load"
	"github.com/howdah/howdah/internal/naming"
)

// mishap is a kind of failure or change that a running FileServer must survive.
type mishap struct {
	what string
	// do makes it happen, and returns what it did: the name of a pod, for example.
	do func(ctx context.Context, m *mishaps) string
}

// Mishaps by their names. The last ones come in the soak only, and after powerOff only if that is long.
const (
	killGanesha        = "ganesha killed"
	killSupervisor     = "supervisor killed"
	killNamespace      = "namespace server killed"
	killOperator       = "operator killed"
	deleteOperator     = "operator's pod deleted"
	killSteward        = "steward killed"
	deleteDataServer   = "data server's pod deleted"
	forceDataServer    = "data server's pod deleted by force"
	deleteNamespace    = "namespace server's pod deleted"
	scaleNamespace     = "a namespace server more, and fewer"
	powerOff           = "node without power for half a minute"
	replaceAll         = "all data servers replaced for a setting"
	drainNode          = "node drained"
	moveDirectory      = "directory moved to another data server"
	pauseAfterMishap   = 5 * time.Second
	recoveryAfterwards = 5 * time.Minute
)

// mishaps makes one mishap after the other happen, in an order that follows from the seed.
type mishaps struct {
	random *rand.Rand
	kinds  []mishap
	// bag has the kinds that come before one comes again.
	bag []mishap
	// turns counts the mishaps of each pod, so that each gets its turn: kubelets wait ever longer with a container that ends often.
	turns map[string]int
	done  []happened
}

// happened is a mishap that took place, and until when it was made: a rollout takes a minute and more.
type happened struct {
	what, target string
	at, until    time.Time
}

func (h happened) String() string {
	return fmt.Sprintf("%s %s: %s", h.at.UTC().Format("15:04:05"), h.what, h.target)
}

// seed is HOWDAH_E2E_SEED, or another one each time. It is in the report.
func seed() uint64 {
	GinkgoHelper()
	chosen := rand.Uint64() % 1_000_000
	if text := os.Getenv("HOWDAH_E2E_SEED"); text != "" {
		var err error
		chosen, err = strconv.ParseUint(text, 10, 64)
		Expect(err).NotTo(HaveOccurred(), "HOWDAH_E2E_SEED")
	}
	AddReportEntry("seed", fmt.Sprintf("HOWDAH_E2E_SEED=%d", chosen), ReportEntryVisibilityAlways)
	return chosen
}

// newMishaps has kills and deleted pods, and with rare the others too.
func newMishaps(ctx context.Context, seed uint64, rare bool) *mishaps {
	GinkgoHelper()
	m := &mishaps{random: rand.New(rand.NewPCG(seed, 26)), turns: map[string]int{}}
	dataServers, namespaces := naming.SelectDataServers(fileServer), naming.SelectNamespaceServers(fileServer)
	operators := map[string]string{"app.kubernetes.io/name": "howdah"}
	process := func(what, namespace string, labels map[string]string, program string) mishap {
		return mishap{what, func(ctx context.Context, m *mishaps) string {
			pod := m.pick(ctx, namespace, labels)
			output, err := c.Shell(ctx, killer(pod.Spec.NodeName).Name, fmt.Sprintf(kill, pod.Name, program))
			Expect(err).NotTo(HaveOccurred())
			if !strings.Contains(output, "killed") {
				return "" // It was not running.
			}
			return pod.Name
		}}
	}
	pod := func(what, namespace string, labels map[string]string, flags ...string) mishap {
		return mishap{what, func(ctx context.Context, m *mishaps) string {
			pod := m.pick(ctx, namespace, labels)
			output, err := c.Kubectl(ctx, append([]string{"delete", "pod", pod.Name, "--namespace", namespace, "--wait=false"}, flags...)...)
			Expect(err).NotTo(HaveOccurred(), output)
			return pod.Name
		}}
	}
	m.kinds = []mishap{
		process(killGanesha, c.Namespace, dataServers, "ganesha.nfsd"),
		process(killSupervisor, c.Namespace, dataServers, "howdah"),
		process(killNamespace, c.Namespace, namespaces, "howdah"),
		process(killOperator, operator, operators, "howdah"),
		// It also gives kubelet a new pod, which starts at once: one that was killed 5 times or more in a row waits up to 5 minutes.
		pod(deleteOperator, operator, operators),
		pod(deleteDataServer, c.Namespace, dataServers),
		pod(forceDataServer, c.Namespace, dataServers, "--force", "--grace-period=0"),
		pod(deleteNamespace, c.Namespace, namespaces),
	}
	stewards := &corev1.PodList{}
	Expect(c.List(ctx, stewards, client.InNamespace(c.Namespace), client.MatchingLabels(naming.SelectSteward(fileServer)))).To(Succeed())
	if len(stewards.Items) > 0 {
		m.kinds = append(m.kinds, process(killSteward, c.Namespace, naming.SelectSteward(fileServer), "howdah"))
	}
	if rare {
		m.kinds = append(m.kinds, mishap{scaleNamespace, scaleNamespaceServers})
		if nodeOff != "" {
			m.kinds = append(m.kinds, mishap{powerOff, switchSomeNodeOff})
		}
	}
	if rare && soakFor >= longSoak {
		m.kinds = append(m.kinds, mishap{replaceAll, replaceDataServers}, mishap{drainNode, drainSomeNode})
		m.kinds = append(m.kinds, cuts()...)
	}
	return m
}

// pick chooses a running pod among those that had the fewest mishaps.
func (m *mishaps) pick(ctx context.Context, namespace string, labels map[string]string) corev1.Pod {
	GinkgoHelper()
	var running []corev1.Pod
	Eventually(ctx, func(ctx context.Context) ([]corev1.Pod, error) {
		list := &corev1.PodList{}
		err := c.List(ctx, list, client.InNamespace(namespace), client.MatchingLabels(labels))
		running = slices.DeleteFunc(list.Items, func(pod corev1.Pod) bool {
			return pod.DeletionTimestamp != nil || pod.Status.Phase != corev1.PodRunning
		})
		return running, err
	}).ShouldNot(BeEmpty(), "a running pod with %v", labels)
	slices.SortFunc(running, func(a, b corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	m.random.Shuffle(len(running), func(i, j int) { running[i], running[j] = running[j], running[i] })
	slices.SortStableFunc(running, func(a, b corev1.Pod) int { return m.turns[a.Name] - m.turns[b.Name] })
	m.turns[running[0].Name]++
	return running[0]
}

// next makes the next mishap happen, and waits until all is well again.
func (m *mishaps) next(ctx context.Context) {
	GinkgoHelper()
	if len(m.bag) == 0 {
		m.bag = slices.Clone(m.kinds)
		m.random.Shuffle(len(m.bag), func(i, j int) { m.bag[i], m.bag[j] = m.bag[j], m.bag[i] })
	}
	kind := m.bag[0]
	m.bag = m.bag[1:]
	at := time.Now()
	if target := kind.do(ctx, m); target != "" {
		m.done = append(m.done, happened{kind.what, target, at, time.Now()})
		fmt.Fprintln(GinkgoWriter, m.done[len(m.done)-1])
	}
	// What is known of the FileServer is from before the mishap at first, also for seconds after its pod was deleted.
	time.Sleep(time.Second + time.Duration(m.random.Int64N(int64(pauseAfterMishap))))
	Eventually(ctx, dataPodsReady).WithTimeout(bound(recoveryAfterwards)).Should(Succeed(), "after %s", kind.what)
	Eventually(ctx, allReady).WithTimeout(bound(recoveryAfterwards)).Should(Succeed(), "after %s", kind.what)
}

// dataPodsReady is nil if each data server has a pod that is ready and stays.
func dataPodsReady(ctx context.Context) error {
	pods, err := dataPods(ctx)
	if err == nil && len(pods) != serverCount {
		err = fmt.Errorf("%d data servers of %d have a pod", len(pods), serverCount)
	}
	for name, pod := range pods {
		if err == nil && !isReady(pod) {
			err = fmt.Errorf("pod %s is not ready, or ends", name)
		}
	}
	return err
}

// count is how many mishaps of some kinds there were; none means all.
func (m *mishaps) count(kinds ...string) (count int) {
	for _, h := range m.done {
		if len(kinds) == 0 || slices.Contains(kinds, h.what) {
			count++
		}
	}
	return count
}

// report writes what happened, and the stalls of directories whose data server had no mishap meanwhile. owners are the data servers by path.
func (m *mishaps) report(results []load.Result, owners map[string]string) {
	lines := make([]string, 0, len(m.done))
	for _, h := range m.done {
		lines = append(lines, h.String())
	}
	AddReportEntry(fmt.Sprintf("%d mishaps", len(m.done)), strings.Join(lines, "\n"), ReportEntryVisibilityAlways)
	others := load.Stall{}
	for _, result := range results {
		for _, d := range result.Directories {
			for _, stall := range d.Stalls {
				if stall.Seconds > others.Seconds && !m.hit(owners[d.Path], stall) {
					others = stall
				}
			}
		}
	}
	AddReportEntry("longest stall of a second or more in a directory whose data server had no mishap then", others.String(), ReportEntryVisibilityAlways)
}

// hit tells whether a data server had a mishap during a stall or shortly before it. A restarted server has its grace period then.
func (m *mishaps) hit(server string, stall load.Stall) bool {
	end := stall.At.Add(time.Duration(stall.Seconds * float64(time.Second)))
	return slices.ContainsFunc(m.done, func(h happened) bool {
		return (h.target == server || h.what == powerOff || h.what == replaceAll) && h.at.Before(end) && h.until.After(stall.At.Add(-time.Minute))
	})
}

func scaleNamespaceServers(ctx context.Context, _ *mishaps) string {
	GinkgoHelper()
	for _, replicas := range []int32{3, 2} {
		output, err := c.Kubectl(ctx, "patch", "fileserver", fileServer, "--type=merge", "-p", fmt.Sprintf(`{"spec":{"namespaceServers":{"replicas":%d}}}`, replicas))
		Expect(err).NotTo(HaveOccurred(), output)
		Eventually(ctx, func(ctx context.Context) (int, error) {
			return len(slices.DeleteFunc(namespacePods(ctx), func(pod corev1.Pod) bool { return pod.DeletionTimestamp != nil })), nil
		}).WithTimeout(bound(2 * time.Minute)).Should(BeEquivalentTo(replicas))
		Eventually(ctx, namespaceServersReady).WithTimeout(bound(2 * time.Minute)).Should(Succeed())
	}
	return fileServer
}

// switchSomeNodeOff takes the power of a node that has no client pod, for half a minute.
func switchSomeNodeOff(ctx context.Context, m *mishaps) string {
	GinkgoHelper()
	used := map[string]bool{}
	for _, name := range []string{clientA, clientB} {
		pod := &corev1.Pod{}
		Expect(c.Get(ctx, name, pod)).To(Succeed())
		used[pod.Spec.NodeName] = true
	}
	nodes := &corev1.NodeList{}
	Expect(c.List(ctx, nodes)).To(Succeed())
	free := slices.DeleteFunc(nodes.Items, func(node corev1.Node) bool {
		_, control := node.Labels["node-role.kubernetes.io/control-plane"]
		return used[node.Name] || control
	})
	if len(free) == 0 {
		return ""
	}
	node := free[m.random.IntN(len(free))].Name
	switchNode(ctx, nodeOff, node)
	func() {
		defer switchNode(context.WithoutCancel(ctx), nodeOn, node)
		time.Sleep(30 * time.Second)
	}()
	// Its kubelet starts its pods again, the killer among them.
	Eventually(ctx, func(ctx context.Context) error {
		_, err := c.Shell(ctx, killer(node).Name, "true")
		return err
	}).WithTimeout(bound(recoveryAfterwards)).Should(Succeed())
	return node
}

// endsOf is the number of ends that the data servers report, together.
func endsOf(ctx context.Context) (count int64) {
	GinkgoHelper()
	object := &v1alpha1.FileServer{}
	Expect(c.Get(ctx, fileServer, object)).To(Succeed())
	for _, server := range object.Status.Servers {
		if server.LastEnd.Count != nil {
			count += *server.LastEnd.Count
		}
	}
	return count
}

// replaceDataServers changes a setting that takes new pods.
func replaceDataServers(ctx context.Context, m *mishaps) string {
	GinkgoHelper()
	cpu := resource.NewMilliQuantity(int64(11+m.count(replaceAll)%2), resource.DecimalSI)
	changeFileServer(ctx, func(fs *v1alpha1.FileServer) {
		fs.Spec.Resources = &corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: *cpu, corev1.ResourceMemory: resource.MustParse("256Mi")}}
	})
	serversUpdated(ctx, fileServer)
	return fileServer
}

// drainSomeNode evicts a data server, and lets pods to its node again some seconds later. Others on the node stay: who kills, and clients.
func drainSomeNode(ctx context.Context, m *mishaps) string {
	GinkgoHelper()
	selector := naming.SelectDataServers(fileServer)
	pod := m.pick(ctx, c.Namespace, selector)
	output, err := c.Kubectl(ctx, "drain", pod.Spec.NodeName, "--pod-selector", labels.SelectorFromSet(selector).String(),
		"--delete-emptydir-data", "--timeout="+bound(time.Minute).String())
	func() {
		defer func() {
			output, err := c.Kubectl(context.WithoutCancel(ctx), "uncordon", pod.Spec.NodeName)
			Expect(err).NotTo(HaveOccurred(), output)
		}()
		Expect(err).NotTo(HaveOccurred(), output)
		time.Sleep(10 * time.Second)
	}()
	return pod.Name
}
