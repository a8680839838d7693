package builders

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/howdah/howdah/api/v1alpha1"
)

// ClaimBuilder makes a PersistentVolumeClaim.
type ClaimBuilder struct{ object corev1.PersistentVolumeClaim }

// Claim starts one of a StorageClass of Howdah that Kubernetes has asked the operator to serve.
func Claim(namespace, name, class string) *ClaimBuilder {
	return &ClaimBuilder{corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name,
			Annotations: map[string]string{"volume.kubernetes.io/storage-provisioner": v1alpha1.Provisioner},
		},
		Spec: corev1.PersistentVolumeClaimSpec{
			StorageClassName: &class,
			AccessModes:      []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany},
			Resources:        corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("10Gi")}},
		},
	}}
}

// UID sets the UID, which the API server gives otherwise.
func (b *ClaimBuilder) UID(uid string) *ClaimBuilder {
	b.object.UID = types.UID(uid)
	return b
}

// With changes what has no method of its own.
func (b *ClaimBuilder) With(change func(*corev1.PersistentVolumeClaim)) *ClaimBuilder {
	change(&b.object)
	return b
}

// Build is the object.
func (b *ClaimBuilder) Build() *corev1.PersistentVolumeClaim { return b.object.DeepCopy() }
