package integration

import (
	"fmt"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/controllers/conditions"
	"github.com/howdah/howdah/internal/naming"
	"github.com/howdah/howdah/test/builders"
)

// servingFileServer makes a FileServer and plays everything that it needs to be Ready.
func servingFileServer(namespace, name string, replicas int32) {
	GinkgoHelper()
	create(builders.FileServer(namespace, name).Replicas(replicas).Class(standardClass).Build())
	runEverything(namespace, name)
}

// shareCondition reads a condition of a share; Status is "" if there is none yet.
func shareCondition(namespace, name, conditionType string) metav1.Condition {
	var share v1alpha1.FileShare
	if err := admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &share); err != nil {
		return metav1.Condition{Message: err.Error()}
	}
	if c := meta.FindStatusCondition(share.Status.Conditions, conditionType); c != nil {
		return *c
	}
	return metav1.Condition{}
}

// expectShare waits for a condition of a share and returns its message.
func expectShare(namespace, name, conditionType string, status metav1.ConditionStatus, reason string) string {
	GinkgoHelper()
	var got metav1.Condition
	Eventually(func() string {
		got = shareCondition(namespace, name, conditionType)
		return fmt.Sprintf("%s %s", got.Status, got.Reason)
	}, timeout, "50ms").Should(Equal(fmt.Sprintf("%s %s", status, reason)), func() string { return got.Message })
	return got.Message
}

// readyShare waits for a share to be Ready while data servers and namespace servers do their part.
func readyShare(namespace, name string) *v1alpha1.FileShare {
	GinkgoHelper()
	share := exists(&v1alpha1.FileShare{}, namespace, name)
	Eventually(func() metav1.ConditionStatus {
		loadConfigurations(namespace, share.Spec.FileServerRef.Name)
		keepDirectories(namespace)
		takeOnVolume(namespace, name)
		return shareCondition(namespace, name, v1alpha1.ConditionReady).Status
	}, timeout, "100ms").Should(Equal(metav1.ConditionTrue),
		func() string { return shareCondition(namespace, name, v1alpha1.ConditionReady).Message })
	return exists(share, namespace, name)
}

// keepDirectories plays the leader of the namespace servers: what is Creating gets made, what the
// operator wants removed goes, except for directories that hold data; data servers that serve are looked at.
func keepDirectories(namespace string, holdingData ...string) {
	GinkgoHelper()
	lookAtDataServers(namespace)
	var list internalv1.ShareDirectoryList
	Expect(admin.List(ctx, &list, client.InNamespace(namespace))).To(Succeed())
	for i := range list.Items {
		directory := &list.Items[i]
		before := directory.DeepCopy()
		switch {
		case directory.Spec.Removal == internalv1.RemovalWhenEmpty && !slices.Contains(holdingData, directory.Spec.Path):
			Expect(client.IgnoreNotFound(admin.Delete(ctx, directory))).To(Succeed())
			continue
		case directory.Spec.Removal == internalv1.RemovalWhenEmpty && directory.Status.RemovalRefusedTime == nil:
			directory.Status.RemovalRefusedTime = ptr.To(metav1.Now())
		case directory.State() == internalv1.DirectoryReady, directory.Status.LossID != "":
			continue
		}
		directory.Status.State = internalv1.DirectoryReady
		Expect(client.IgnoreNotFound(admin.Status().Patch(ctx, directory, client.MergeFrom(before)))).To(Succeed())
	}
}

// lookAtDataServers plays the leader: it has looked at every data server that serves a share, and found nothing that has no
// ShareDirectory.
func lookAtDataServers(namespace string) {
	GinkgoHelper()
	var exports internalv1.ShareExportList
	Expect(admin.List(ctx, &exports, client.InNamespace(namespace))).To(Succeed())
	for i := range exports.Items {
		if export := &exports.Items[i]; export.DeletionTimestamp == nil && conditions.IsTrue(export.Status.Conditions, internalv1.ExportServing) {
			tellInventory(export, internalv1.ShareInventory{})
		}
	}
}

// tellInventory writes what was found of a share on a data server.
func tellInventory(export *internalv1.ShareExport, found internalv1.ShareInventory) {
	GinkgoHelper()
	share := &v1alpha1.FileShare{}
	namespace, name := naming.ShareOfKey(export.Namespace, export.Spec.FileShareRef.Name)
	err := admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, share)
	if apierrors.IsNotFound(err) {
		return
	}
	Expect(err).NotTo(HaveOccurred())
	found.FileShareUID, found.Generation = string(share.UID), max(1, share.Status.InventoryGeneration)
	if equality.Semantic.DeepEqual(found, export.Status.Inventory) {
		return
	}
	before := export.DeepCopy()
	export.Status.Inventory = found
	Expect(client.IgnoreNotFound(admin.Status().Patch(ctx, export, client.MergeFrom(before)))).To(Succeed())
}

// directoriesOf are the ShareDirectories of a share, by path.
func directoriesOf(namespace, share string) map[string]internalv1.ShareDirectory {
	GinkgoHelper()
	var list internalv1.ShareDirectoryList
	Expect(admin.List(ctx, &list, client.InNamespace(namespace), client.MatchingLabels{v1alpha1.FileShareLabel: share})).To(Succeed())
	directories := map[string]internalv1.ShareDirectory{}
	for _, directory := range list.Items {
		directories[directory.Spec.Path] = directory
	}
	return directories
}

