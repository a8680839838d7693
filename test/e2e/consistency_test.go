package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/naming"
	"github.com/howdah/howdah/test/cluster"
	"github.com/howdah/howdah/test/consistency"
)

const (
	namesShare, filesShare = "names", "files"
	// uncached is a mount whose kernel asks the server for each name and each attribute (nfs(5)).
	uncachedClaim, uncachedMount = "uncached", "/uncached"

	// lanes is how many operations each pod has in flight at the most.
	lanes = 3
	// Before and after the mishap of a round clients work for this long.
	roundMargin = 4 * time.Second
	roundRest   = 3 * time.Minute
	checkLimit  = time.Minute
	// nameAge is how old what a namespace server shows may be (docs/use/everyday.md), and caughtUp how long one needs after it was
	// apart from the API: client-go asks again after 800 ms, 1.6 s …
	nameAge  = 3 * time.Second
	caughtUp = 20 * time.Second

	// settled is less than the time after which the leader finishes what another namespace server has begun (15 s).
	settled = 10 * time.Second

	cutFromAPI     = "namespace server cut off from the API"
	cutFromServers = "namespace server cut off from a data server"
	cutFor         = 15 * time.Second
)

// nodeExec is a command that runs a command on a node: the node's name, "--" and the command follow. hack/e2e.sh has it for the lab.
var nodeExec = os.Getenv("HOWDAH_E2E_NODE_EXEC")

// rounds is how many rounds of the consistency check there are: HOWDAH_E2E_ROUNDS.
var rounds int

func roundCount() (int, error) { return numberOf("HOWDAH_E2E_ROUNDS", 9) }

// checkers are the client pods of the check, one on each node, and the agents in them.
type checkers struct {
	pods   []string
	agents []*consistency.Agent
}

func newCheckers(ctx context.Context) *checkers {
	GinkgoHelper()
	strict := append(slices.Clone(options), "lookupcache=none", "noac")
	Expect(c.NFSClaim(ctx, uncachedClaim, namespaceServers(ctx), "/", strict...)).To(Succeed())
	DeferCleanup(func(ctx SpecContext) { Expect(c.DeleteNFSClaim(ctx, uncachedClaim)).To(Succeed()) }, NodeTimeout(bound(time.Minute)))
	nodes := &corev1.NodeList{}
	Expect(c.List(ctx, nodes)).To(Succeed())
	made := &checkers{}
	for _, node := range nodes.Items {
		name := "checker-" + node.Name
		Expect(c.RunClient(ctx, cluster.ClientPod{
			Name: name, Claims: map[string]string{uncachedMount: uncachedClaim, treeMount: treeClaim},
			Beside:       true,
			NodeSelector: map[string]string{corev1.LabelHostname: node.Labels[corev1.LabelHostname]},
		})).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { deleted(ctx, clientPod(name)) }, NodeTimeout(bound(2*time.Minute)))
		made.pods = append(made.pods, name)
	}
	for i, node := range nodes.Items {
		Expect(c.WaitPodReady(ctx, made.pods[i])).To(Succeed())
		made.agents = append(made.agents, startAgent(made.pods[i], buildAgent(ctx, node.Status.NodeInfo.Architecture)))
	}
	return made
}

func buildAgent(ctx context.Context, architecture string) string {
	GinkgoHelper()
	file := filepath.Join(GinkgoT().TempDir(), "agent")
	build := exec.CommandContext(ctx, "go", "build", "-ldflags", "-s -w", "-o", file, "../consistency/agent")
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+architecture)
	output, err := build.CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), string(output))
	return file
}

// startAgent copies the agent into a pod and talks with it through kubectl until the spec ends.
func startAgent(pod, file string) *consistency.Agent {
	GinkgoHelper()
	program, err := os.Open(file)
	Expect(err).NotTo(HaveOccurred())
	defer func() { Expect(program.Close()).To(Succeed()) }()
	ctx, cancel := context.WithCancel(context.Background())
	DeferCleanup(cancel)
	_, err = c.ShellInput(ctx, pod, "cat > /tmp/agent && chmod 755 /tmp/agent", program)
	Expect(err).NotTo(HaveOccurred())
	command := exec.CommandContext(ctx, "kubectl", "exec", "--namespace", c.Namespace, "--stdin", pod, "--", "/tmp/agent")
	command.Stderr = GinkgoWriter
	to, err := command.StdinPipe()
	Expect(err).NotTo(HaveOccurred())
	from, err := command.StdoutPipe()
	Expect(err).NotTo(HaveOccurred())
	Expect(command.Start()).To(Succeed())
	return consistency.NewAgent(to, from)
}

