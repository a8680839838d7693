package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/naming"
	"github.com/howdah/howdah/internal/serverpod"
	"github.com/howdah/howdah/test/cluster"
)

// nodeOff and nodeOn are commands that take a node's power and give it back: the shell gets them with the node's name at
// the end. hack/e2e.sh has them for the lab.
var (
	nodeOff = os.Getenv("HOWDAH_E2E_NODE_OFF")
	nodeOn  = os.Getenv("HOWDAH_E2E_NODE_ON")
)

const (
	// lostGoal is how soon a dead node's data server must be known, by everything that people and dashboards look at.
	lostGoal = 10 * time.Second
	// operatorGoal is for what the operator says, if it was lost with the node: Kubernetes notices after some 50 s, lets it go
	// after 10 more, and it starts elsewhere.
	operatorGoal = 90 * time.Second
)

func switchNode(ctx context.Context, command, node string) {
	GinkgoHelper()
	output, err := exec.CommandContext(ctx, "sh", "-c", command+" "+node).CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), "%s %s: %s", command, node, output)
}

// leaderPod is the namespace server that tells the API which data servers do not answer.
// Between two of them there is none for a moment.
func leaderPod(ctx context.Context) *corev1.Pod {
	GinkgoHelper()
	pod := &corev1.Pod{}
	Eventually(ctx, func(ctx context.Context) error {
		lease := &coordinationv1.Lease{}
		if err := c.Get(ctx, naming.NamespaceServers(fileServer), lease); err != nil {
			return err
		}
		return c.Get(ctx, ptr.Deref(lease.Spec.HolderIdentity, ""), pod)
	}).Should(Succeed())
	return pod
}

func operatorNode(ctx context.Context) string {
	GinkgoHelper()
	pods := &corev1.PodList{}
	Expect(c.List(ctx, pods, client.InNamespace("howdah-system"), client.MatchingLabels{"app.kubernetes.io/name": "howdah"})).To(Succeed())
	pods.Items = slices.DeleteFunc(pods.Items, func(p corev1.Pod) bool { return p.DeletionTimestamp != nil || p.Spec.NodeName == "" })
	Expect(pods.Items).NotTo(BeEmpty())
	return pods.Items[0].Spec.NodeName
}

// keepOperatorOff moves the operator to another node: what a lost operator costs is another question (docs/start/concepts.md).
func keepOperatorOff(ctx context.Context, node string) {
	GinkgoHelper()
	if operatorNode(ctx) != node {
		return
	}
	kubectl := func(args ...string) {
		GinkgoHelper()
		_, err := c.Kubectl(ctx, args...)
		Expect(err).NotTo(HaveOccurred())
	}
	kubectl("cordon", node)
	defer kubectl("uncordon", node)
	kubectl("-n", "howdah-system", "delete", "pod", "-l", "app.kubernetes.io/name=howdah", "--wait=true")
	kubectl("-n", "howdah-system", "rollout", "status", "deployment/howdah", "--timeout=3m")
	Eventually(ctx, operatorNode).ShouldNot(Equal(node))
}

// namespaceServersApart waits for two namespace servers on two nodes.
func namespaceServersApart(ctx context.Context) error {
	nodes := map[string]bool{}
	for _, pod := range namespacePods(ctx) {
		if pod.DeletionTimestamp == nil {
			nodes[pod.Spec.NodeName] = true
		}
	}
	if len(nodes) < 2 {
		return fmt.Errorf("all namespace servers are on %v", nodes)
	}
	return namespaceServersReady(ctx)
}

