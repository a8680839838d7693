package integration

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/naming"
	"github.com/howdah/howdah/test/builders"
)

// failingOver makes a FileServer on Ceph with failover, whose data servers run on node-a, node-b and node-c.
func failingOver(namespace string) *v1alpha1.FileServer {
	GinkgoHelper()
	fs := provisioned(namespace, "training", 3)
	change(fs, func(fs *v1alpha1.FileServer) { fs.Spec.Failover.Fencing = v1alpha1.FailoverFencingStorage })
	expectCondition(namespace, "training", v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady)
	return fs
}

// changeNode changes the status of a node until the end of the story.
func changeNode(name string, mutate func(*corev1.NodeStatus)) {
	GinkgoHelper()
	patch := func(mutate func(*corev1.NodeStatus)) {
		node := &corev1.Node{}
		Expect(admin.Get(ctx, client.ObjectKey{Name: name}, node)).To(Succeed())
		before := node.DeepCopy()
		mutate(&node.Status)
		Expect(admin.Status().Patch(ctx, node, client.MergeFrom(before))).To(Succeed())
	}
	node := &corev1.Node{}
	Expect(admin.Get(ctx, client.ObjectKey{Name: name}, node)).To(Succeed())
	patch(mutate)
	DeferCleanup(func() { patch(func(status *corev1.NodeStatus) { *status = node.Status }) })
}

func boot(id string) func(*corev1.NodeStatus) {
	return func(status *corev1.NodeStatus) {
		status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
		status.NodeInfo.BootID = id
	}
}

// reportUnreachable plays the leader of the namespace servers, which is on node-a. A zero time means that the data server answers.
func reportUnreachable(namespace, name string, since time.Time) {
	GinkgoHelper()
	server := exists(&internalv1.DataServer{}, namespace, name)
	before := server.DeepCopy()
	server.Status.Unreachable = internalv1.Unreachable{}
	if !since.IsZero() {
		server.Status.Unreachable = internalv1.Unreachable{SinceTime: &metav1.Time{Time: since}, SeenBy: "training-namespace-0"}
	}
	Expect(admin.Status().Patch(ctx, server, client.MergeFrom(before))).To(Succeed())
}

func fencesOf(namespace string) []internalv1.PodFence {
	return exists(&internalv1.Steward{}, namespace, "training").Spec.Fences
}

// answerFences plays the steward.
func answerFences(namespace string) {
	GinkgoHelper()
	steward := exists(&internalv1.Steward{}, namespace, "training")
	before := steward.DeepCopy()
	steward.Status.Fences = nil
	for i := range steward.Spec.Fences {
		steward.Status.Fences = append(steward.Status.Fences, internalv1.PodFenceAnswer{
			PodUID: steward.Spec.Fences[i].PodUID, RequestTime: steward.Spec.Fences[i].RequestTime, Time: &metav1.Time{Time: time.Now()},
			Addresses: []string{"10.1.0.3:0/123", "10.1.0.3:0/456"},
		})
	}
	Expect(admin.Status().Patch(ctx, steward, client.MergeFrom(before))).To(Succeed())
}

func serverStatus(namespace, name string) v1alpha1.FileServerServerStatus {
	GinkgoHelper()
	fs := exists(&v1alpha1.FileServer{}, namespace, "training")
	for i := range fs.Status.Servers {
		if fs.Status.Servers[i].Name == name {
			return fs.Status.Servers[i]
		}
	}
	return v1alpha1.FileServerServerStatus{}
}

// runDataServer plays the StatefulSet controller and the kubelet for one data server.
func runDataServer(namespace, name, node string) types.UID {
	GinkgoHelper()
	set := exists(&appsv1.StatefulSet{}, namespace, naming.DataServers("training"))
	runPod(namespace, name, withClaims(set, name), map[string]string{appsv1.StatefulSetPodNameLabel: name}, node, "10.1.0.99")
	return exists(&corev1.Pod{}, namespace, name).UID
}

