package provisioner

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/naming"
)

// shareFor is the FileShare of a claim. It is beside its FileServer, not beside the claim: like a PersistentVolume it outlives the claim's
// Kubernetes namespace if its reclaim policy says so, and users with rights there can't delete it while a pod uses it.
//
// Its own reclaim policy is Delete before it has a volume, because it has no data yet, and Retain from then on: its data goes by the
// volume's policy and in no other way.
func shareFor(claim *corev1.PersistentVolumeClaim, p parameters, enforced bool) *v1alpha1.FileShare {
	share := &v1alpha1.FileShare{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: p.fileServerNamespace,
			Name:      naming.ProvisionedVolume(string(claim.UID)),
			Labels:    map[string]string{v1alpha1.ManagedByLabel: v1alpha1.ManagedBy},
			// It would get it with the next write.
			Finalizers: []string{v1alpha1.FileShareFinalizer},
		},
		Spec: v1alpha1.FileShareSpec{
			FileServerRef:  v1alpha1.FileServerReference{Name: p.fileServer},
			ClaimRef:       v1alpha1.ClaimReference{Namespace: claim.Namespace, Name: claim.Name},
			Path:           placePath(p.path, claim.Namespace, claim.Name, string(claim.UID)),
			Layout:         p.layout,
			Depth:          p.depth,
			MaxDirectories: p.maxDirectories,
			UID:            &p.uid,
			GID:            &p.gid,
			Mode:           p.mode,
			ReclaimPolicy:  v1alpha1.ReclaimDelete,
		},
	}
	if enforced {
		share.Spec.Quota.Size = quotaFor(claim)
	}
	return share
}

// quotaFor is what a claim asks for, or the least that there is. Kubernetes calls a volume that is larger than asked for as good.
func quotaFor(claim *corev1.PersistentVolumeClaim) *resource.Quantity {
	size := claim.Spec.Resources.Requests[corev1.ResourceStorage].DeepCopy()
	if least := resource.NewQuantity(v1alpha1.MinQuotaBytes, resource.BinarySI); size.Cmp(*least) < 0 {
		return least
	}
	return &size
}

// reclaimPolicyOf is what a class says of its volumes; Kubernetes' default is Delete.
func reclaimPolicyOf(class *storagev1.StorageClass) corev1.PersistentVolumeReclaimPolicy {
	return ptr.Deref(class.ReclaimPolicy, corev1.PersistentVolumeReclaimDelete)
}

// shareAgain is the FileShare of a volume that lost its own. It finds the data by its name.
func shareAgain(claim *corev1.PersistentVolumeClaim, p parameters, volume *corev1.PersistentVolume) *v1alpha1.FileShare {
	share := shareFor(claim, p, isEnforced(volume))
	share.Name, share.Spec.Path, share.Spec.ReclaimPolicy = volume.Name, volume.Spec.NFS.Path, v1alpha1.ReclaimRetain
	return share
}

// volumeFor is the PersistentVolume of a claim, for it and no other.
func volumeFor(claim *corev1.PersistentVolumeClaim, class *storagev1.StorageClass, p parameters, share *v1alpha1.FileShare, enforced bool) *corev1.PersistentVolume {
	volume := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{
			Name:   share.Name,
			Labels: map[string]string{v1alpha1.ManagedByLabel: v1alpha1.ManagedBy, v1alpha1.FileServerLabel: p.fileServer},
			Annotations: map[string]string{
				provisionedByAnnotation:             v1alpha1.Provisioner,
				v1alpha1.ProvisionedShareAnnotation: share.Namespace + "/" + share.Name,
			},
			Finalizers: []string{v1alpha1.VolumeFinalizer},
		},
		Spec: corev1.PersistentVolumeSpec{
			Capacity:                      corev1.ResourceList{corev1.ResourceStorage: claim.Spec.Resources.Requests[corev1.ResourceStorage]},
			AccessModes:                   claim.Spec.AccessModes,
			PersistentVolumeReclaimPolicy: reclaimPolicyOf(class),
			StorageClassName:              class.Name,
			VolumeMode:                    ptr.To(corev1.PersistentVolumeFilesystem),
			MountOptions:                  mountOptionsFor(claim, p),
			PersistentVolumeSource: corev1.PersistentVolumeSource{
				NFS: &corev1.NFSVolumeSource{Server: share.Status.Mount.Address, Path: share.Spec.Path},
			},
			ClaimRef: &corev1.ObjectReference{
				APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID, ResourceVersion: claim.ResourceVersion,
			},
		},
	}
	if !enforced {
		volume.Annotations[v1alpha1.CapacityAnnotation] = v1alpha1.CapacityNotEnforced
	}
	return volume
}

// mountOptionsFor has a claim that can be read only mounted so: the kubelet looks at access modes no more than NFS does, and does not look at
// nfs.readOnly of a PersistentVolume either. A mount that is read-only has no part that is not, submounts of directories on other servers included.
func mountOptionsFor(claim *corev1.PersistentVolumeClaim, p parameters) []string {
	writes := func(mode corev1.PersistentVolumeAccessMode) bool { return mode != corev1.ReadOnlyMany }
	if len(claim.Spec.AccessModes) == 0 || slices.ContainsFunc(claim.Spec.AccessModes, writes) || slices.Contains(p.mountOptions, "ro") {
		return p.mountOptions
	}
	return append(slices.DeleteFunc(slices.Clone(p.mountOptions), func(option string) bool { return option == "rw" }), "ro")
}

// isEnforced: pods are kept to the volume's size.
func isEnforced(volume *corev1.PersistentVolume) bool {
	return volume.Annotations[v1alpha1.CapacityAnnotation] != v1alpha1.CapacityNotEnforced
}

// shareOf is the Kubernetes namespace and the name of a volume's FileShare; false if the volume was not made here.
func shareOf(volume *corev1.PersistentVolume) (namespace, name string, ours bool) {
	namespace, name, found := strings.Cut(volume.Annotations[v1alpha1.ProvisionedShareAnnotation], "/")
	return namespace, name, found && name == volume.Name && volume.Annotations[provisionedByAnnotation] == v1alpha1.Provisioner
}