// clientOfAnotherNode finds a client pod whose namespace server is on another node than itself.
func clientOfAnotherNode(ctx context.Context) (pod, node string, err error) {
	for _, name := range []string{clientA, clientB} {
		object := &corev1.Pod{}
		if err := c.Get(ctx, name, object); err != nil {
			return "", "", err
		}
		for _, server := range namespacePods(ctx) {
			if server.DeletionTimestamp != nil || server.Spec.NodeName == object.Spec.NodeName {
				continue
			}
			text, err := c.Kubectl(ctx, "get", "--raw", fmt.Sprintf("/api/v1/namespaces/%s/pods/%s:%d/proxy%s", c.Namespace, server.Name, v1alpha1.ManagerPort, serverpod.ClientsPath))
			if err != nil {
				return "", "", err
			}
			var clients serverpod.Clients
			if err := json.Unmarshal([]byte(text), &clients); err != nil {
				return "", "", err
			}
			if slices.ContainsFunc(clients.Clients, func(client serverpod.Client) bool { return client.Address == object.Status.HostIP }) {
				return name, server.Spec.NodeName, nil
			}
		}
	}
	return "", "", errors.New("each client's namespace server is on the client's node")
}

func allReady(ctx context.Context) error {
	object := &v1alpha1.FileServer{}
	if err := c.Get(ctx, fileServer, object); err != nil {
		return err
	}
	if err := cluster.Expect(object.Status.Conditions, v1alpha1.ConditionReady, metav1.ConditionTrue); err != nil {
		return err
	}
	if err := shareReady(ctx, share); err != nil {
		return err
	}
	return namespaceServersReady(ctx)
}

// loss is a data server that is lost with its node, and who looks on from elsewhere.
type loss struct {
	node, server string
	// directory is one that it owns, other is another server's.
	directory, other string
	// survivor is a client pod on another node.
	survivor string
}

func newLoss(ctx SpecContext, node string) loss {
	GinkgoHelper()
	l := loss{node: node}
	pods := &corev1.PodList{}
	Expect(c.List(ctx, pods, client.InNamespace(c.Namespace), client.MatchingLabels(naming.SelectDataServers(fileServer)))).To(Succeed())
	owned := directoriesBelow(ctx, share, "train/")
	for _, pod := range pods.Items {
		switch directories := owned[pod.Name]; {
		case len(directories) == 0:
		case pod.Spec.NodeName == node:
			l.server, l.directory = pod.Name, directories[0]
		default:
			l.other = directories[0]
		}
	}
	for _, name := range []string{clientA, clientB} {
		pod := &corev1.Pod{}
		Expect(c.Get(ctx, name, pod)).To(Succeed())
		if pod.Spec.NodeName != node {
			l.survivor = name
		}
	}
	Expect(l.server).NotTo(BeEmpty(), "no data server with directories is on node %s", node)
	Expect(l.other).NotTo(BeEmpty())
	Expect(l.survivor).NotTo(BeEmpty())
	return l
}

