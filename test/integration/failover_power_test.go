package integration

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/naming"
	"github.com/howdah/howdah/test/builders"
)

const (
	attacherFinalizer = "external-attacher/example-com"
	taintShutdown     = "node.cloudprovider.kubernetes.io/shutdown"
)

// onNetworkVolumes makes a FileServer with failover by power, whose data servers run on node-a, node-b and node-c with volumes of a CSI driver.
func onNetworkVolumes(namespace string, affinity func(node string) *corev1.VolumeNodeAffinity) *v1alpha1.FileServer {
	GinkgoHelper()
	servingFileServer(namespace, "training", 3)
	for i, node := range []string{"node-a", "node-b", "node-c"} {
		claim := naming.VolumeClaim("training", int32(i), 0)
		attachVolume(namespace, claim, node, bindNetworkVolume(namespace, claim, node, affinity))
	}
	return failingOverByPower(namespace)
}

// failingOverByPower asks for failover, and waits until the status has on which boot of its node training-2 serves.
func failingOverByPower(namespace string) *v1alpha1.FileServer {
	GinkgoHelper()
	fs := builders.FileServer(namespace, "training").Build()
	change(fs, func(fs *v1alpha1.FileServer) { fs.Spec.Failover.Fencing = v1alpha1.FailoverFencingPower })
	Eventually(func() string { return serverStatus(namespace, "training-2").ServedBoot.BootID }, timeout, "50ms").Should(Equal("boot-1-node-c"))
	// The nodes are those of later stories, too.
	DeferCleanup(func() {
		change(fs, func(fs *v1alpha1.FileServer) { fs.Spec.Failover.Fencing = v1alpha1.FailoverFencingNone })
	})
	return fs
}

// bindNetworkVolume plays the provisioner, and returns the name of the volume.
func bindNetworkVolume(namespace, claimName, node string, affinity func(node string) *corev1.VolumeNodeAffinity) string {
	GinkgoHelper()
	claim := exists(&corev1.PersistentVolumeClaim{}, namespace, claimName)
	pv := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: "pv-" + string(claim.UID)},
		Spec: corev1.PersistentVolumeSpec{
			Capacity: claim.Spec.Resources.Requests, AccessModes: claim.Spec.AccessModes, StorageClassName: standardClass,
			ClaimRef:               &corev1.ObjectReference{Kind: "PersistentVolumeClaim", Namespace: namespace, Name: claimName, UID: claim.UID},
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "example.com", VolumeHandle: string(claim.UID)}},
		},
	}
	if affinity != nil {
		pv.Spec.NodeAffinity = affinity(node)
	}
	create(pv)
	change(claim, func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeName = pv.Name })
	return pv.Name
}

// attachVolume plays the attach/detach controller and the external attacher.
func attachVolume(namespace, claimName, node, volume string) {
	GinkgoHelper()
	attachment := &storagev1.VolumeAttachment{
		ObjectMeta: metav1.ObjectMeta{Name: attachmentName(namespace, claimName, node), Finalizers: []string{attacherFinalizer}},
		Spec:       storagev1.VolumeAttachmentSpec{Attacher: "example.com", NodeName: node, Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &volume}},
	}
	create(attachment)
	before := attachment.DeepCopy()
	attachment.Status.Attached = true
	Expect(admin.Status().Patch(ctx, attachment, client.MergeFrom(before))).To(Succeed())
}

func attachmentName(namespace, claim, node string) string {
	return "csi-" + namespace + "-" + claim + "-" + node
}

func volumeAttachmentOf(namespace, node string) *storagev1.VolumeAttachment {
	GinkgoHelper()
	attachment := &storagev1.VolumeAttachment{}
	Expect(admin.Get(ctx, client.ObjectKey{Name: attachmentName(namespace, naming.VolumeClaim("training", 2, 0), node)}, attachment)).To(Succeed())
	return attachment
}

func unknown(status *corev1.NodeStatus) {
	status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionUnknown}}
}

// taintNode sets the taints of a node until the end of the story.
func taintNode(name string, keys ...string) {
	GinkgoHelper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	change(node, func(n *corev1.Node) {
		n.Spec.Taints = nil
		for _, key := range keys {
			n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: key, Effect: corev1.TaintEffectNoSchedule})
		}
	})
	DeferCleanup(func() { change(node, func(n *corev1.Node) { n.Spec.Taints = nil }) })
}

func refusal(namespace string) func() string {
	return func() string { return serverStatus(namespace, "training-2").FailoverRefusal.Reason }
}

func nothingIsDeleted(namespace string, pod types.UID) {
	GinkgoHelper()
	Consistently(func(g Gomega) {
		g.Expect(exists(&corev1.Pod{}, namespace, "training-2").UID).To(Equal(pod))
		g.Expect(volumeAttachmentOf(namespace, "node-c").DeletionTimestamp).To(BeNil())
	}, "2s", "200ms").Should(Succeed())
}

