package e2e

import (
	"context"
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/internal/naming"
	"github.com/howdah/howdah/test/cluster"
)

// watcher lists and walks the namespace and stays inside it, and writes the
// longest time that one look took and the number of errors.
const watcher = `cd /share/train || exit 1
	max=0; errors=0; loops=0
	while [ ! -e /tmp/stop ]; do
		start=$(date +%s%N)
		ls /share > /dev/null 2>>/tmp/errors || errors=$((errors+1))
		ls . > /dev/null 2>>/tmp/errors || errors=$((errors+1))
		cat 0/first > /dev/null 2>>/tmp/errors || errors=$((errors+1))
		stat /tree/unet3d/train/1 > /dev/null 2>>/tmp/errors || errors=$((errors+1))
		took=$(( ($(date +%s%N)-start)/1000000 )); [ $took -gt $max ] && max=$took
		loops=$((loops+1)); sleep 0.1
	done
	echo $max $errors $loops`

func namespacePods(ctx context.Context) []corev1.Pod {
	GinkgoHelper()
	list := &corev1.PodList{}
	Expect(c.List(ctx, list, client.InNamespace(c.Namespace), client.MatchingLabels(naming.SelectNamespaceServers(fileServer)))).To(Succeed())
	return list.Items
}

func namespaceServersReady(ctx context.Context) error {
	ready := 0
	for _, pod := range namespacePods(ctx) {
		for _, condition := range pod.Status.Conditions {
			if condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue && pod.DeletionTimestamp == nil {
				ready++
			}
		}
	}
	if ready < 2 {
		return fmt.Errorf("%d namespace servers are ready", ready)
	}
	return nil
}

var _ = Describe("Namespace servers killed one after the other", Label("failover"), func() {
	It("cost mounted clients a stall of at most 5 s and no error, and new mounts nothing", func(ctx SpecContext) {
		type outcome struct {
			output string
			err    error
		}
		results := make(chan outcome, 2)
		for _, pod := range []string{clientA, clientB} {
			go func() {
				output, err := c.Shell(ctx, pod, "rm -f /tmp/stop /tmp/errors; "+watcher)
				results <- outcome{output, err}
			}()
		}
		Eventually(ctx, namespaceServersReady).Should(Succeed())
		Eventually(ctx, dataServersRest).Should(Succeed())
		before := dataServerGenerations(ctx)
		for i, target := range namespacePods(ctx) {
			_, err := c.Kubectl(ctx, "delete", "pod", target.Name, "--grace-period=0", "--force", "--wait=false")
			Expect(err).NotTo(HaveOccurred())
			name := fmt.Sprintf("newcomer-%d", i)
			start := time.Now()
			Expect(c.RunClient(ctx, cluster.ClientPod{Name: name, Claims: map[string]string{shareMount: share}, NodeSelector: map[string]string{}})).To(Succeed())
			Expect(c.WaitPodReady(ctx, name)).To(Succeed())
			Expect(shell(ctx, name, "cat /share/train/0/first")).To(Equal("seed\n"))
			AddReportEntry(fmt.Sprintf("new pod that mounts after kill %d", i+1), time.Since(start).Round(100*time.Millisecond).String(), ReportEntryVisibilityAlways)
			_, err = c.Kubectl(ctx, "delete", "pod", name, "--grace-period=1", "--wait=false")
			Expect(err).NotTo(HaveOccurred())
			Eventually(ctx, namespaceServersReady).Should(Succeed())
			// A client keeps to its server for as long as it lives: give it time to find the kill.
			time.Sleep(6 * time.Second)
		}
		for _, pod := range []string{clientA, clientB} {
			shell(ctx, pod, "touch /tmp/stop")
		}
		for range 2 {
			result := <-results
			Expect(result.err).NotTo(HaveOccurred())
			var longest, errors, loops int
			_, err := fmt.Sscan(strings.TrimSpace(result.output), &longest, &errors, &loops)
			Expect(err).NotTo(HaveOccurred(), result.output)
			Expect(errors).To(BeZero(), "errors seen by a mounted client: %s", shell(ctx, clientA, "cat /tmp/errors"))
			expectWithin(fmt.Sprintf("longest stall of a mounted client, in %d loops", loops), time.Duration(longest)*time.Millisecond, 5*time.Second)
			// It looked all the time; how often is a matter of the machine.
			Expect(loops).To(BeNumerically(">=", 5))
		}
		By("leaving data servers alone")
		Expect(dataServerGenerations(ctx)).To(Equal(before))
		for i := range serverCount {
			config, err := c.Shell(ctx, naming.DataServer(fileServer, int32(i)), "cat /run/ganesha/ganesha.conf")
			Expect(err).NotTo(HaveOccurred())
			for _, pod := range namespacePods(ctx) {
				Expect(pod.Status.PodIP).NotTo(BeEmpty())
				Expect(config).NotTo(ContainSubstring(pod.Status.PodIP), "ganesha trusts no pod's address")
			}
		}
		By("and making directories as before")
		shell(ctx, clientA, "mkdir /share/train/after-failover && rmdir /share/train/after-failover")
	}, SpecTimeout(bound(4*time.Minute)))
})

