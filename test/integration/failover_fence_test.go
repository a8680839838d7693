package integration

import (
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/naming"
)

// csiAddonsCRDs are those of csi-addons, as far as they are used. Its controller is played: it needs a CSI driver with a sidecar.
func csiAddonsCRDs() envtest.CRDInstallOptions {
	return envtest.CRDInstallOptions{Paths: []string{filepath.Join("testdata", "csi-addons")}, ErrorIfPathMissing: true}
}

func csiAddonsObject(kind, name string, spec map[string]any) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "csiaddons.openshift.io/v1alpha1", "kind": kind, "spec": spec}}
	object.SetName(name)
	return object
}

// setCSIAddonsStatus plays csi-addons' controller.
func setCSIAddonsStatus(object *unstructured.Unstructured, status map[string]any) {
	GinkgoHelper()
	Expect(admin.Get(ctx, client.ObjectKeyFromObject(object), object)).To(Succeed())
	before := object.DeepCopy()
	object.Object["status"] = status
	Expect(admin.Status().Patch(ctx, object, client.MergeFrom(before))).To(Succeed())
}

// fence makes a NetworkFence with the result that its driver has given, and removes an earlier one of the name.
func fence(name, class, result string, cidrs ...any) *unstructured.Unstructured {
	GinkgoHelper()
	object := csiAddonsObject("NetworkFence", name, map[string]any{"networkFenceClassName": class, "fenceState": "Fenced", "cidrs": cidrs})
	Expect(client.IgnoreNotFound(admin.Delete(ctx, object.DeepCopy()))).To(Succeed())
	create(object)
	DeferCleanup(func() { Expect(client.IgnoreNotFound(admin.Delete(ctx, object.DeepCopy()))).To(Succeed()) })
	setCSIAddonsStatus(object, map[string]any{"result": result})
	return object
}

// reportClients plays the driver's sidecar on node-c: it reports from where that node uses the storage.
func reportClients(namespace string) {
	GinkgoHelper()
	object := csiAddonsObject("CSIAddonsNode", "node-c-example", map[string]any{"driver": map[string]any{"name": "example.com", "nodeID": "node-c", "endpoint": "pod://x"}})
	object.SetNamespace(namespace)
	create(object)
	DeferCleanup(func() { Expect(client.IgnoreNotFound(admin.Delete(ctx, object))).To(Succeed()) })
	setCSIAddonsStatus(object, map[string]any{"networkFenceClientStatus": []any{map[string]any{
		"networkFenceClassName": "example", "ClientDetails": []any{map[string]any{"id": "c", "cidrs": []any{"10.77.0.3/32"}}},
	}}})
}

func setFenceState(fence *unstructured.Unstructured, state string) {
	GinkgoHelper()
	change(fence, func(f *unstructured.Unstructured) {
		Expect(unstructured.SetNestedField(f.Object, state, "spec", "fenceState")).To(Succeed())
	})
}

// cutOff is what Kubernetes has of a node whose kubelet reported last a minute ago.
func cutOff(status *corev1.NodeStatus) {
	status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionUnknown, LastHeartbeatTime: metav1.NewTime(time.Now().Add(-time.Minute))}}
	status.Addresses = []corev1.NodeAddress{
		{Type: corev1.NodeHostName, Address: "node-c"}, {Type: corev1.NodeInternalIP, Address: "10.77.0.3"}, {Type: corev1.NodeInternalIP, Address: "fd77::3"},
	}
}