// perServer counts ShareDirectories by data server.
func perServer(directories map[string]internalv1.ShareDirectory) map[string]int {
	counts := map[string]int{}
	for _, directory := range directories {
		if directory.Spec.DataServerRef.Name != "" {
			counts[directory.Spec.DataServerRef.Name]++
		}
	}
	return counts
}

// claimAndVolume waits for the ready-made ones of a share.
func claimAndVolume(namespace, share string) (*corev1.PersistentVolumeClaim, *corev1.PersistentVolume) {
	GinkgoHelper()
	return exists(&corev1.PersistentVolumeClaim{}, namespace, naming.ShareClaim(share)),
		exists(&corev1.PersistentVolume{}, "", naming.ShareVolume(namespace, share))
}

// takeOnVolume plays Kubernetes' controller of volumes as far as the volume alone goes: it is Available
// while it refers to no particular claim, and Released when the claim that it refers to is gone.
func takeOnVolume(namespace, share string) {
	GinkgoHelper()
	volume := &corev1.PersistentVolume{}
	if admin.Get(ctx, client.ObjectKey{Name: naming.ShareVolume(namespace, share)}, volume) != nil {
		return
	}
	before := volume.DeepCopy()
	claim := &corev1.PersistentVolumeClaim{}
	err := admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: naming.ShareClaim(share)}, claim)
	switch {
	case volume.Spec.ClaimRef.UID == "":
		volume.Status.Phase = corev1.VolumeAvailable
	case apierrors.IsNotFound(err) || err == nil && claim.UID != volume.Spec.ClaimRef.UID:
		volume.Status.Phase = corev1.VolumeReleased
	}
	Expect(client.IgnoreNotFound(admin.Status().Patch(ctx, volume, client.MergeFrom(before)))).To(Succeed())
}

// bindVolume plays Kubernetes' controller of volumes: it completes claimRef and marks both bound.
func bindVolume(namespace, share string) {
	GinkgoHelper()
	Eventually(func() error {
		takeOnVolume(namespace, share)
		return admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: naming.ShareClaim(share)}, &corev1.PersistentVolumeClaim{})
	}, timeout, "50ms").Should(Succeed())
	claim, volume := claimAndVolume(namespace, share)
	change(volume, func(v *corev1.PersistentVolume) {
		v.Spec.ClaimRef.UID = claim.UID
		v.Spec.ClaimRef.ResourceVersion = claim.ResourceVersion
	})
	before := volume.DeepCopy()
	volume.Status.Phase = corev1.VolumeBound
	Expect(admin.Status().Patch(ctx, volume, client.MergeFrom(before))).To(Succeed())
	beforeClaim := claim.DeepCopy()
	claim.Status.Phase = corev1.ClaimBound
	Expect(admin.Status().Patch(ctx, claim, client.MergeFrom(beforeClaim))).To(Succeed())
}

// isNoMore waits until an object does not exist.
func isNoMore(object client.Object, namespace, name string) {
	GinkgoHelper()
	Eventually(func() bool {
		letGo(object, namespace, name)
		return apierrors.IsNotFound(admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, object))
	}, timeout, "100ms").Should(BeTrue(), "%T %s/%s must be gone", object, namespace, name)
}

// letGo plays Kubernetes' protection controllers, which envtest does not run: what is being
// deleted and not in use goes. It may exist again afterwards.
func letGo(object client.Object, namespace, name string) {
	GinkgoHelper()
	err := admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, object)
	if err != nil || object.GetDeletionTimestamp() == nil {
		return
	}
	before := object.DeepCopyObject().(client.Object)
	object.SetFinalizers(slices.DeleteFunc(slices.Clone(object.GetFinalizers()), func(f string) bool {
		return f == "kubernetes.io/pvc-protection" || f == "kubernetes.io/pv-protection"
	}))
	_ = admin.Patch(ctx, object, client.MergeFrom(before))
}

// letClaimsGo does so for the claims of shares that are being deleted, unless a pod uses them.
func letClaimsGo() {
	GinkgoHelper()
	var claims corev1.PersistentVolumeClaimList
	Expect(admin.List(ctx, &claims, client.HasLabels{v1alpha1.FileShareLabel})).To(Succeed())
	for i := range claims.Items {
		claim, share := &claims.Items[i], &v1alpha1.FileShare{}
		key := client.ObjectKey{Namespace: claim.Namespace, Name: claim.Labels[v1alpha1.FileShareLabel]}
		if claim.DeletionTimestamp == nil || admin.Get(ctx, key, share) != nil || share.DeletionTimestamp == nil {
			continue
		}
		var pods corev1.PodList
		Expect(admin.List(ctx, &pods, client.InNamespace(claim.Namespace))).To(Succeed())
		if !slices.ContainsFunc(pods.Items, func(p corev1.Pod) bool {
			return p.Spec.NodeName != "" && slices.ContainsFunc(p.Spec.Volumes, func(v corev1.Volume) bool {
				return v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ClaimName == claim.Name
			})
		}) {
			letGo(claim, claim.Namespace, claim.Name)
		}
	}
}

// shareIsGone waits until a deleted share is, while data servers do their part.
func shareIsGone(namespace, name, fileServer string) {
	GinkgoHelper()
	Eventually(func() bool {
		loadConfigurations(namespace, fileServer)
		letClaimsGo()
		return apierrors.IsNotFound(admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &v1alpha1.FileShare{}))
	}, timeout, "100ms").Should(BeTrue(), func() string { return shareCondition(namespace, name, v1alpha1.ConditionReady).Message })
}