// cutPod drops all packets between a pod and addresses, in the pod's network namespace.
const cutPod = `for ns in /run/netns/*; do
	nsenter --net=$ns ip -o addr | grep -q ' %[1]s/' || continue
	for far in %[2]s; do
		case $far in *:*) tables=ip6tables ;; *) tables=iptables ;; esac
		nsenter --net=$ns $tables -w %[3]s OUTPUT -d $far -j DROP && nsenter --net=$ns $tables -w %[3]s INPUT -s $far -j DROP || exit 1
	done
	echo done
done`

func onNode(ctx context.Context, node, script string) string {
	GinkgoHelper()
	words := append(strings.Fields(nodeExec), node, "--", "sh", "-c", script)
	output, err := exec.CommandContext(ctx, words[0], words[1:]...).CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), "on %s: %s: %s", node, script, output)
	return string(output)
}

// cutOff cuts a namespace server off from some addresses for a while.
func cutOff(ctx context.Context, m *mishaps, addresses []string) string {
	GinkgoHelper()
	pod := m.pick(ctx, c.Namespace, naming.SelectNamespaceServers(fileServer))
	rules := func(ctx context.Context, what string) {
		GinkgoHelper()
		Expect(onNode(ctx, pod.Spec.NodeName, fmt.Sprintf(cutPod, pod.Status.PodIP, strings.Join(addresses, " "), what))).To(ContainSubstring("done"))
	}
	rules(ctx, "-I")
	func() {
		defer rules(context.WithoutCancel(ctx), "-D")
		time.Sleep(cutFor)
	}()
	return pod.Name
}

// apiAddresses are those of the API server: the Service's, and those behind it, which a connection keeps.
func apiAddresses(ctx context.Context) []string {
	GinkgoHelper()
	service := &corev1.Service{}
	Expect(c.Client.Get(ctx, client.ObjectKey{Namespace: metav1.NamespaceDefault, Name: "kubernetes"}, service)).To(Succeed())
	return []string{service.Spec.ClusterIP}
}

// cuts are the mishaps of networks. On Ceph moves of directories belong here, too: an annotation asks for them (test/ceph/moves_test.go).
func cuts() []mishap {
	if nodeExec == "" {
		return nil
	}
	return []mishap{
		{cutFromAPI, func(ctx context.Context, m *mishaps) string { return cutOff(ctx, m, apiAddresses(ctx)) }},
		{cutFromServers, func(ctx context.Context, m *mishaps) string {
			server := m.pick(ctx, c.Namespace, naming.SelectDataServers(fileServer))
			service := &corev1.Service{}
			Expect(c.Get(ctx, server.Name, service)).To(Succeed())
			return cutOff(ctx, m, []string{service.Spec.ClusterIP, server.Status.PodIP})
		}},
	}
}

// namespaceMishaps are those in which clients' kernels may send a request again, or after which a server shows what is old.
var namespaceMishaps = []string{killNamespace, deleteNamespace, cutFromAPI, cutFromServers}

