package provisioner

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/howdah/howdah/api/v1alpha1"
)

// Annotations by which Kubernetes' volume controller, the scheduler and provisioners work together.
const (
	// provisionerAnnotation names the provisioner that a claim waits for.
	provisionerAnnotation     = "volume.kubernetes.io/storage-provisioner"
	betaProvisionerAnnotation = "volume.beta.kubernetes.io/storage-provisioner"
	// selectedNodeAnnotation is on a claim with a pod, if its class waits for the first pod.
	selectedNodeAnnotation = "volume.kubernetes.io/selected-node"
	// provisionedByAnnotation names the provisioner that made a volume and deletes it.
	provisionedByAnnotation = "pv.kubernetes.io/provisioned-by"
	// betaClassAnnotation names a claim's class, from before there was a field.
	betaClassAnnotation = "volume.beta.kubernetes.io/storage-class"
)

// isOurs reports whether the claim waits for this provisioner.
func isOurs(claim *corev1.PersistentVolumeClaim) bool {
	return claim.Annotations[provisionerAnnotation] == v1alpha1.Provisioner || claim.Annotations[betaProvisionerAnnotation] == v1alpha1.Provisioner
}

// classOf is the name of a claim's StorageClass.
func classOf(claim *corev1.PersistentVolumeClaim) string {
	if name, ok := claim.Annotations[betaClassAnnotation]; ok {
		return name
	}
	if claim.Spec.StorageClassName == nil {
		return ""
	}
	return *claim.Spec.StorageClassName
}

// waitsForPod reports whether the claim's class waits for a pod, and there is none yet.
func waitsForPod(claim *corev1.PersistentVolumeClaim, class *storagev1.StorageClass) bool {
	return class.VolumeBindingMode != nil && *class.VolumeBindingMode == storagev1.VolumeBindingWaitForFirstConsumer &&
		claim.Annotations[selectedNodeAnnotation] == ""
}

// maxSize is the largest quota of a share (api/v1alpha1: spec.quota).
var maxSize = resource.MustParse("1Ei")

// refuseSize returns why no share can be kept to a size; "" if one can.
func refuseSize(size resource.Quantity) string {
	if size.Cmp(maxSize) <= 0 {
		return ""
	}
	return fmt.Sprintf("spec.resources.requests.storage is %s, and a share can have %s; ask for less", size.String(), maxSize.String())
}

// checkClaim returns the claim's requests that no share can meet, as sentences.
func checkClaim(claim *corev1.PersistentVolumeClaim) []string {
	var problems []string
	spec := claim.Spec
	if spec.VolumeMode != nil && *spec.VolumeMode != corev1.PersistentVolumeFilesystem {
		problems = append(problems, fmt.Sprintf("spec.volumeMode is %s: a share is a file system; leave volumeMode out", *spec.VolumeMode))
	}
	if slices.Contains(spec.AccessModes, corev1.ReadWriteOncePod) {
		problems = append(problems, "spec.accessModes has ReadWriteOncePod, which only CSI volumes have; use ReadWriteMany or ReadWriteOnce")
	}
	if spec.DataSource != nil || spec.DataSourceRef != nil {
		problems = append(problems, "spec.dataSource is set: a share can't be made from a snapshot or another claim; leave it out, and copy the data in a pod")
	}
	if spec.Selector != nil {
		problems = append(problems, "spec.selector is set: it is for volumes that there are already; leave it out")
	}
	if spec.VolumeAttributesClassName != nil && *spec.VolumeAttributesClassName != "" {
		problems = append(problems, "spec.volumeAttributesClassName is set, which only CSI volumes have; leave it out")
	}
	return problems
}