// seen are the places that must tell of the loss; each gives nil when it does.
func (l loss) seen(began time.Time) map[string]func(context.Context) error {
	event := func(reason string) func(context.Context) error {
		return func(ctx context.Context) error {
			list := &corev1.EventList{}
			if err := c.List(ctx, list, client.InNamespace(c.Namespace)); err != nil {
				return err
			}
			reports := func(e corev1.Event) bool {
				return e.Reason == reason && strings.Contains(e.Message, "node "+l.node) && silentSince(e.Message).After(began.Add(-2*time.Second))
			}
			if !slices.ContainsFunc(list.Items, reports) {
				return fmt.Errorf("no event %s names node %s", reason, l.node)
			}
			return nil
		}
	}
	return map[string]func(context.Context) error{
		"DataServer status.unreachable": func(ctx context.Context) error {
			object := &internalv1.DataServer{}
			if err := c.Get(ctx, l.server, object); err != nil {
				return err
			}
			if object.Status.Unreachable.SeenBy == "" {
				return fmt.Errorf("%s is not reported unreachable", l.server)
			}
			return nil
		},
		"FileServer": func(ctx context.Context) error {
			object := &v1alpha1.FileServer{}
			if err := c.Get(ctx, fileServer, object); err != nil {
				return err
			}
			at := slices.IndexFunc(object.Status.Servers, func(s v1alpha1.FileServerServerStatus) bool { return s.Name == l.server })
			if at < 0 || object.Status.Servers[at].State != v1alpha1.ServerUnavailable {
				return fmt.Errorf("%s is not Unavailable in status.servers", l.server)
			}
			return tells(object.Status.Conditions, v1alpha1.ReasonServersNotReady, l.server, "node "+l.node, "since 20", "waits for")
		},
		"FileShare": func(ctx context.Context) error {
			object := &v1alpha1.FileShare{}
			if err := c.Get(ctx, share, object); err != nil {
				return err
			}
			return tells(object.Status.Conditions, v1alpha1.ReasonDataServersUnavailable, l.server, "node "+l.node, "since 20")
		},
		"event of the FileServer": event(v1alpha1.ReasonServersNotReady),
		"event of the share":      event(v1alpha1.ReasonDataServersUnavailable),
		"metric of the leader": func(ctx context.Context) error {
			for _, pod := range namespacePods(ctx) {
				if pod.Spec.NodeName == l.node || pod.DeletionTimestamp != nil {
					continue
				}
				text, err := c.Kubectl(ctx, "get", "--raw", fmt.Sprintf("/api/v1/namespaces/%s/pods/%s:%d/proxy/metrics", c.Namespace, pod.Name, v1alpha1.ManagerPort))
				if err != nil {
					return err
				}
				for line := range strings.Lines(text) {
					if strings.HasPrefix(line, fmt.Sprintf("howdah_namespace_data_server_reachable{data_server=%q,", l.server)) && strings.HasSuffix(line, " 0\n") {
						return nil
					}
				}
			}
			return fmt.Errorf("no namespace server's metrics say that %s is not reachable", l.server)
		},
	}
}

// silentSince is the time in a message, to the second: an event of an earlier loss of the node does not count.
func silentSince(message string) time.Time {
	_, text, _ := strings.Cut(message, "since ")
	since, err := time.Parse(time.RFC3339, text[:min(len(text), len("2006-01-02T15:04:05Z"))])
	if err != nil {
		return time.Time{}
	}
	return since
}

// tells gives nil if Ready is False for the reason, with all of the words.
func tells(conditions []metav1.Condition, reason string, words ...string) error {
	ready := cluster.Condition(conditions, v1alpha1.ConditionReady)
	if ready.Status != metav1.ConditionFalse || ready.Reason != reason {
		return fmt.Errorf("Ready is %s (%s): %s", ready.Status, ready.Reason, ready.Message)
	}
	for _, word := range words {
		if !strings.Contains(ready.Message, word) {
			return fmt.Errorf("%q is not in %q", word, ready.Message)
		}
	}
	return nil
}

// reportedByServers are the places where a loss shows without an operator.
var reportedByServers = []string{"DataServer status.unreachable", "metric of the leader"}

// expectSeen waits until every place tells of the loss, and holds each to its goal.
func (l loss) expectSeen(ctx context.Context, began time.Time, what string, operatorLost bool) {
	GinkgoHelper()
	places := l.seen(began)
	took := map[string]time.Duration{}
	Eventually(ctx, func(ctx context.Context) error {
		var missing error
		for place, look := range places {
			if _, done := took[place]; done {
				continue
			}
			if err := look(ctx); err != nil {
				missing = fmt.Errorf("%s: %w", place, err)
				continue
			}
			took[place] = time.Since(began)
		}
		return missing
	}).WithTimeout(bound(3 * time.Minute)).Should(Succeed())
	for place := range places {
		goal := lostGoal
		if operatorLost && !slices.Contains(reportedByServers, place) {
			goal = operatorGoal
		}
		expectWithin(fmt.Sprintf("%s: off to %s", what, place), took[place], goal)
	}
}

