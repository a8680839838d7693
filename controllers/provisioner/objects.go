package provisioner

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/controllers/desired"
	"github.com/howdah/howdah/internal/naming"
)

// shareFor is the FileShare of a claim. It is in the FileServer's namespace: like a PersistentVolume it can outlive the
// claim's namespace, and users of that namespace can't delete it while a pod uses it.
//
// Its reclaim policy is Delete before it has a volume, because it has no data yet, and Retain after that: only the
// volume's policy decides about the data.
func shareFor(claim *corev1.PersistentVolumeClaim, p parameters, enforced bool) *v1alpha1.FileShare {
	share := &v1alpha1.FileShare{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: p.fileServerNamespace,
			Name:      naming.ProvisionedVolume(string(claim.UID)),
			Labels:    map[string]string{v1alpha1.ManagedByLabel: v1alpha1.ManagedBy},
			// Otherwise the FileShare controller would write it.
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

// quotaFor is the quota for a claim: its request, or the minimum. A volume may be larger than the request.
func quotaFor(claim *corev1.PersistentVolumeClaim) *resource.Quantity {
	size := claim.Spec.Resources.Requests[corev1.ResourceStorage].DeepCopy()
	if least := resource.NewQuantity(v1alpha1.MinQuotaBytes, resource.BinarySI); size.Cmp(*least) < 0 {
		return least
	}
	return &size
}

// reclaimPolicyOf is the reclaim policy of a class; Kubernetes' default is Delete.
func reclaimPolicyOf(class *storagev1.StorageClass) corev1.PersistentVolumeReclaimPolicy {
	return ptr.Deref(class.ReclaimPolicy, corev1.PersistentVolumeReclaimDelete)
}

// shareAgain is the new FileShare of a volume whose FileShare was deleted. It finds the data by its name.
func shareAgain(claim *corev1.PersistentVolumeClaim, p parameters, volume *corev1.PersistentVolume) *v1alpha1.FileShare {
	share := shareFor(claim, p, isEnforced(volume))
	share.Name, share.Spec.Path, share.Spec.ReclaimPolicy = volume.Name, volume.Spec.NFS.Path, v1alpha1.ReclaimRetain
	return share
}

// volumeFor is the PersistentVolume of a claim, which no other claim can get.
func volumeFor(claim *corev1.PersistentVolumeClaim, class *storagev1.StorageClass, p parameters, share *v1alpha1.FileShare, enforced bool) *corev1.PersistentVolume {
	volume := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{
			Name:   share.Name,
			Labels: map[string]string{v1alpha1.ManagedByLabel: v1alpha1.ManagedBy, v1alpha1.FileServerLabel: p.fileServer},
			Annotations: map[string]string{
				provisionedByAnnotation:              v1alpha1.Provisioner,
				v1alpha1.ProvisionedShareAnnotation:  share.Namespace + "/" + share.Name,
				v1alpha1.ProvisionedLayoutAnnotation: layoutFor(share.Spec.Layout, share.Spec.Depth),
			},
			Finalizers: []string{v1alpha1.VolumeFinalizer},
		},
		Spec: corev1.PersistentVolumeSpec{
			Capacity:                      corev1.ResourceList{corev1.ResourceStorage: claim.Spec.Resources.Requests[corev1.ResourceStorage]},
			AccessModes:                   claim.Spec.AccessModes,
			PersistentVolumeReclaimPolicy: reclaimPolicyOf(class),
			StorageClassName:              class.Name,
			VolumeMode:                    ptr.To(corev1.PersistentVolumeFilesystem),
			MountOptions:                  mountOptionsFor(claim, class, p, share),
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

// layoutFor is how the data of a share lies.
func layoutFor(layout v1alpha1.ShareLayout, depth int32) string {
	if layout == v1alpha1.LayoutSingle {
		return string(layout)
	}
	return fmt.Sprintf("%s/%d", layout, max(depth, 1))
}

// finds reports whether a share of these parameters would find the data of a volume whose FileShare was deleted.
func finds(p parameters, volume *corev1.PersistentVolume) bool {
	fileServer, layout := volume.Labels[v1alpha1.FileServerLabel], volume.Annotations[v1alpha1.ProvisionedLayoutAnnotation]
	return p.fileShare == "" && (fileServer == "" || fileServer == p.fileServer) && (layout == "" || layout == layoutFor(p.layout, p.depth))
}

// mountOptionsFor mounts a read-only claim read-only. The kubelet ignores access modes and a PersistentVolume's
// nfs.readOnly. A read-only mount includes its submounts, the directories on other servers. Where a share of the FileServer wants
// reserved ports, none is mounted from others, unless the class says so.
func mountOptionsFor(claim *corev1.PersistentVolumeClaim, class *storagev1.StorageClass, p parameters, share *v1alpha1.FileShare) []string {
	if reserved := !slices.Contains(share.Status.Mount.Options, desired.OptionAnyPort); reserved && !slices.Contains(class.MountOptions, desired.OptionAnyPort) {
		p.mountOptions = slices.DeleteFunc(slices.Clone(p.mountOptions), func(option string) bool { return option == desired.OptionAnyPort })
	}
	writes := func(mode corev1.PersistentVolumeAccessMode) bool { return mode != corev1.ReadOnlyMany }
	if len(claim.Spec.AccessModes) == 0 || slices.ContainsFunc(claim.Spec.AccessModes, writes) || slices.Contains(p.mountOptions, "ro") {
		return p.mountOptions
	}
	return append(slices.DeleteFunc(slices.Clone(p.mountOptions), func(option string) bool { return option == "rw" }), "ro")
}

// isEnforced reports whether the volume's size is enforced.
func isEnforced(volume *corev1.PersistentVolume) bool {
	return volume.Annotations[v1alpha1.CapacityAnnotation] != v1alpha1.CapacityNotEnforced
}

// shareOf is the namespace and name of a volume's FileShare; false if this provisioner did not make the volume.
func shareOf(volume *corev1.PersistentVolume) (namespace, name string, ours bool) {
	namespace, name, found := strings.Cut(volume.Annotations[v1alpha1.ProvisionedShareAnnotation], "/")
	return namespace, name, found && name == volume.Name && volume.Annotations[provisionedByAnnotation] == v1alpha1.Provisioner
}
