package builders

import (
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/naming"
)

// NodeBuilder makes a Node.
type NodeBuilder struct{ object corev1.Node }

// Node starts a node that takes any pod.
func Node(name string) *NodeBuilder {
	return &NodeBuilder{corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name}}}}
}

// Label adds a label.
func (b *NodeBuilder) Label(key, value string) *NodeBuilder {
	b.object.Labels[key] = value
	return b
}

// Taint adds a taint.
func (b *NodeBuilder) Taint(key, value string, effect corev1.TaintEffect) *NodeBuilder {
	b.object.Spec.Taints = append(b.object.Spec.Taints, corev1.Taint{Key: key, Value: value, Effect: effect})
	return b
}

// Cordoned makes it unschedulable.
func (b *NodeBuilder) Cordoned() *NodeBuilder {
	b.object.Spec.Unschedulable = true
	return b
}

// Address adds an address.
func (b *NodeBuilder) Address(kind corev1.NodeAddressType, address string) *NodeBuilder {
	b.object.Status.Addresses = append(b.object.Status.Addresses, corev1.NodeAddress{Type: kind, Address: address})
	return b
}

// PodCIDRs sets the ranges of its pods.
func (b *NodeBuilder) PodCIDRs(ranges ...string) *NodeBuilder {
	b.object.Spec.PodCIDR, b.object.Spec.PodCIDRs = ranges[0], ranges
	return b
}

// Annotate adds an annotation.
func (b *NodeBuilder) Annotate(key, value string) *NodeBuilder {
	metav1.SetMetaDataAnnotation(&b.object.ObjectMeta, key, value)
	return b
}

// NetworkUp is what a network plugin says once it works on the node; without a reason it says nothing.
func (b *NodeBuilder) NetworkUp(reason string) *NodeBuilder {
	if reason != "" {
		b.object.Status.Conditions = append(b.object.Status.Conditions,
			corev1.NodeCondition{Type: corev1.NodeNetworkUnavailable, Status: corev1.ConditionFalse, Reason: reason})
	}
	return b
}

// Build is the object.
func (b *NodeBuilder) Build() *corev1.Node { return b.object.DeepCopy() }

// StorageClassBuilder makes a StorageClass.
type StorageClassBuilder struct{ object storagev1.StorageClass }

// StorageClass starts a class that can't expand.
func StorageClass(name string) *StorageClassBuilder {
	return &StorageClassBuilder{storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Provisioner: "test.howdah.io/none"}}
}

// Expandable lets its volumes grow.
func (b *StorageClassBuilder) Expandable() *StorageClassBuilder {
	yes := true
	b.object.AllowVolumeExpansion = &yes
	return b
}

// Shares makes it one whose claims become shares of a FileServer. Parameters come as names and values, one after the other.
func (b *StorageClassBuilder) Shares(namespace, fileServer string, parameters ...string) *StorageClassBuilder {
	b.object.Provisioner = v1alpha1.Provisioner
	b.object.Parameters = map[string]string{"fileServer": fileServer, "fileServerNamespace": namespace}
	for i := 0; i+1 < len(parameters); i += 2 {
		b.object.Parameters[parameters[i]] = parameters[i+1]
	}
	return b
}

// With changes what has no method of its own.
func (b *StorageClassBuilder) With(change func(*storagev1.StorageClass)) *StorageClassBuilder {
	change(&b.object)
	return b
}

// Default makes it the cluster's default.
func (b *StorageClassBuilder) Default() *StorageClassBuilder {
	b.object.Annotations = map[string]string{"storageclass.kubernetes.io/is-default-class": "true"}
	return b
}

// Build is the object.
func (b *StorageClassBuilder) Build() *storagev1.StorageClass { return b.object.DeepCopy() }

// ShareDirectory makes a ready directory of a share of a FileServer. Its status has to be written after the rest.
func ShareDirectory(namespace, fileServer, share, path, server string) *internalv1.ShareDirectory {
	zero, volume := int64(0), int32(0)
	return &internalv1.ShareDirectory{
		TypeMeta: metav1.TypeMeta{APIVersion: internalv1.GroupVersion.String(), Kind: "ShareDirectory"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: naming.Directory(fileServer, share, path),
			Labels: map[string]string{
				v1alpha1.FileServerLabel: fileServer, v1alpha1.FileShareLabel: share, v1alpha1.DataServerLabel: server,
				v1alpha1.ManagedByLabel: v1alpha1.ManagedBy,
			},
		},
		Spec: internalv1.ShareDirectorySpec{
			FileServerRef: internalv1.FileServerReference{Name: fileServer}, FileShareRef: internalv1.FileShareReference{Name: share}, Path: path, DataServerRef: internalv1.DataServerReference{Name: server}, Volume: &volume,
			UID: &zero, GID: &zero, Mode: "0755",
		},
		Status: internalv1.ShareDirectoryStatus{State: internalv1.DirectoryReady},
	}
}
