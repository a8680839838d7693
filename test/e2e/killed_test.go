package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/naming"
	"github.com/howdah/howdah/test/cluster"
)

const (
	killFor  = 90 * time.Second
	phoenix  = "phoenix"
	operator = "howdah-system"
	// kindsOfTargets counts namespace servers, supervisors, ganeshas and the operator.
	kindsOfTargets = 4
)

// killer is a pod that may kill any process of its node: from within its own container a first process can't be killed.
func killer(node string) *corev1.Pod {
	pod := clientPod("killer-" + node)
	pod.Spec = corev1.PodSpec{
		NodeName: node, HostPID: true, TerminationGracePeriodSeconds: ptr.To(int64(1)), AutomountServiceAccountToken: ptr.To(false),
		Containers: []corev1.Container{{
			Name: "client", Image: c.ClientImage, ImagePullPolicy: corev1.PullIfNotPresent, Command: []string{"sleep", "infinity"},
			SecurityContext: &corev1.SecurityContext{Privileged: ptr.To(true), RunAsUser: ptr.To(int64(0))},
		}},
	}
	return pod
}

// startKillers makes a killer on each node, and removes them at the end.
func startKillers(ctx context.Context) {
	GinkgoHelper()
	nodes := &corev1.NodeList{}
	Expect(c.List(ctx, nodes)).To(Succeed())
	for _, node := range nodes.Items {
		pod := killer(node.Name)
		Expect(c.Create(ctx, pod)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { deleted(ctx, pod) }, NodeTimeout(bound(time.Minute)))
		Expect(c.WaitPodReady(ctx, pod.Name)).To(Succeed())
	}
}

// kill ends a process of a pod by SIGKILL: its first one, or the ganesha in it. A ganesha with a root directory of its own has no host name there,
// but its supervisor has. On its node's network a pod has the node's name, and the supervisor has its own in POD_NAME.
const kill = `for p in /proc/[0-9]*; do
		[ "$(cat $p/comm 2>/dev/null)" = %[2]s ] || continue
		of=$p; [ -e $p/root/etc/hostname ] || of=/proc/$(sed -n 's/^PPid:[[:space:]]*//p' $p/status)
		parent=/proc/$(sed -n 's/^PPid:[[:space:]]*//p' $p/status)
		[ "$(cat $of/root/etc/hostname 2>/dev/null)" = %[1]s ] || grep -qzx POD_NAME=%[1]s $p/environ $parent/environ || continue
		kill -KILL ${p#/proc/} && echo killed
	done; true`

// targets are all processes of the FileServer and of the operator: pods, and the program in them.
func targets(ctx context.Context) (pods []corev1.Pod, programs []string) {
	GinkgoHelper()
	all := func(namespace string, labels map[string]string, names ...string) {
		list := &corev1.PodList{}
		Expect(c.List(ctx, list, client.InNamespace(namespace), client.MatchingLabels(labels))).To(Succeed())
		for _, pod := range list.Items {
			for _, name := range names {
				if pod.DeletionTimestamp == nil && pod.Status.Phase == corev1.PodRunning {
					pods, programs = append(pods, pod), append(programs, name)
				}
			}
		}
	}
	all(c.Namespace, naming.SelectNamespaceServers(fileServer), "howdah")
	all(c.Namespace, naming.SelectDataServers(fileServer), "howdah", "ganesha.nfsd")
	all(operator, map[string]string{"app.kubernetes.io/name": "howdah"}, "howdah")
	return pods, programs
}

// killAll kills one process after the other until the time is over, and one of each kind was killed at least, and counts what it
// killed. Kubelets wait ever longer with a container that ends often, so each gets its turn before one is killed again.
func killAll(ctx context.Context, until time.Time) map[string]int {
	GinkgoHelper()
	count, turns := map[string]int{}, map[string]int{}
	for time.Now().Before(until) || len(count) < kindsOfTargets && time.Now().Before(until.Add(bound(killFor))) {
		pods, programs := targets(ctx)
		order := rand.Perm(len(pods))
		if len(order) == 0 {
			time.Sleep(time.Second)
			continue
		}
		key := func(i int) string { return pods[i].Name + "/" + programs[i] }
		slices.SortStableFunc(order, func(a, b int) int { return turns[key(a)] - turns[key(b)] })
		i := order[0]
		turns[key(i)]++
		output, err := c.Shell(ctx, killer(pods[i].Spec.NodeName).Name, fmt.Sprintf(kill, pods[i].Name, programs[i]))
		Expect(err).NotTo(HaveOccurred())
		if strings.Contains(output, "killed") {
			count[strings.TrimSpace(pods[i].Labels[v1alpha1.ComponentLabel]+" "+programs[i])]++
		}
		time.Sleep(time.Second + rand.N(5*time.Second))
	}
	return count
}