var _ = Describe("A node that loses its power", Ordered, Label("lost-node"), func() {
	BeforeAll(func(ctx SpecContext) {
		if nodeOff == "" || nodeOn == "" {
			Skip("HOWDAH_E2E_NODE_OFF and HOWDAH_E2E_NODE_ON are not set: nothing here can switch a node of this cluster off and on")
		}
	})

	lose := func(ctx SpecContext, what, node string, meanwhile func(loss)) {
		GinkgoHelper()
		Eventually(ctx, allReady).Should(Succeed())
		l, operatorLost := newLoss(ctx, node), operatorNode(ctx) == node
		shell(ctx, l.survivor, "echo kept > /share/%s/kept && sync /share/%s/kept && echo there > /share/%s/other", l.directory, l.directory, l.other)
		DeferCleanup(func(ctx SpecContext) { switchNode(ctx, nodeOn, node) }, NodeTimeout(bound(2*time.Minute)))
		began := time.Now()
		switchNode(ctx, nodeOff, node)
		waited := make(chan error, 1)
		go func() {
			_, err := c.Shell(ctx, l.survivor, fmt.Sprintf("echo waited >> /share/%s/kept && sync /share/%s/kept", l.directory, l.directory))
			waited <- err
		}()
		l.expectSeen(ctx, began, what, operatorLost)
		// Its own namespace server may be lost as well: then Kubernetes has to notice before it finds the other one.
		looked := time.Now()
		Expect(shell(ctx, l.survivor, "cat /share/%s/other", l.other)).To(Equal("there\n"), "a directory of a data server on another node")
		AddReportEntry(what+": a client elsewhere opens a file of another data server after",
			time.Since(looked).Round(100*time.Millisecond).String(), ReportEntryVisibilityAlways)
		meanwhile(l)
		Expect(waited).NotTo(Receive(), "a write to a data server whose node is off")

		back := time.Now()
		switchNode(ctx, nodeOn, node)
		Eventually(ctx, allReady).WithTimeout(bound(4 * time.Minute)).Should(Succeed())
		AddReportEntry(what+": on to everything Ready", time.Since(back).Round(100*time.Millisecond).String(), ReportEntryVisibilityAlways)
		Eventually(ctx, waited).WithTimeout(bound(2 * time.Minute)).Should(Receive(BeNil()))
		Expect(shell(ctx, l.survivor, "cat /share/%s/kept", l.directory)).To(Equal("kept\nwaited\n"))
		// A client on the lost node is started again with it, and has its mounts again.
		for _, pod := range []string{clientA, clientB} {
			Eventually(ctx, func(ctx context.Context) (string, error) {
				return c.Shell(ctx, pod, fmt.Sprintf("cat /share/%s/kept", l.directory))
			}).WithTimeout(bound(3*time.Minute)).Should(Equal("kept\nwaited\n"), pod)
		}
	}

	It("is known within 10 s where the elected namespace server is on another node, and its data is there when it is back", func(ctx SpecContext) {
		Eventually(ctx, namespaceServersApart).Should(Succeed())
		leader := leaderPod(ctx).Spec.NodeName
		nodes := &corev1.NodeList{}
		Expect(c.List(ctx, nodes)).To(Succeed())
		at := slices.IndexFunc(nodes.Items, func(n corev1.Node) bool { return n.Name != leader && n.Name != operatorNode(ctx) })
		Expect(at).To(BeNumerically(">=", 0), "every node has the leader or the operator")
		lose(ctx, "without the leader", nodes.Items[at].Name, func(l loss) {
			// Until then, Kubernetes itself takes the node for Ready. It is the same fact: no other reason, no other event.
			Eventually(ctx, func(ctx context.Context) error {
				object := &v1alpha1.FileServer{}
				if err := c.Get(ctx, fileServer, object); err != nil {
					return err
				}
				return tells(object.Status.Conditions, v1alpha1.ReasonServersNotReady, "it waits for node "+l.node+" to come back")
			}).WithTimeout(bound(2 * time.Minute)).Should(Succeed())
		})
	}, SpecTimeout(bound(7*time.Minute)))

	It("is known within 10 s where the elected namespace server is lost with it", func(ctx SpecContext) {
		Eventually(ctx, namespaceServersApart).WithTimeout(bound(2 * time.Minute)).Should(Succeed())
		leader := leaderPod(ctx)
		keepOperatorOff(ctx, leader.Spec.NodeName)
		lose(ctx, "with the leader", leader.Spec.NodeName, func(loss) {
			Expect(leaderPod(ctx).Name).NotTo(Equal(leader.Name))
		})
	}, SpecTimeout(bound(7*time.Minute)))

	It("keeps a client whose own namespace server was there from further directories for 45 s at the most", func(ctx SpecContext) {
		Eventually(ctx, allReady).WithTimeout(bound(2 * time.Minute)).Should(Succeed())
		var pod, node string
		Eventually(ctx, func(ctx context.Context) (err error) {
			if err := namespaceServersApart(ctx); err != nil {
				return err
			}
			if pod, node, err = clientOfAnotherNode(ctx); err != nil {
				// The client of the one that goes takes the other one, which is on another node.
				_, gone := c.Kubectl(ctx, "delete", "pod", namespacePods(ctx)[0].Name, "--wait=true")
				return errors.Join(err, gone)
			}
			return nil
		}).WithTimeout(bound(2 * time.Minute)).WithPolling(10 * time.Second).Should(Succeed())
		keepOperatorOff(ctx, node)
		l := newLoss(ctx, node)
		shell(ctx, pod, "mkdir -p /share/further && for i in 0 1 2 3 4 5; do mkdir -p /share/further/$i; done")
		DeferCleanup(func(ctx SpecContext) { switchNode(ctx, nodeOn, node) }, NodeTimeout(bound(2*time.Minute)))
		began := time.Now()
		switchNode(ctx, nodeOff, node)
		Eventually(ctx, func(ctx context.Context) (string, error) {
			return c.Kubectl(ctx, "get", "events", "--namespace", c.Namespace, "--field-selector", "reason=NamespaceServerEvicted", "--output", "name")
		}).WithTimeout(bound(time.Minute)).ShouldNot(BeEmpty())
		expectWithin("off to the eviction of the namespace server", time.Since(began), 15*time.Second)
		// The attributes of the share are not in the client's cache any more by then: it asks its namespace server.
		shell(ctx, pod, "stat /share/further >/dev/null")
		expectWithin("off to an answer of another namespace server", time.Since(began), 45*time.Second)
		for server, directories := range directoriesBelow(ctx, share, "further/") {
			if server != l.server {
				shell(ctx, pod, "echo there > /share/%s/file", directories[0])
			}
		}
		expectWithin("off to files in further directories", time.Since(began), 55*time.Second)
		switchNode(ctx, nodeOn, node)
		Eventually(ctx, allReady).WithTimeout(bound(4 * time.Minute)).Should(Succeed())
	}, SpecTimeout(bound(9*time.Minute)))

	It("is known to the DataServer and in metrics within 10 s where the operator is lost with it, and to the rest when it is back", func(ctx SpecContext) {
		if os.Getenv("HOWDAH_E2E_LOST_OPERATOR") != "yes" {
			Skip("HOWDAH_E2E_LOST_OPERATOR=yes asks for it: it waits for Kubernetes to notice, two minutes")
		}
		Eventually(ctx, namespaceServersApart).WithTimeout(bound(2 * time.Minute)).Should(Succeed())
		node := operatorNode(ctx)
		if leader := leaderPod(ctx); leader.Spec.NodeName == node {
			_, err := c.Kubectl(ctx, "delete", "pod", leader.Name, "--wait=true") // The other one is elected.
			Expect(err).NotTo(HaveOccurred())
			Eventually(ctx, namespaceServersApart).Should(Succeed())
			Expect(leaderPod(ctx).Spec.NodeName).NotTo(Equal(node))
		}
		lose(ctx, "with the operator", node, func(loss) {})
	}, SpecTimeout(bound(8*time.Minute)))
})
