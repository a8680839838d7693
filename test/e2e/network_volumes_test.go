package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/naming"
	"github.com/howdah/howdah/test/cluster"
)

// networkClass is the StorageClass whose volumes every node can use: of a lab that was made with --network-volumes.
var networkClass = os.Getenv("HOWDAH_E2E_NETWORK_CLASS")

// servedElsewhereGoal is how soon after the evidence the directories of the lost data server are served from another node. Of the
// cloud's taint Kubernetes takes up to a minute longer to see that the volume is detached (docs/design/2026-11-26-failover-volumes.md).
const servedElsewhereGoal = 30 * time.Second

var _ = Describe("A data server whose node loses its power, with volumes of the network", Label("network-volumes"), func() {
	const shutdown = "node.cloudprovider.kubernetes.io/shutdown"
	// Each story has a FileServer of its own: after a failover two data servers may be on one node, and one has its cool-down.
	var name, files, pod string
	limit := bound(15 * time.Minute)

	kubectl := func(ctx context.Context, args ...string) {
		GinkgoHelper()
		output, err := c.Kubectl(ctx, args...)
		Expect(err).NotTo(HaveOccurred(), output)
	}
	fileServerOf := func(ctx context.Context) *v1alpha1.FileServer {
		GinkgoHelper()
		fs := &v1alpha1.FileServer{}
		Expect(c.Get(ctx, name, fs)).To(Succeed())
		return fs
	}
	server := func(ctx context.Context, server string) v1alpha1.FileServerServerStatus {
		GinkgoHelper()
		fs := fileServerOf(ctx)
		at := slices.IndexFunc(fs.Status.Servers, func(s v1alpha1.FileServerServerStatus) bool { return s.Name == server })
		Expect(at).To(BeNumerically(">=", 0))
		return fs.Status.Servers[at]
	}
	ready := func(ctx context.Context) error {
		fs := &v1alpha1.FileServer{}
		if err := c.Get(ctx, name, fs); err != nil {
			return err
		}
		return errors.Join(cluster.Expect(fs.Status.Conditions, v1alpha1.ConditionReady, metav1.ConditionTrue), c.ShareReady(ctx, files))
	}
	// attachedTo are the nodes that the volume of a data server is attached to.
	attachedTo := func(ctx context.Context, server string) (nodes []string) {
		GinkgoHelper()
		ordinal, _ := naming.DataServerOrdinal(name, server)
		claim := &corev1.PersistentVolumeClaim{}
		Expect(c.Get(ctx, naming.VolumeClaim(name, ordinal, 0), claim)).To(Succeed())
		attachments := &storagev1.VolumeAttachmentList{}
		Expect(c.List(ctx, attachments)).To(Succeed())
		for _, a := range attachments.Items {
			if source := a.Spec.Source.PersistentVolumeName; source != nil && *source == claim.Spec.VolumeName {
				nodes = append(nodes, a.Spec.NodeName)
			}
		}
		return nodes
	}

	begin := func(ctx SpecContext, story string) {
		GinkgoHelper()
		name, files, pod = story, story+"-files", story+"-user"
		if nodeOff == "" || nodeOn == "" || networkClass == "" {
			Skip("HOWDAH_E2E_NODE_OFF, HOWDAH_E2E_NODE_ON and HOWDAH_E2E_NETWORK_CLASS are not all set: make test-failover-volumes sets them for a lab")
		}
		DeferCleanup(func(ctx SpecContext) {
			kubectl(ctx, "delete", "pod", pod, "--ignore-not-found", "--grace-period=1", "--timeout=5m")
			kubectl(ctx, "delete", "fileshare", files, "--ignore-not-found", "--timeout=5m")
			kubectl(ctx, "delete", "fileserver", name, "--ignore-not-found", "--timeout=5m")
			kubectl(ctx, "delete", "persistentvolumeclaim", "--selector", v1alpha1.FileServerLabel+"="+name, "--ignore-not-found", "--timeout=5m")
		}, NodeTimeout(limit))
		Expect(c.Create(ctx, &v1alpha1.FileServer{
			ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: c.Namespace},
			Spec: v1alpha1.FileServerSpec{
				Replicas: serverCount, Failover: v1alpha1.Failover{Fencing: v1alpha1.FailoverFencingPower},
				Storage: v1alpha1.FileServerStorage{Volumes: v1alpha1.VolumesStorage{Size: ptr.To(resource.MustParse("512Mi")), StorageClassName: networkClass}},
			},
		})).To(Succeed())
		Expect(c.Create(ctx, &v1alpha1.FileShare{
			ObjectMeta: metav1.ObjectMeta{Name: files, Namespace: c.Namespace},
			Spec: v1alpha1.FileShareSpec{
				FileServerRef: v1alpha1.FileServerReference{Name: name}, Path: "/" + files, Directories: []string{"d{0..2}"}, Mode: "0777",
			},
		})).To(Succeed())
		Eventually(ctx, ready).WithTimeout(bound(4 * time.Minute)).Should(Succeed())
		Expect(c.RunClient(ctx, cluster.ClientPod{
			Name: pod, Claims: map[string]string{shareMount: files}, NodeSelector: map[string]string{corev1.LabelHostname: operatorNode(ctx)}, Beside: true, // It is not to be lost.
		})).To(Succeed())
		Expect(c.WaitPodReady(ctx, pod)).To(Succeed())
	}

	lose := func(ctx SpecContext, taint string, evidence v1alpha1.FailoverEvidence) {
		GinkgoHelper()
		key, _, _ := strings.Cut(strings.TrimSuffix(taint, ":NoSchedule"), "=")
		target, node := "", ""
		for _, s := range fileServerOf(ctx).Status.Servers {
			Expect(s.ServedBoot.BootID).NotTo(BeEmpty())
			if s.NodeName != operatorNode(ctx) {
				target, node = s.Name, s.NodeName
			}
		}
		Expect(target).NotTo(BeEmpty())
		directories := []string{shareMount + "/d0", shareMount + "/d1", shareMount + "/d2"}
		running, err := c.StartLoad(ctx, pod, "volumes-"+string(evidence), directories, "--do", "records,opens,lock", "--bytes", "4Mi")
		Expect(err).NotTo(HaveOccurred())
		time.Sleep(10 * time.Second)
		DeferCleanup(func(ctx SpecContext) {
			switchNode(ctx, nodeOn, node)
			_, _ = c.Kubectl(ctx, "taint", "node", node, key+"-") // It is not there any more if the story came to its end.
		}, NodeTimeout(limit))
		switchNode(ctx, nodeOff, node)

		By("waiting, because the machine is not known to be off")
		Eventually(ctx, func(ctx context.Context) string { return server(ctx, target).FailoverRefusal.Reason }).
			WithTimeout(bound(3 * time.Minute)).Should(Equal("PowerUnknown"))
		Expect(attachedTo(ctx, target)).To(Equal([]string{node}))

		By("being served from another node once it is")
		began := time.Now()
		kubectl(ctx, "taint", "node", node, taint)
		goal := servedElsewhereGoal
		if evidence == v1alpha1.FailoverEvidenceShutdownTaint {
			goal += time.Minute
		}
		Eventually(ctx, func(ctx context.Context) string {
			if s := server(ctx, target); s.State == v1alpha1.ServerServing && s.NodeName != node {
				return s.NodeName
			}
			return ""
		}, bound(2*time.Minute), "500ms").ShouldNot(BeEmpty())
		expectWithin("from the evidence "+string(evidence)+" to being served elsewhere", time.Since(began), goal)
		Eventually(ctx, func(ctx context.Context) bool { return isRecorded(server(ctx, target).LastFailover, evidence) }).Should(BeTrue())
		record := server(ctx, target).LastFailover
		AddReportEntry("steps after the evidence "+string(evidence), stepsAfter(began, record), ReportEntryVisibilityAlways)
		Expect(record.NodeName).To(BeElementOf(node, ""))
		Expect(attachedTo(ctx, target)).To(Equal([]string{server(ctx, target).NodeName}), "one node has the volume, and it is not the lost one")

		time.Sleep(20 * time.Second) // Grace and leases are over.
		result, err := running.Stop(ctx)
		Expect(err).NotTo(HaveOccurred())
		AddReportEntry("the load, "+string(evidence), result.Text(), ReportEntryVisibilityAlways)
		Expect(result.Verdict(0)).To(Succeed(), result.Text())
		ledger, err := running.Ledger(ctx)
		Expect(err).NotTo(HaveOccurred())
		audit, err := c.Audit(ctx, pod, running.Directories, []string{ledger})
		Expect(err).NotTo(HaveOccurred())
		Expect(audit.Verdict(0)).To(Succeed(), audit.Text())

		By("leaving the volume alone when the machine is back")
		switchNode(ctx, nodeOn, node)
		kubectl(ctx, "taint", "node", node, key+"-")
		Eventually(ctx, func(ctx context.Context) (string, error) {
			return c.Kubectl(ctx, "get", "node", node, "--output", `jsonpath={.status.conditions[?(@.type=="Ready")].status}`)
		}).WithTimeout(bound(4 * time.Minute)).Should(Equal("True"))
		Consistently(ctx, func(ctx context.Context) []string { return attachedTo(ctx, target) }, "10s", "1s").ShouldNot(ContainElement(node))
		Eventually(ctx, ready).WithTimeout(bound(3 * time.Minute)).Should(Succeed())
		Expect(serversOf(ctx, c, name)).To(HaveLen(serverCount))
	}

	It("is served elsewhere once its node is out of service", func(ctx SpecContext) {
		begin(ctx, "roaming")
		lose(ctx, corev1.TaintNodeOutOfService+"=nodeshutdown:NoExecute", v1alpha1.FailoverEvidenceOutOfServiceTaint)
	}, SpecTimeout(limit))

	It("is served elsewhere once the cloud says that its machine is off", func(ctx SpecContext) {
		begin(ctx, "stopped")
		lose(ctx, shutdown+":NoSchedule", v1alpha1.FailoverEvidenceShutdownTaint)
	}, SpecTimeout(limit))
})