var _ = Describe("A node that is lost, with failover", func() {
	BeforeEach(func() {
		for _, name := range []string{"node-a", "node-b", "node-c"} {
			changeNode(name, boot("boot-1-"+name))
		}
	})

	It("has its data server fenced, then deleted, then started elsewhere, and is used again when it is back", func() {
		namespace := newNamespace()
		failingOver(namespace)
		lost := exists(&corev1.Pod{}, namespace, "training-2")
		reportUnreachable(namespace, "training-2", time.Now().Add(-9*time.Second))

		By("requesting the fence, and keeping pods off the node")
		Eventually(func() []internalv1.PodFence { return fencesOf(namespace) }, timeout, "50ms").Should(HaveLen(1))
		fence := fencesOf(namespace)[0]
		Expect(fence.PodUID).To(Equal(string(lost.UID)))
		Expect(fence.NodeName).To(Equal("node-c"))
		Expect(fence.BootID).To(Equal("boot-1-node-c"))
		marker := exists(&corev1.Pod{}, namespace, naming.LostNode("training", "node-c"))
		Expect(marker.Spec.NodeName).To(Equal("node-c"))
		template := exists(&appsv1.StatefulSet{}, namespace, "training").Spec.Template.Spec
		required := template.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution
		Expect(required).To(HaveLen(1))
		selector, err := metav1.LabelSelectorAsSelector(required[0].LabelSelector)
		Expect(err).NotTo(HaveOccurred())
		Expect(selector.String()).To(And(ContainSubstring("lost-node"), ContainSubstring("training")))
		for key, value := range required[0].LabelSelector.MatchLabels {
			Expect(marker.Labels).To(HaveKeyWithValue(key, value))
		}
		// The status is written after what the pass applies.
		Eventually(func() string {
			return fileServerCondition(namespace, "training", v1alpha1.FileServerServersAvailable).Message
		}, timeout).
			Should(ContainSubstring("failover: waiting for Ceph to refuse the clients of its pod on node node-c"))

		By("not deleting the pod before the answer")
		Consistently(func() types.UID { return exists(&corev1.Pod{}, namespace, "training-2").UID }, "2s", "200ms").Should(Equal(lost.UID))

		By("deleting it after the answer, without a kubelet")
		answerFences(namespace)
		Eventually(func() bool {
			return apierrors.IsNotFound(admin.Get(ctx, client.ObjectKeyFromObject(lost), &corev1.Pod{}))
		}, timeout, "50ms").Should(BeTrue())

		By("leaving the next pod alone while it starts")
		next := runDataServer(namespace, "training-2", "node-a")
		Consistently(func() types.UID { return exists(&corev1.Pod{}, namespace, "training-2").UID }, "2s", "200ms").Should(Equal(next))
		Expect(fencesOf(namespace)).To(HaveLen(1))
		reportUnreachable(namespace, "training-2", time.Time{})
		Eventually(func() *metav1.Time { return serverStatus(namespace, "training-2").LastFailover.ServingTime }, timeout, "50ms").ShouldNot(BeNil())
		record := serverStatus(namespace, "training-2").LastFailover
		Expect(record.NodeName).To(Equal("node-c"))
		Expect(record.Count).To(BeEquivalentTo(1))
		Expect(record.Completed).To(BeEquivalentTo(1))
		Expect(record.FencedTime).NotTo(BeNil())
		Expect(record.PodDeletedTime).NotTo(BeNil())
		Expect(record.DurationSeconds).To(HaveValue(BeNumerically(">=", 9)))
		Expect(record.Message).To(And(ContainSubstring("training-namespace-0"), ContainSubstring("2 of its Ceph clients")))
		for _, reason := range []string{"FailoverStarted", "FailoverFenced", "FailoverDone"} {
			Eventually(func() []string { return eventsOf(namespace, reason) }, timeout, "100ms").Should(HaveLen(1), reason)
		}
		exists(&corev1.Pod{}, namespace, marker.Name)

		By("waiting before the next failover of the same data server")
		reportUnreachable(namespace, "training-2", time.Now().Add(-9*time.Second))
		Consistently(func() []internalv1.PodFence { return fencesOf(namespace) }, "2s", "200ms").Should(HaveLen(1))
		reportUnreachable(namespace, "training-2", time.Time{})

		By("the node booting again")
		changeNode("node-c", boot("boot-2"))
		Eventually(func() []internalv1.PodFence { return fencesOf(namespace) }, timeout, "50ms").Should(BeEmpty())
		isNoMore(&corev1.Pod{}, namespace, marker.Name)
		Expect(exists(&corev1.Pod{}, namespace, "training-2").UID).To(Equal(next))
	})

	It("is finished while the FileServer is paused, once it is fenced, and withdrawn before that", func() {
		namespace := newNamespace()
		fs := failingOver(namespace)
		pause := func(value string) {
			GinkgoHelper()
			change(fs, func(fs *v1alpha1.FileServer) {
				metav1.SetMetaDataAnnotation(&fs.ObjectMeta, v1alpha1.PausedAnnotation, value)
			})
		}
		lost := exists(&corev1.Pod{}, namespace, "training-2")
		reportUnreachable(namespace, "training-2", time.Now().Add(-9*time.Second))
		Eventually(func() []internalv1.PodFence { return fencesOf(namespace) }, timeout, "50ms").Should(HaveLen(1))

		By("withdrawing the request when the FileServer is paused")
		pause(v1alpha1.PausedTrue)
		Eventually(func() []internalv1.PodFence { return fencesOf(namespace) }, timeout, "50ms").Should(BeEmpty())
		isNoMore(&corev1.Pod{}, namespace, naming.LostNode("training", "node-c"))

		By("deleting the pod, if the steward was quicker")
		asked := internalv1.PodFence{PodUID: string(lost.UID), DataServerName: "training-2", NodeName: "node-c", BootID: "boot-1-node-c", RequestTime: ptr.To(metav1.Now())}
		Expect(exists(&corev1.Pod{}, namespace, "training-2").UID).To(Equal(lost.UID))
		steward := exists(&internalv1.Steward{}, namespace, "training")
		before := steward.DeepCopy()
		steward.Status.Fences = []internalv1.PodFenceAnswer{{PodUID: asked.PodUID, RequestTime: asked.RequestTime, Time: ptr.To(metav1.Now())}}
		Expect(admin.Status().Patch(ctx, steward, client.MergeFrom(before))).To(Succeed())
		before = steward.DeepCopy()
		steward.Spec.Fences = []internalv1.PodFence{asked}
		Expect(admin.Patch(ctx, steward, client.MergeFrom(before))).To(Succeed())
		Eventually(func() bool {
			return apierrors.IsNotFound(admin.Get(ctx, client.ObjectKeyFromObject(lost), &corev1.Pod{}))
		}, timeout, "50ms").Should(BeTrue())
		Expect(exists(&corev1.Pod{}, namespace, naming.LostNode("training", "node-c")).Spec.NodeName).To(Equal("node-c"))
		Eventually(func() *metav1.Time { return serverStatus(namespace, "training-2").LastFailover.PodDeletedTime }, timeout, "50ms").ShouldNot(BeNil())
		Expect(fencesOf(namespace)).To(HaveLen(1))
	})

	It("is not begun for a report that no namespace server stands for, whatever clocks show", func() {
		namespace := newNamespace()
		failingOver(namespace)
		lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: naming.NamespaceServers("training")}}
		lease.Spec.HolderIdentity, lease.Spec.RenewTime = ptr.To("training-namespace-1"), &metav1.MicroTime{Time: time.Now()}
		Expect(admin.Create(ctx, lease)).To(Succeed())
		reportUnreachable(namespace, "training-2", time.Now().Add(-time.Hour-9*time.Second))
		Eventually(func() string { return serverStatus(namespace, "training-2").FailoverRefusal.Reason }, timeout, "50ms").Should(Equal("ReportOutdated"))
		Expect(fencesOf(namespace)).To(BeEmpty())

		By("the API server writing down when a Lease was renewed")
		made := lease.ManagedFields[0].Time.Time
		Eventually(func() time.Time {
			lease.Spec.RenewTime = &metav1.MicroTime{Time: time.Now()}
			Expect(admin.Update(ctx, lease)).To(Succeed())
			Expect(lease.ManagedFields).To(HaveLen(1))
			return lease.ManagedFields[0].Time.Time
		}, timeout, "300ms").Should(BeTemporally(">", made))

		By("the one that reports confirming it, whose clock is an hour behind")
		lease.Spec.HolderIdentity = ptr.To("training-namespace-0")
		Eventually(func() []internalv1.PodFence {
			lease.Spec.RenewTime = &metav1.MicroTime{Time: time.Now().Add(-time.Hour)}
			Expect(admin.Update(ctx, lease)).To(Succeed())
			return fencesOf(namespace)
		}, timeout, "500ms").Should(HaveLen(1))
		Expect(fencesOf(namespace)[0].SinceTime.Time).To(BeTemporally("~", time.Now().Add(-9*time.Second), timeout))
	})

	It("can be asked for with Rook", func() {
		fs := builders.FileServer(newNamespace(), "training").Rook().Build()
		fs.Spec.Failover.Fencing = v1alpha1.FailoverFencingStorage
		Expect(admin.Create(ctx, fs, client.DryRunAll)).To(Succeed())
	})

	It("is left alone when half of the nodes are lost, and when failover is off or the FileServer is paused", func() {
		namespace := newNamespace()
		fs := provisioned(namespace, "training", 3)
		nothing := func() {
			GinkgoHelper()
			Consistently(func() []internalv1.PodFence { return fencesOf(namespace) }, "2s", "200ms").Should(BeEmpty())
		}
		pause := func(value string) {
			GinkgoHelper()
			change(fs, func(fs *v1alpha1.FileServer) {
				metav1.SetMetaDataAnnotation(&fs.ObjectMeta, v1alpha1.PausedAnnotation, value)
			})
			Eventually(func() bool {
				return fileServerCondition(namespace, "training", v1alpha1.ConditionPaused).Status == metav1.ConditionTrue
			}, timeout, "50ms").Should(Equal(value == v1alpha1.PausedTrue))
		}
		reportUnreachable(namespace, "training-1", time.Now().Add(-time.Minute))
		reportUnreachable(namespace, "training-2", time.Now().Add(-time.Minute))
		nothing()

		By("switching failover on while two of three nodes are lost")
		change(fs, func(fs *v1alpha1.FileServer) { fs.Spec.Failover.Fencing = v1alpha1.FailoverFencingStorage })
		Eventually(func() string { return serverStatus(namespace, "training-2").FailoverRefusal.Reason }, timeout, "50ms").Should(Equal("TooManyNodesUnhealthy"))
		Eventually(func() []string { return eventsOf(namespace, "FailoverRefused") }, timeout, "100ms").Should(HaveLen(2))
		nothing()

		By("one of them answering again while the FileServer is paused")
		pause(v1alpha1.PausedTrue)
		reportUnreachable(namespace, "training-1", time.Time{})
		nothing()

		By("going on")
		pause("false")
		Eventually(func() []internalv1.PodFence { return fencesOf(namespace) }, timeout, "50ms").Should(HaveLen(1))
		Eventually(func() string { return serverStatus(namespace, "training-2").FailoverRefusal.Reason }, timeout, "50ms").Should(BeEmpty())

		By("switching failover off before the answer")
		change(fs, func(fs *v1alpha1.FileServer) { fs.Spec.Failover.Fencing = v1alpha1.FailoverFencingNone })
		Eventually(func() []internalv1.PodFence { return fencesOf(namespace) }, timeout, "50ms").Should(BeEmpty())
		isNoMore(&corev1.Pod{}, namespace, naming.LostNode("training", "node-c"))
		nothing()
	})
})