// round has clients on all nodes work while a mishap happens, in directories and files of its own, and judges what they saw.
func (k *checkers) round(ctx context.Context, n int, seed uint64, m *mishaps, dirs []string) (consistency.History, consistency.Verdict) {
	GinkgoHelper()
	directories := &consistency.Directories{
		Kept: []string{fmt.Sprintf("r%d-k0", n), fmt.Sprintf("r%d-k1", n)}, Gone: []string{fmt.Sprintf("r%d-g", n)},
		Names: []string{"x", "y", "z"},
	}
	files := &consistency.Files{}
	for _, dir := range dirs {
		files.Locked = append(files.Locked, fmt.Sprintf("%s/r%d-locked", dir, n))
		files.Open = append(files.Open, fmt.Sprintf("%s/r%d-open", dir, n))
	}
	shell(ctx, k.pods[0], "cd %s/%s && mkdir %s && cd %s/%s && touch %s", uncachedMount, namesShare, strings.Join(directories.Kept, " "),
		treeMount, filesShare, strings.Join(slices.Concat(files.Locked, files.Open), " "))
	for _, pod := range k.pods {
		Eventually(ctx, func(ctx context.Context) error {
			_, err := c.Shell(ctx, pod, fmt.Sprintf("cd %s/%s && ls -d %s && cd %s/%s && ls %s", uncachedMount, namesShare, strings.Join(directories.Kept, " "),
				treeMount, filesShare, strings.Join(slices.Concat(files.Locked, files.Open), " ")))
			return err
		}).Should(Succeed())
	}
	var clients []consistency.Client
	for range lanes {
		for _, agent := range k.agents {
			clients = append(clients, &consistency.Remote{Agent: agent, Directories: uncachedMount + "/" + namesShare, Files: treeMount + "/" + filesShare})
		}
	}
	runner := consistency.NewRunner()
	working, stop := context.WithCancel(ctx)
	defer stop()
	worked := make(chan struct{})
	go func() {
		defer close(worked)
		runner.Load(working, seed+uint64(n), clients, 30*time.Millisecond, bound(roundRest), func(random *rand.Rand) consistency.Request {
			if random.IntN(2) == 0 {
				return files.Next(random)
			}
			return directories.Next(random)
		})
	}()
	time.Sleep(roundMargin)
	before, from := m.count(), runner.Now()
	m.next(ctx)
	until := runner.Now() + caughtUp
	time.Sleep(roundMargin)
	stop()
	<-worked

	history := runner.History().RepeatedAfter(settled)
	// A kernel looks up what it is to change, so a change may be refused because of what a namespace server shows.
	promise := consistency.Promise{Stale: nameAge, Refusals: true, Aliases: true, TwoWalks: true}
	if m.count() > before && slices.Contains(namespaceMishaps, m.done[before].what) {
		window := consistency.Window{From: from, Until: until}
		// Not RepeatedDuring: no server is frozen here, so none does a request after another one has answered it. The check does not end
		// if there are a hundred operations that may happen at any later time.
		history, promise.Behind = history.TwiceDuring(window), []consistency.Window{window}
	}
	verdict := consistency.Tree(history, directories.Kept, promise, checkLimit)
	verdict.Merge("locked", consistency.Registers(history, checkLimit))
	verdict.Merge("open", consistency.CloseToOpen(history))
	for i := range history {
		if o := &history[i]; o.Error != "" && (o.Kind == consistency.Read || o.Kind == consistency.Write || o.Kind == consistency.Swap) {
			verdict.Violations = append(verdict.Violations, "an operation on a file failed: "+o.String())
		}
	}
	return history, verdict
}

var _ = Describe("Clients of all nodes, while servers fail and networks are cut", Label("consistency"), func() {
	It("see directories whose changes are linearizable, registers under locks that are, and files that are close-to-open consistent", func(ctx SpecContext) {
		startKillers(ctx)
		for name, depth := range map[string]int32{namesShare: 2, filesShare: 1} {
			object := newShare(name, "/"+name, depth)
			if name == filesShare {
				object.Spec.Directories = []string{fmt.Sprintf("d{0..%d}", serverCount-1)}
			}
			object.Spec.ReclaimPolicy = v1alpha1.ReclaimDelete
			Expect(c.Create(ctx, object)).To(Succeed())
			DeferCleanup(func(ctx SpecContext) { deleted(ctx, object) }, NodeTimeout(bound(2*time.Minute)))
			Eventually(ctx, func() error { return shareReady(ctx, name) }).Should(Succeed())
		}
		found, err := owners(ctx, filesShare)
		Expect(err).NotTo(HaveOccurred())
		var dirs []string
		for dir := range found {
			dirs = append(dirs, dir)
		}
		slices.Sort(dirs)
		Expect(dirs).To(HaveLen(serverCount))
		k := newCheckers(ctx)
		chosen := seed()
		m := newMishaps(ctx, chosen, false)
		m.kinds = append(m.kinds, cuts()...)

		folder := filepath.Join("..", "..", ".test-results", "consistency", fmt.Sprintf("e2e-%d", chosen))
		Expect(os.MkdirAll(folder, 0o755)).To(Succeed())
		var all consistency.Verdict
		answered, open := 0, 0
		for n := range rounds {
			history, verdict := k.round(ctx, n, chosen, m, dirs)
			a, o := history.Count()
			answered, open = answered+a, open+o
			fmt.Fprintf(GinkgoWriter, "round %d: %d operations, %d without an answer, names were up to %s old; %v\n", n, a, o, verdict.Age, verdict.Err())
			if verdict.Err() != nil {
				Expect(os.WriteFile(filepath.Join(folder, fmt.Sprintf("round-%d.txt", n)), []byte(history.String()), 0o600)).To(Succeed())
			}
			all.Merge(fmt.Sprintf("round-%d", n), verdict)
		}
		AddReportEntry("consistency", fmt.Sprintf("%d rounds with %d mishaps, %d operations and %d without an answer; names were up to %s old",
			rounds, m.count(), answered, open, all.Age.Round(time.Millisecond)), ReportEntryVisibilityAlways)
		Expect(answered).To(BeNumerically(">", 50*rounds), "too few operations to mean anything")
		drawn, err := all.Draw(folder)
		Expect(err).NotTo(HaveOccurred())
		AddReportEntry("drawn", fmt.Sprint(drawn))
		Expect(all.Err()).NotTo(HaveOccurred())
	}, SpecTimeout(bound(40*time.Minute)))
})