// isRecorded reports whether a failover is recorded to its end. With out-of-service Kubernetes deletes pods as well, and may be quicker.
func isRecorded(record v1alpha1.ServerFailover, evidence v1alpha1.FailoverEvidence) bool {
	if record.Evidence == "" {
		return evidence == v1alpha1.FailoverEvidenceOutOfServiceTaint
	}
	return record.Evidence == evidence && record.ServingTime != nil
}

// stepsAfter is how long after a moment each step of a failover was done, in seconds: the status has whole ones.
func stepsAfter(began time.Time, record v1alpha1.ServerFailover) string {
	if record.Evidence == "" {
		return "Kubernetes deleted the pod before Howdah did"
	}
	var steps []string
	for _, step := range []struct {
		name string
		at   *metav1.Time
	}{
		{"detected", record.DetectedTime}, {"pod deleted", record.PodDeletedTime}, {"volumes detached", record.VolumesDetachedTime}, {"serving", record.ServingTime},
	} {
		if step.at != nil {
			steps = append(steps, fmt.Sprintf("%s %.0f s", step.name, max(0, step.at.Sub(began).Seconds())))
		}
	}
	return strings.Join(steps, ", ")
}

func serversOf(ctx context.Context, c *cluster.Cluster, fileServer string) []corev1.Pod {
	GinkgoHelper()
	pods := &corev1.PodList{}
	Expect(c.List(ctx, pods, client.InNamespace(c.Namespace), client.MatchingLabels(naming.SelectDataServers(fileServer)))).To(Succeed())
	return pods.Items
}
