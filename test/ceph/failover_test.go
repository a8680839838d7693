package ceph

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/naming"
	"github.com/howdah/howdah/test/cluster"
)

const (
	// servedElsewhereGoal is how soon after a power cut the directories of the lost data server are served from another node. The
	// lost node also has an OSD and an MDS, whose loss alone stops the others for some 11 s.
	servedElsewhereGoal = 20 * time.Second
	othersGoal          = 15 * time.Second
)

// No administrator acts in this story.
var _ = Describe("A data server in Ceph whose node loses its power, with failover", Ordered, Label("ceph", "lost-node", "failover"), func() {
	const (
		name, share, pod, gone = "failover", "kept-up", "failover-user", "failover-lost-user"
	)
	var lost string // The node.

	podsOf := func(ctx context.Context, selector map[string]string) []corev1.Pod {
		GinkgoHelper()
		list := &corev1.PodList{}
		Expect(c.List(ctx, list, client.InNamespace(c.Namespace), client.MatchingLabels(selector))).To(Succeed())
		return list.Items
	}
	server := func(ctx context.Context, server string) v1alpha1.FileServerServerStatus {
		GinkgoHelper()
		fs := &v1alpha1.FileServer{}
		Expect(c.Get(ctx, name, fs)).To(Succeed())
		at := slices.IndexFunc(fs.Status.Servers, func(s v1alpha1.FileServerServerStatus) bool { return s.Name == server })
		Expect(at).To(BeNumerically(">=", 0))
		return fs.Status.Servers[at]
	}
	// besides lists what is on the node besides the data server: it decides what the loss costs.
	besides := func(ctx context.Context, node string) (roles []string) {
		GinkgoHelper()
		lease := &coordinationv1.Lease{}
		Expect(c.Get(ctx, naming.NamespaceServers(name), lease)).To(Succeed())
		for _, p := range podsOf(ctx, naming.SelectNamespaceServers(name)) {
			if p.Spec.NodeName == node && p.Name == ptr.Deref(lease.Spec.HolderIdentity, "") {
				roles = append(roles, "the leader of the namespace servers")
			} else if p.Spec.NodeName == node {
				roles = append(roles, "a namespace server")
			}
		}
		for _, p := range podsOf(ctx, naming.SelectSteward(name)) {
			if p.Spec.NodeName == node {
				roles = append(roles, "the steward")
			}
		}
		for _, p := range cephPods(ctx) {
			if p.Spec.NodeName == node {
				roles = append(roles, p.Name)
			}
		}
		slices.Sort(roles)
		return roles
	}

	BeforeAll(func(ctx SpecContext) {
		if nodeOff == "" || nodeOn == "" {
			Skip("HOWDAH_E2E_NODE_OFF and HOWDAH_E2E_NODE_ON are not set: the commands that switch a node off and on (hack/e2e.sh sets them for the lab)")
		}
		stewarded(ctx, name, 3)
		output, err := c.Kubectl(ctx, "patch", "fileserver", name, "--type=merge", "--patch", `{"spec":{"failover":{"fencing":"Storage"}}}`)
		Expect(err).NotTo(HaveOccurred(), output)
		DeferCleanup(func(ctx SpecContext) {
			output, err := c.Kubectl(ctx, "delete", "pod", pod, gone, "--ignore-not-found", "--grace-period=1", "--timeout=5m")
			Expect(err).NotTo(HaveOccurred(), output)
			output, err = c.Kubectl(ctx, "delete", "fileshare", share, "--ignore-not-found", "--timeout=5m")
			Expect(err).NotTo(HaveOccurred(), output)
		}, NodeTimeout(limit))
		Expect(c.Create(ctx, &v1alpha1.FileShare{
			ObjectMeta: metav1.ObjectMeta{Name: share, Namespace: c.Namespace},
			Spec: v1alpha1.FileShareSpec{
				FileServerRef: v1alpha1.FileServerReference{Name: name}, Path: "/" + share, Directories: []string{"d{0..2}"}, Mode: "0777", ReclaimPolicy: v1alpha1.ReclaimDelete,
			},
		})).To(Succeed())
		Eventually(ctx, func(ctx context.Context) error { return c.ShareReady(ctx, share) }).Should(Succeed())

		// The only monitor and the operator are elsewhere: what they cost is another story.
		taken := map[string]bool{cephPods(ctx)["ceph-mon-0"].Spec.NodeName: true}
		operator := &corev1.PodList{}
		Expect(c.List(ctx, operator, client.InNamespace("howdah-system"), client.MatchingLabels{"app.kubernetes.io/name": "howdah"})).To(Succeed())
		for _, p := range operator.Items {
			taken[p.Spec.NodeName] = true
		}
		survivor := ""
		for _, p := range podsOf(ctx, naming.SelectDataServers(name)) {
			if !taken[p.Spec.NodeName] {
				lost = p.Spec.NodeName
			} else {
				survivor = p.Spec.NodeName
			}
		}
		Expect(lost).NotTo(BeEmpty(), "every node with a data server has the monitor or the operator")
		Expect(survivor).NotTo(BeEmpty())
		Expect(c.RunClient(ctx, cluster.ClientPod{
			Name: pod, Claims: map[string]string{mountPoint: share}, NodeSelector: map[string]string{corev1.LabelHostname: survivor},
		})).To(Succeed())
		Expect(c.WaitPodReady(ctx, pod)).To(Succeed())
		// It is lost with the node.
		Expect(c.RunClient(ctx, cluster.ClientPod{
			Name: gone, Claims: map[string]string{mountPoint: share}, NodeSelector: map[string]string{corev1.LabelHostname: lost},
		})).To(Succeed())
		Expect(c.WaitPodReady(ctx, gone)).To(Succeed())
		// It comes to the data server of its own node from the address of the node's bridge to pods. The lab's nodes do not have their ranges of
		// pods in the API, as kubeadm's have, so Howdah can't know that address.
		for _, p := range podsOf(ctx, naming.SelectDataServers(name)) {
			if p.Spec.NodeName == lost {
				address, bits := netip.MustParseAddr(p.Status.PodIP), 24
				if address.Is6() {
					bits = 64
				}
				pods, err := address.Prefix(bits)
				Expect(err).NotTo(HaveOccurred())
				output, err := c.Kubectl(ctx, "patch", "node", lost, "--type=merge", "--patch", fmt.Sprintf(`{"spec":{"podCIDR":%[1]q,"podCIDRs":[%[1]q]}}`, pods))
				Expect(err).NotTo(HaveOccurred(), output)
			}
		}
		output, err = c.Shell(ctx, gone, "for d in "+mountPoint+"/d*; do echo here >$d/of-the-lost-node; done")
		Expect(err).NotTo(HaveOccurred(), output)
	}, NodeTimeout(limit))

	It("is served from another node by itself, without errors or lost data, and the node is used again when it is back", func(ctx SpecContext) {
		target := ""
		for _, p := range podsOf(ctx, naming.SelectDataServers(name)) {
			if p.Spec.NodeName == lost {
				target = p.Name
			}
		}
		Expect(target).NotTo(BeEmpty())
		owned := owners(ctx, share)
		AddReportEntry("on the lost node", strings.Join(besides(ctx, lost), ", "), ReportEntryVisibilityAlways)
		DeferCleanup(func(ctx SpecContext) { switchNode(ctx, nodeOn, lost) }, NodeTimeout(limit))

		directories := []string{mountPoint + "/d0", mountPoint + "/d1", mountPoint + "/d2"}
		running, err := c.StartLoad(ctx, pod, "failover", directories, "--do", "records,opens,lock", "--bytes", "8Mi")
		Expect(err).NotTo(HaveOccurred())
		time.Sleep(10 * time.Second)
		began := time.Now()
		switchNode(ctx, nodeOff, lost)
		Eventually(ctx, func(ctx context.Context) *metav1.Time { return server(ctx, target).LastFailover.ServingTime }).
			WithTimeout(3 * time.Minute).ShouldNot(BeNil())
		record := server(ctx, target).LastFailover
		// The client on the lost node does not come to reclaim. Without knowing so, the next pod would give it as long again as the outage was.
		object := &internalv1.DataServer{}
		Eventually(ctx, func(ctx context.Context) (bool, error) {
			err := c.Get(ctx, target, object)
			return meta.IsStatusConditionTrue(object.Status.Conditions, internalv1.GraceEnded), err
		}).WithTimeout(2 * time.Minute).Should(BeTrue())
		AddReportEntry("from the cut until grace has ended, with a client on the lost node", time.Since(began).Round(time.Second).String(), ReportEntryVisibilityAlways)
		next := &corev1.Pod{}
		Expect(c.Get(ctx, target, next)).To(Succeed())
		ended := meta.FindStatusCondition(object.Status.Conditions, internalv1.GraceEnded).LastTransitionTime
		inGrace := ended.Sub(next.Status.ContainerStatuses[0].State.Running.StartedAt.Time)
		AddReportEntry("from the next pod's start until grace has ended", inGrace.String(), ReportEntryVisibilityAlways)
		Expect(inGrace).To(BeNumerically("<=", time.Duration(object.Spec.GraceSeconds)*time.Second+30*time.Second), "grace is longer for the lost client")
		time.Sleep(30 * time.Second) // Leases are over.
		result, err := running.Stop(ctx)
		Expect(err).NotTo(HaveOccurred())
		after := func(at *metav1.Time) string {
			if at == nil {
				return "never"
			}
			return fmt.Sprintf("%.0f s", at.Sub(began).Seconds())
		}
		AddReportEntry("from the cut", fmt.Sprintf("silent since %s, detected %s, fenced %s, pod deleted %s, serving %s; %s", after(record.SinceTime), after(record.DetectedTime),
			after(record.FencedTime), after(record.PodDeletedTime), after(record.ServingTime), record.Message), ReportEntryVisibilityAlways)
		for i, d := range result.Directories {
			owner, goal := "another data server", othersGoal
			if slices.Contains(owned[target], fmt.Sprintf("d%d", i)) {
				owner, goal = "the lost data server", servedElsewhereGoal
			}
			within("longest stall of the directory of "+owner, time.Duration(d.Longest.Seconds*float64(time.Second)).Round(100*time.Millisecond), goal, 0)
		}
		AddReportEntry("the load", result.Text(), ReportEntryVisibilityAlways)
		Expect(result.Verdict(0)).To(Succeed(), result.Text())

		moved := &corev1.Pod{}
		Expect(c.Get(ctx, target, moved)).To(Succeed())
		Expect(moved.Spec.NodeName).NotTo(Equal(lost))
		Expect(string(moved.UID)).NotTo(Equal(record.PodUID))
		steward := &internalv1.Steward{}
		Expect(c.Get(ctx, name, steward)).To(Succeed())
		Expect(steward.Status.Fences).To(HaveLen(1))
		blocked := admin.must(ctx, toMon("osd blocklist ls", request{}))
		for _, address := range steward.Status.Fences[0].Addresses {
			Expect(blocked).To(ContainSubstring(address))
		}

		back := time.Now()
		switchNode(ctx, nodeOn, lost)
		Eventually(ctx, func(ctx context.Context) (int, error) {
			err := c.Get(ctx, name, steward)
			return len(steward.Spec.Fences) + len(podsOf(ctx, naming.SelectLostNodes(name))), err
		}).WithTimeout(5 * time.Minute).Should(BeZero())
		AddReportEntry("from power on until the node may be used again", time.Since(back).Round(time.Second).String(), ReportEntryVisibilityAlways)
		Eventually(ctx, fileServerReady(name)).Should(Succeed())
		ledger, err := running.Ledger(ctx)
		Expect(err).NotTo(HaveOccurred())
		audit, err := c.Audit(ctx, pod, running.Directories, []string{ledger})
		Expect(err).NotTo(HaveOccurred())
		Expect(audit.Verdict(0)).To(Succeed(), audit.Text())
		cephWell(ctx) // For the specs that follow. It can take minutes.
	}, SpecTimeout(2*limit))
})