var _ = Describe("A node that its storage refuses (NetworkFence of csi-addons)", Ordered, func() {
	BeforeEach(func() {
		for _, name := range []string{"node-a", "node-b", "node-c"} {
			changeNode(name, boot("boot-1-"+name))
		}
	})
	AfterAll(func() { Expect(envtest.UninstallCRDs(config, csiAddonsCRDs())).To(Succeed()) })

	loses := func(namespace string) *corev1.Pod {
		GinkgoHelper()
		onNetworkVolumes(namespace, nil)
		DeferCleanup(func() { // Other stories look for attachments that are being deleted.
			attachment := &storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: attachmentName(namespace, naming.VolumeClaim("training", 2, 0), "node-c")}}
			patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
			Expect(client.IgnoreNotFound(admin.Patch(ctx, attachment, patch))).To(Succeed())
		})
		lost := exists(&corev1.Pod{}, namespace, "training-2")
		changeNode("node-c", cutOff)
		taintNode("node-c", corev1.TaintNodeUnreachable)
		reportUnreachable(namespace, "training-2", time.Now().Add(-time.Minute))
		Eventually(refusal(namespace), timeout, "50ms").Should(Equal("PowerUnknown"))
		return lost
	}
	doubt := func(namespace string) func() string {
		return func() string { return serverStatus(namespace, "training-2").FailoverRefusal.Message }
	}
	isDeleted := func(pod *corev1.Pod) func() bool {
		return func() bool {
			return apierrors.IsNotFound(admin.Get(ctx, client.ObjectKeyFromObject(pod), &corev1.Pod{}))
		}
	}

	It("is served elsewhere once all of it is refused, whenever csi-addons is installed", func() {
		namespace := newNamespace()
		lost := loses(namespace)
		Expect(doubt(namespace)()).NotTo(ContainSubstring("refused by the storage"), "csi-addons is not installed")

		By("csi-addons being installed, and a fence that covers part of the node")
		_, err := envtest.InstallCRDs(config, csiAddonsCRDs())
		Expect(err).NotTo(HaveOccurred())
		create(csiAddonsObject("NetworkFenceClass", "example", map[string]any{"provisioner": "example.com"}))
		create(csiAddonsObject("NetworkFenceClass", "other-driver", map[string]any{"provisioner": "other.example.com"}))
		create(csiAddonsObject("NetworkFenceClass", "other-storage", map[string]any{"provisioner": "example.com", "parameters": map[string]any{"clusterID": "b"}}))
		part := fence("part", "example", "Succeeded", "10.77.0.3/32")
		Eventually(doubt(namespace), timeout, "100ms").Should(ContainSubstring("csi-addons does not report from which addresses node node-c uses the storage"))
		reportClients(namespace)
		Eventually(doubt(namespace), timeout, "100ms").Should(ContainSubstring("NetworkFence part covers 10.77.0.3, not fd77::3 of node node-c"))
		nothingIsDeleted(namespace, lost.UID)

		By("fences that say nothing of it")
		Expect(admin.Delete(ctx, part)).To(Succeed())
		whole := []any{"10.77.0.3/32", "fd77::/64"}
		for _, step := range []struct{ class, result, says string }{
			{"other-driver", "Succeeded", "is for driver other.example.com, and volume pv-"},
			{"other-storage", "Succeeded", "is for another storage of driver example.com"},
			{"example", "Failed", "has the result Failed"},
			{"not-there", "Succeeded", "has no driver: its NetworkFenceClass does not exist"},
		} {
			fence("whole", step.class, step.result, whole...)
			Eventually(doubt(namespace), timeout, "100ms").Should(ContainSubstring("NetworkFence whole "+step.says), step.class)
		}
		again := fence("whole", "example", "Failed", whole...)
		setFenceState(again, "Unfenced")
		setCSIAddonsStatus(again, map[string]any{"result": "Succeeded"})
		Eventually(doubt(namespace), timeout, "100ms").Should(ContainSubstring("NetworkFence whole is Unfenced, so the storage may accept 10.77.0.3, fd77::3 again"))
		setFenceState(again, "Fenced")
		Eventually(doubt(namespace), timeout, "100ms").Should(ContainSubstring("NetworkFence whole was changed after it was made"))
		nothingIsDeleted(namespace, lost.UID)

		By("one that covers all of the node, and succeeded")
		began := time.Now()
		fence("whole", "example", "Succeeded", whole...)
		Eventually(isDeleted(lost), timeout, "50ms").Should(BeTrue())
		Expect(serverStatus(namespace, "training-2").LastFailover.Evidence).To(Equal(v1alpha1.FailoverEvidenceNetworkFence), "it is written before anything is deleted")
		runDataServer(namespace, "training-2", "node-a")
		Eventually(func() *metav1.Time { return volumeAttachmentOf(namespace, "node-c").DeletionTimestamp }, timeout, "50ms").ShouldNot(BeNil())
		AddReportEntry("from the fence to the deletion of the VolumeAttachment", time.Since(began).Round(100*time.Millisecond).String())
		change(volumeAttachmentOf(namespace, "node-c"), func(a *storagev1.VolumeAttachment) { a.Finalizers = nil })
		reportUnreachable(namespace, "training-2", time.Time{})
		Eventually(func() *metav1.Time { return serverStatus(namespace, "training-2").LastFailover.ServingTime }, timeout, "50ms").ShouldNot(BeNil())
		record := serverStatus(namespace, "training-2").LastFailover
		Expect(record.Message).To(ContainSubstring("node node-c is refused by the storage: NetworkFence whole"))
		Expect(record.VolumesDetachedTime).NotTo(BeNil())
		Eventually(func() []string { return eventsOf(namespace, "FailoverFenced") }, timeout, "100ms").Should(
			ConsistOf(ContainSubstring("training-2 on node node-c can't write any more: namespace server training-namespace-0")))
	})

	It("keeps its volumes attached once it is not refused any more", func() {
		namespace := newNamespace()
		lost := loses(namespace)
		reportClients(namespace)
		whole := fence("whole", "example", "Succeeded", "10.77.0.0/24", "fd77::3/128")
		Eventually(isDeleted(lost), timeout, "10ms").Should(BeTrue())
		Eventually(func() *metav1.Time { return serverStatus(namespace, "training-2").LastFailover.PodDeletedTime }, timeout, "10ms").ShouldNot(BeNil())
		setFenceState(whole, "Unfenced") // Within 2 s of that: the operator gives the kubelet so long.
		runDataServer(namespace, "training-2", "node-a")
		Eventually(func() string {
			return fileServerCondition(namespace, "training", v1alpha1.FileServerServersAvailable).Message
		}, timeout, "50ms").Should(And(ContainSubstring("to be detached from node node-c"), ContainSubstring("NetworkFence whole is Unfenced")))
		Consistently(func() *metav1.Time { return volumeAttachmentOf(namespace, "node-c").DeletionTimestamp }, "5s", "200ms").Should(BeNil())

		By("the fence being made again")
		fence("whole", "example", "Succeeded", "10.77.0.0/24", "fd77::3/128")
		Eventually(func() *metav1.Time { return volumeAttachmentOf(namespace, "node-c").DeletionTimestamp }, timeout, "50ms").ShouldNot(BeNil())
	})

	It("is no reason to fail while csi-addons is being removed", func() {
		Expect(envtest.UninstallCRDs(config, csiAddonsCRDs())).To(Succeed())
		namespace := newNamespace()
		lost := loses(namespace)
		Expect(doubt(namespace)()).NotTo(ContainSubstring("refused by the storage"))
		nothingIsDeleted(namespace, lost.UID)
		taintNode("node-c", corev1.TaintNodeUnreachable, taintShutdown)
		Eventually(isDeleted(lost), timeout, "50ms").Should(BeTrue(), "other evidence counts as before")
	})
})
