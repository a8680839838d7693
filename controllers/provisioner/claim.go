package provisioner

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/howdah/howdah/api/v1alpha1"
)

// Annotations of Kubernetes' contract between its controller of volumes, the scheduler and provisioners.
const (
	// provisionerAnnotation is on a claim that waits for a provisioner, which it names.
	provisionerAnnotation     = "volume.kubernetes.io/storage-provisioner"
	betaProvisionerAnnotation = "volume.beta.kubernetes.io/storage-provisioner"
	// selectedNodeAnnotation is on a claim of a class that waits for the first pod, once there is one.
	selectedNodeAnnotation = "volume.kubernetes.io/selected-node"
	// provisionedByAnnotation is on a volume: who made it, and takes it away.
	provisionedByAnnotation = "pv.kubernetes.io/provisioned-by"
	// betaClassAnnotation is how claims named their class before there was a field.
	betaClassAnnotation = "volume.beta.kubernetes.io/storage-class"
)

// isOurs: Kubernetes says that the claim waits for us.
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

// waitsForPod: the class wants the volume only when the scheduler has a pod for it.
func waitsForPod(claim *corev1.PersistentVolumeClaim, class *storagev1.StorageClass) bool {
	return class.VolumeBindingMode != nil && *class.VolumeBindingMode == storagev1.VolumeBindingWaitForFirstConsumer &&
		claim.Annotations[selectedNodeAnnotation] == ""
}

// checkClaim tells what a claim asks for that no share can be, in sentences.
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
