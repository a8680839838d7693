package desired

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/naming"
)

// unknownCapacity is the size of a share's volume while the size of the FileServer is not known.
var unknownCapacity = resource.MustParse("1Ti")

// claimRequest is the size that a share's claim requests. NFS does not enforce it. It is small because Kubernetes does
// not allow changes to the claim of a static volume, does not bind a claim that requests more than the volume has, and
// counts it against quotas, while the volume has the size of the whole FileServer.
var claimRequest = resource.MustParse("1Mi")

// ShareInput is all that a share's volume and claim are made from.
type ShareInput struct {
	Share *v1alpha1.FileShare
	// Address is that of the namespace servers.
	Address string
	// CapacityBytes is the size of the FileServer in bytes; 0 means unknown.
	CapacityBytes int64
	// ReservedPorts is as for MountOptions.
	ReservedPorts bool
}

// ShareVolume is the PersistentVolume of a share. It has no owner reference, because the kind has no namespace. It is
// deleted with the share; the data is not.
func ShareVolume(in ShareInput) *corev1ac.PersistentVolumeApplyConfiguration {
	capacity := unknownCapacity
	if in.CapacityBytes > 0 {
		capacity = *resource.NewQuantity(in.CapacityBytes, resource.BinarySI)
	}
	return corev1ac.PersistentVolume(naming.ShareVolume(in.Share.Namespace, in.Share.Name)).
		WithLabels(labels(claimLabels(in.Share))).
		WithSpec(corev1ac.PersistentVolumeSpec().
			WithCapacity(corev1.ResourceList{corev1.ResourceStorage: capacity}).
			WithAccessModes(shareAccessModes()...).
			WithPersistentVolumeReclaimPolicy(corev1.PersistentVolumeReclaimRetain).
			WithStorageClassName("").
			WithVolumeMode(corev1.PersistentVolumeFilesystem).
			WithMountOptions(MountOptions(in.ReservedPorts)...).
			WithNFS(corev1ac.NFSVolumeSource().WithServer(in.Address).WithPath(in.Share.Spec.Path)).
			// For this share's claim and no other. Kubernetes completes it with the claim's UID when it
			// binds; claimRef is granular for server-side apply, so that part stays Kubernetes' own.
			WithClaimRef(corev1ac.ObjectReference().
				WithAPIVersion("v1").
				WithKind("PersistentVolumeClaim").
				WithNamespace(in.Share.Namespace).
				WithName(naming.ShareClaim(in.Share.Name))))
}

// ShareClaim is the claim of a share. It is deleted with the share, but not while a pod uses it.
func ShareClaim(in ShareInput) *corev1ac.PersistentVolumeClaimApplyConfiguration {
	return corev1ac.PersistentVolumeClaim(naming.ShareClaim(in.Share.Name), in.Share.Namespace).
		WithLabels(labels(claimLabels(in.Share))).
		WithSpec(corev1ac.PersistentVolumeClaimSpec().
			WithAccessModes(shareAccessModes()...).
			WithResources(corev1ac.VolumeResourceRequirements().
				WithRequests(corev1.ResourceList{corev1.ResourceStorage: claimRequest})).
			// Empty, not unset: unset would let the cluster's default class provision a volume.
			WithStorageClassName("").
			WithVolumeMode(corev1.PersistentVolumeFilesystem).
			WithVolumeName(naming.ShareVolume(in.Share.Namespace, in.Share.Name)))
}

func shareAccessModes() []corev1.PersistentVolumeAccessMode {
	return []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany, corev1.ReadOnlyMany}
}

// claimLabels are on a share's claim, which is in the share's namespace, and on its volume, which is in none.
func claimLabels(share *v1alpha1.FileShare) map[string]string {
	return map[string]string{
		v1alpha1.FileServerLabel: share.Spec.FileServerRef.Name,
		v1alpha1.FileShareLabel:  share.Name,
	}
}