// dataServersRest says which data server is not ready, and which export is still to go. A story before this one may have killed instance
// managers: while kubelet waits to start one again, what there is of a log is the last one's.
func dataServersRest(ctx context.Context) error {
	pods := &corev1.PodList{}
	if err := c.List(ctx, pods, client.InNamespace(c.Namespace), client.MatchingLabels(naming.SelectDataServers(fileServer))); err != nil {
		return err
	}
	if len(pods.Items) != serverCount {
		return fmt.Errorf("%d data servers have a pod", len(pods.Items))
	}
	for _, pod := range pods.Items {
		for _, condition := range pod.Status.Conditions {
			if condition.Type == corev1.PodReady && condition.Status != corev1.ConditionTrue {
				return fmt.Errorf("data server %s is not ready: %s", pod.Name, condition.Message)
			}
		}
	}
	exports := &internalv1.ShareExportList{}
	if err := c.List(ctx, exports, client.InNamespace(c.Namespace)); err != nil {
		return err
	}
	for _, export := range exports.Items {
		if export.DeletionTimestamp != nil {
			return fmt.Errorf("ShareExport %s is being deleted", export.Name)
		}
	}
	return nil
}

// dataServerGenerations are what data servers were asked to serve and what they reported: the generations of DataServers and ShareExports, how often
// each ganesha has reloaded, and how often its container was started again, which is where a log begins.
func dataServerGenerations(ctx context.Context) map[string]int64 {
	GinkgoHelper()
	counts := map[string]int64{}
	exports := &internalv1.ShareExportList{}
	Expect(c.List(ctx, exports, client.InNamespace(c.Namespace))).To(Succeed())
	for _, export := range exports.Items {
		if export.Spec.FileServerRef.Name != fileServer {
			continue // One of an earlier spec may be on its way out.
		}
		counts["ShareExport "+export.Name] = export.Generation
	}
	servers := &internalv1.DataServerList{}
	Expect(c.List(ctx, servers, client.InNamespace(c.Namespace))).To(Succeed())
	for _, server := range servers.Items {
		if server.Spec.FileServerRef.Name != fileServer {
			continue
		}
		counts["DataServer "+server.Name] = server.Generation
		log, err := c.Kubectl(ctx, "logs", server.Name, "--tail=-1")
		Expect(err).NotTo(HaveOccurred())
		pod := &corev1.Pod{}
		Expect(c.Get(ctx, server.Name, pod)).To(Succeed())
		for _, status := range pod.Status.ContainerStatuses {
			counts["restarts of "+server.Name] += int64(status.RestartCount)
		}
		counts["reloads of "+server.Name] = int64(strings.Count(log, "Reread exports complete"))
	}
	Expect(len(counts)).To(BeNumerically(">", 2*serverCount))
	return counts
}
