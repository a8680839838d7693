package integration

import (
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/naming"
	"github.com/howdah/howdah/test/builders"
)

// openFileServer serves claims of all namespaces.
func openFileServer(replicas int32) (storage string) {
	GinkgoHelper()
	storage = newNamespace()
	fs := builders.FileServer(storage, "fs").Replicas(replicas).Class(standardClass).Build()
	fs.Spec.AllowedNamespaces = &v1alpha1.AllowedNamespaces{From: v1alpha1.NamespacesFromAll}
	create(fs)
	runEverything(storage, "fs")
	return storage
}

// newClass makes a StorageClass for a story, and takes it away again.
func newClass(class *builders.StorageClassBuilder) string {
	GinkgoHelper()
	object := class.Build()
	create(object)
	DeferCleanup(func() { _ = admin.Delete(ctx, object) })
	return object.Name
}

// claimed makes a claim.
func claimed(claim *builders.ClaimBuilder) *corev1.PersistentVolumeClaim {
	GinkgoHelper()
	object := claim.Build()
	create(object)
	return object
}

// boundClaim waits for the volume of a claim, while data servers and namespace servers do their part, and plays Kubernetes' controller of volumes.
func boundClaim(claim *corev1.PersistentVolumeClaim, storage string) *corev1.PersistentVolume {
	GinkgoHelper()
	volume := &corev1.PersistentVolume{}
	name := naming.ProvisionedVolume(string(claim.UID))
	Eventually(func() error {
		loadConfigurations(storage, "fs")
		keepDirectories(storage)
		return admin.Get(ctx, client.ObjectKey{Name: name}, volume)
	}, timeout, "100ms").Should(Succeed(), func() string { return shareCondition(storage, name, v1alpha1.ConditionReady).Message })
	bind(claim, volume)
	return volume
}

// bind plays Kubernetes' controller of volumes.
func bind(claim *corev1.PersistentVolumeClaim, volume *corev1.PersistentVolume) {
	GinkgoHelper()
	change(claim, func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeName = volume.Name })
	setPhase(volume, corev1.VolumeBound)
	before := claim.DeepCopy()
	claim.Status.Phase, claim.Status.Capacity, claim.Status.AccessModes = corev1.ClaimBound, volume.Spec.Capacity, volume.Spec.AccessModes
	Expect(admin.Status().Patch(ctx, claim, client.MergeFrom(before))).To(Succeed())
}

func setPhase(volume *corev1.PersistentVolume, phase corev1.PersistentVolumePhase) {
	GinkgoHelper()
	before := volume.DeepCopy()
	volume.Status.Phase = phase
	Expect(admin.Status().Patch(ctx, volume, client.MergeFrom(before))).To(Succeed())
}

// deleteClaim deletes a claim that no pod uses, and has Kubernetes see that its volume, if there is one, is released.
func deleteClaim(claim *corev1.PersistentVolumeClaim) {
	GinkgoHelper()
	Expect(admin.Delete(ctx, claim)).To(Succeed())
	isNoMore(&corev1.PersistentVolumeClaim{}, claim.Namespace, claim.Name)
	volume := &corev1.PersistentVolume{}
	if err := admin.Get(ctx, client.ObjectKey{Name: naming.ProvisionedVolume(string(claim.UID))}, volume); !apierrors.IsNotFound(err) {
		Expect(err).NotTo(HaveOccurred())
		setPhase(volume, corev1.VolumeReleased)
	}
}

// claimNotes are the notes of the events of a reason about a claim, the newest last.
func claimNotes(claim *corev1.PersistentVolumeClaim, reason string) func() []string {
	return func() []string {
		GinkgoHelper()
		var list eventsv1.EventList
		Expect(admin.List(ctx, &list, client.InNamespace(claim.Namespace))).To(Succeed())
		slices.SortFunc(list.Items, func(a, b eventsv1.Event) int { return a.EventTime.Compare(b.EventTime.Time) })
		var notes []string
		for _, event := range list.Items {
			if event.Regarding.UID == claim.UID && event.Reason == reason {
				notes = append(notes, event.Note)
			}
		}
		return notes
	}
}

// perServerOf counts the directories of all shares of a FileServer's namespace by data server.
func perServerOf(storage string) map[string]int {
	GinkgoHelper()
	var list internalv1.ShareDirectoryList
	Expect(admin.List(ctx, &list, client.InNamespace(storage))).To(Succeed())
	counts := map[string]int{}
	for _, directory := range list.Items {
		if directory.Spec.DataServerRef.Name != "" {
			counts[directory.Spec.DataServerRef.Name]++
		}
	}
	return counts
}