var _ = Describe("A machine that loses its power, with volumes that other nodes can use", func() {
	BeforeEach(func() {
		for _, name := range []string{"node-a", "node-b", "node-c"} {
			changeNode(name, boot("boot-1-"+name))
		}
	})

	It("has its pod deleted and its volume detached once there is evidence that it is off", func() {
		namespace := newNamespace()
		onNetworkVolumes(namespace, nil)
		lost := exists(&corev1.Pod{}, namespace, "training-2")

		By("the data server not answering, and the node not being ready: there is no evidence that the machine is off")
		changeNode("node-c", unknown)
		taintNode("node-c", corev1.TaintNodeUnreachable)
		reportUnreachable(namespace, "training-2", time.Now().Add(-time.Minute))
		Eventually(refusal(namespace), timeout, "50ms").Should(Equal("PowerUnknown"))
		Expect(serverStatus(namespace, "training-2").FailoverRefusal.Message).To(ContainSubstring("kubectl taint node node-c node.kubernetes.io/out-of-service"))
		nothingIsDeleted(namespace, lost.UID)

		By("the cloud's controller saying so")
		taintNode("node-c", corev1.TaintNodeUnreachable, taintShutdown)
		Eventually(func() bool {
			return apierrors.IsNotFound(admin.Get(ctx, client.ObjectKeyFromObject(lost), &corev1.Pod{}))
		}, timeout, "50ms").Should(BeTrue())
		Expect(serverStatus(namespace, "training-2").LastFailover.Evidence).To(Equal(v1alpha1.FailoverEvidenceShutdownTaint), "it is written before anything is deleted")
		next := runDataServer(namespace, "training-2", "node-a")

		By("asking the driver to detach the volume from the node, and no other volume")
		Eventually(func() *metav1.Time { return volumeAttachmentOf(namespace, "node-c").DeletionTimestamp }, timeout, "50ms").ShouldNot(BeNil())
		attachments := &storagev1.VolumeAttachmentList{}
		Expect(admin.List(ctx, attachments)).To(Succeed())
		for i := range attachments.Items {
			if attachments.Items[i].DeletionTimestamp != nil {
				Expect(attachments.Items[i].Name).To(Equal(attachmentName(namespace, naming.VolumeClaim("training", 2, 0), "node-c")))
			}
		}
		Eventually(func() string {
			return fileServerCondition(namespace, "training", v1alpha1.FileServerServersAvailable).Message
		}, timeout, "50ms").Should(And(ContainSubstring("failover: waiting for pv-"), ContainSubstring("to be detached from node node-c")))
		Expect(serverStatus(namespace, "training-2").LastFailover.VolumesDetachedTime).To(BeNil())

		By("the driver having detached it")
		change(volumeAttachmentOf(namespace, "node-c"), func(a *storagev1.VolumeAttachment) { a.Finalizers = nil })
		Eventually(func() *metav1.Time { return serverStatus(namespace, "training-2").LastFailover.VolumesDetachedTime }, timeout, "50ms").ShouldNot(BeNil())
		reportUnreachable(namespace, "training-2", time.Time{})
		Eventually(func() *metav1.Time { return serverStatus(namespace, "training-2").LastFailover.ServingTime }, timeout, "50ms").ShouldNot(BeNil())
		record := serverStatus(namespace, "training-2").LastFailover
		Expect(record.NodeName).To(Equal("node-c"))
		Expect(record.Count).To(BeEquivalentTo(1))
		Expect(record.Completed).To(BeEquivalentTo(1))
		Expect(record.PodDeletedTime).NotTo(BeNil())
		Expect(record.Message).To(ContainSubstring("node node-c is off: taint node.cloudprovider.kubernetes.io/shutdown"))
		for _, reason := range []string{"FailoverStarted", "FailoverFenced", "FailoverDone"} {
			Eventually(func() []string { return eventsOf(namespace, reason) }, timeout, "100ms").Should(HaveLen(1), reason)
		}
		Expect(exists(&corev1.Pod{}, namespace, "training-2").UID).To(Equal(next))
		Eventually(func() types.UID { return types.UID(serverStatus(namespace, "training-2").ServedBoot.PodUID) }, timeout, "50ms").Should(Equal(next))
	})

	It("leaves the volume to Kubernetes where the node is out of service", func() {
		namespace := newNamespace()
		onNetworkVolumes(namespace, nil)
		lost := exists(&corev1.Pod{}, namespace, "training-2")
		changeNode("node-c", unknown)
		taintNode("node-c", corev1.TaintNodeOutOfService)
		reportUnreachable(namespace, "training-2", time.Now().Add(-time.Minute))
		Eventually(func() bool {
			return apierrors.IsNotFound(admin.Get(ctx, client.ObjectKeyFromObject(lost), &corev1.Pod{}))
		}, timeout, "50ms").Should(BeTrue())
		runDataServer(namespace, "training-2", "node-a")
		Consistently(func() *metav1.Time { return volumeAttachmentOf(namespace, "node-c").DeletionTimestamp }, "5s", "200ms").Should(BeNil())
		Expect(serverStatus(namespace, "training-2").LastFailover.Evidence).To(Equal(v1alpha1.FailoverEvidenceOutOfServiceTaint))
	})

	It("is left alone while a taint may be of an earlier boot", func() {
		namespace := newNamespace()
		onNetworkVolumes(namespace, nil)
		lost := exists(&corev1.Pod{}, namespace, "training-2")

		By("the machine booting again, with the taint still there, and losing its network")
		taintNode("node-c", taintShutdown)
		changeNode("node-c", boot("boot-2"))
		Consistently(func() string { return serverStatus(namespace, "training-2").ServedBoot.BootID }, "2s", "200ms").Should(Equal("boot-1-node-c"))
		changeNode("node-c", unknown)
		reportUnreachable(namespace, "training-2", time.Now().Add(-time.Minute))
		Eventually(refusal(namespace), timeout, "50ms").Should(Equal("EvidenceOutdated"))
		nothingIsDeleted(namespace, lost.UID)
	})

	It("waits for its node if its volumes are there, and says so within seconds", func() {
		namespace := newNamespace()
		onNetworkVolumes(namespace, func(node string) *corev1.VolumeNodeAffinity {
			return &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{node}}},
			}}}}
		})
		lost := exists(&corev1.Pod{}, namespace, "training-2")
		reportUnreachable(namespace, "training-2", time.Now())
		start := time.Now()
		Eventually(refusal(namespace), timeout, "50ms").Should(Equal("VolumesOnNode"))
		AddReportEntry("the status says what a node-local volume waits for", time.Since(start).String())
		Expect(serverStatus(namespace, "training-2").FailoverRefusal.Message).To(And(
			ContainSubstring("(claim data-0-training-2)"), ContainSubstring("it waits for node node-c to come back")))
		Eventually(func() []string { return eventsOf(namespace, "FailoverRefused") }, timeout, "100ms").Should(HaveLen(1))
		changeNode("node-c", unknown)
		taintNode("node-c", corev1.TaintNodeOutOfService)
		Consistently(refusal(namespace), "2s", "200ms").Should(Equal("VolumesOnNode"))
		nothingIsDeleted(namespace, lost.UID)
	})

	It("has nothing done to it while the FileServer is paused, and with a claim that names another claim's volume", func() {
		namespace := newNamespace()
		fs := onNetworkVolumes(namespace, nil)
		lost := exists(&corev1.Pod{}, namespace, "training-2")
		pause := func(value string) {
			change(fs, func(fs *v1alpha1.FileServer) {
				metav1.SetMetaDataAnnotation(&fs.ObjectMeta, v1alpha1.PausedAnnotation, value)
			})
		}
		pause(v1alpha1.PausedTrue)
		Eventually(func() metav1.ConditionStatus {
			return fileServerCondition(namespace, "training", v1alpha1.ConditionPaused).Status
		}, timeout, "50ms").Should(Equal(metav1.ConditionTrue))
		changeNode("node-c", unknown)
		taintNode("node-c", taintShutdown)
		reportUnreachable(namespace, "training-2", time.Now().Add(-time.Minute))
		nothingIsDeleted(namespace, lost.UID)

		claim := exists(&corev1.PersistentVolumeClaim{}, namespace, naming.VolumeClaim("training", 2, 0))
		pv := exists(&corev1.PersistentVolume{}, "", claim.Spec.VolumeName)
		change(pv, func(pv *corev1.PersistentVolume) { pv.Spec.ClaimRef.UID = "of-another-claim" })
		pause("false")
		Eventually(refusal(namespace), timeout, "50ms").Should(Equal("VolumesNotAttached"))
		nothingIsDeleted(namespace, lost.UID)
	})

	It("can be asked for on volumes only", func() {
		for what, fs := range map[string]*v1alpha1.FileServer{
			"Power with Ceph":      builders.FileServer(newNamespace(), "training").Provisioned().Build(),
			"Storage with volumes": builders.FileServer(newNamespace(), "training").Build(),
		} {
			fs.Spec.Failover.Fencing = v1alpha1.FailoverFencing(map[bool]string{true: "Power", false: "Storage"}[what == "Power with Ceph"])
			err := admin.Create(ctx, fs, client.DryRunAll)
			Expect(err).To(MatchError(ContainSubstring("failover.fencing")), what)
		}
		fs := builders.FileServer(newNamespace(), "training").Build()
		fs.Spec.Failover.Fencing = v1alpha1.FailoverFencingPower
		Expect(admin.Create(ctx, fs, client.DryRunAll)).To(Succeed())
	})
})