// livesOf makes and deletes a share with files in it again and again, and looks that the data is there or gone as it was asked for.
func livesOf(ctx context.Context, until time.Time) (lives int) {
	GinkgoHelper()
	const path = "/tree/" + phoenix + "/nest/"
	kept := []string{}
	for ; time.Now().Before(until) || len(kept) > 0; lives++ {
		object := newShare(phoenix, "/"+phoenix, 1, "nest")
		if object.Spec.ReclaimPolicy = v1alpha1.ReclaimRetain; lives%2 == 1 {
			object.Spec.ReclaimPolicy = v1alpha1.ReclaimDelete
		}
		Eventually(ctx, func() error { return c.Create(ctx, object.DeepCopy()) }).WithTimeout(bound(2 * time.Minute)).
			Should(Or(Succeed(), MatchError(apierrors.IsAlreadyExists, "it was made, and the answer was lost")))
		Eventually(ctx, func() error { return shareReady(ctx, phoenix) }).WithTimeout(bound(3 * time.Minute)).Should(Succeed())
		file := fmt.Sprintf("life-%d", lives)
		Eventually(ctx, func() error {
			_, err := c.Shell(ctx, clientB, "timeout 60 sh -c 'echo data > "+path+file+" && sync "+path+file+"'")
			return err
		}).WithTimeout(bound(2 * time.Minute)).Should(Succeed())
		kept = append(kept, file)
		Expect(strings.Fields(shell(ctx, clientB, "ls "+path))).To(ConsistOf(kept), "life %d", lives)
		Expect(c.Delete(ctx, object)).To(Succeed())
		Eventually(ctx, func() error {
			err := c.Get(ctx, phoenix, &v1alpha1.FileShare{})
			if err == nil {
				return fmt.Errorf("share %s is there", phoenix)
			}
			return client.IgnoreNotFound(err)
		}).WithTimeout(bound(4 * time.Minute)).Should(Succeed())
		if object.Spec.ReclaimPolicy == v1alpha1.ReclaimDelete {
			kept = nil
		}
	}
	return lives
}

var _ = Describe("Namespace servers, supervisors, ganeshas and the operator, killed in turn", Label("killed"), Ordered, func() {
	BeforeAll(func(ctx SpecContext) {
		startKillers(ctx)
		// A share of its own: servers that are away when a directory is made get fewer, and the next directories of the share.
		object := newShare("kills", "/kills", 1)
		object.Spec.ReclaimPolicy = v1alpha1.ReclaimDelete
		Expect(c.Create(ctx, object)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { deleted(ctx, object) }, NodeTimeout(bound(2*time.Minute)))
		Eventually(ctx, func() error { return shareReady(ctx, "kills") }).Should(Succeed())
		for _, pod := range []string{clientA, clientB} {
			Eventually(ctx, func() error {
				_, err := c.Shell(ctx, pod, "ls /tree/kills")
				return err
			}).Should(Succeed())
		}
	}, NodeTimeout(bound(2*time.Minute)))

	It("lose nothing that a client got confirmed, nor a share that is deleted and made again", func(ctx SpecContext) {
		until := time.Now().Add(killFor)
		const directory = "/tree/kills"
		loads := map[string]*cluster.Load{}
		for _, pod := range []string{clientA, clientB} {
			var err error
			loads[pod], err = c.StartLoad(ctx, pod, pod, []string{directory}, "--do", "tree", "--contest", "both", "--pause", "0")
			Expect(err).NotTo(HaveOccurred())
		}
		var wait sync.WaitGroup
		lives := 0
		wait.Go(func() {
			defer GinkgoRecover()
			lives = livesOf(ctx, until)
		})
		killed := killAll(ctx, until)
		ledgers := map[string]string{}
		for pod, running := range loads {
			// A client that was stalled by kills all the time has little to check yet: 20 entries are some seven operations.
			Eventually(ctx, running.Entries).WithTimeout(bound(2 * time.Minute)).Should(BeNumerically(">=", 20))
			result := stopped(ctx, running)
			Expect(result.Directories[0].Operations).To(BeNumerically(">", 10), pod)
			expectWithin("longest operation of "+pod, longest(result), time.Minute)
			var err error
			ledgers[pod], err = running.Ledger(ctx)
			Expect(err).NotTo(HaveOccurred())
		}
		wait.Wait()
		Eventually(ctx, func() error { return shareReady(ctx, "kills") }).WithTimeout(bound(3 * time.Minute)).Should(Succeed())
		AddReportEntry("kills", fmt.Sprintf("%v in %s; %d lives of a share", killed, killFor, lives), ReportEntryVisibilityAlways)
		Expect(killed).To(HaveLen(kindsOfTargets), "of each kind of process one at least")
		Expect(lives).To(BeNumerically(">=", 2))

		By("reading with each client what both wrote, and finding nothing else, and no name that both have made")
		for _, pod := range []string{clientA, clientB} {
			audited(ctx, pod, []string{directory}, []string{ledgers[clientA], ledgers[clientB]}, "--nothing-else")
		}
	}, SpecTimeout(bound(10*time.Minute)))
})
