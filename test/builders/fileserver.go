package builders

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/howdah/howdah/api/v1alpha1"
)

// FileServerBuilder makes a FileServer.
type FileServerBuilder struct{ object v1alpha1.FileServer }

// FileServer starts one with volumes of 1Gi of the default StorageClass.
func FileServer(namespace, name string) *FileServerBuilder {
	size := resource.MustParse("1Gi")
	return &FileServerBuilder{v1alpha1.FileServer{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "FileServer"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       v1alpha1.FileServerSpec{Storage: v1alpha1.FileServerStorage{Volumes: v1alpha1.VolumesStorage{Size: &size}}},
	}}
}

// Replicas sets the number of data servers.
func (b *FileServerBuilder) Replicas(n int32) *FileServerBuilder {
	b.object.Spec.Replicas = n
	return b
}

// UID sets the UID, for tests without an API server.
func (b *FileServerBuilder) UID(uid string) *FileServerBuilder {
	b.object.UID = types.UID(uid)
	return b
}

// Class sets the StorageClass.
func (b *FileServerBuilder) Class(name string) *FileServerBuilder {
	b.object.Spec.Storage.Volumes.StorageClassName = name
	return b
}

// Size sets the size of each volume.
func (b *FileServerBuilder) Size(size string) *FileServerBuilder {
	quantity := resource.MustParse(size)
	b.object.Spec.Storage.Volumes.Size = &quantity
	return b
}

// PerServer sets the number of volumes of each server.
func (b *FileServerBuilder) PerServer(n int32) *FileServerBuilder {
	b.object.Spec.Storage.Volumes.PerServer = n
	return b
}

// Ceph keeps shares in an external Ceph file system instead of volumes.
func (b *FileServerBuilder) Ceph() *FileServerBuilder {
	b.object.Spec.Storage = v1alpha1.FileServerStorage{Ceph: v1alpha1.CephStorage{External: v1alpha1.ExternalCeph{
		Monitors: []string{"10.0.0.1:3300", "[fd00::1]:3300"}, FSID: "6f0c2a9e-3b1d-4c55-9a77-0d6f7f0a1b2c", FileSystem: "fs1",
		RecoveryPool: "howdah", RecoveryUser: "howdah-rec-training", SharesSecretRef: v1alpha1.SecretReference{Name: "ceph-shares"},
	}}}
	return b
}

// Provisioned has Howdah make the shares of a FileServer in Ceph.
func (b *FileServerBuilder) Provisioned() *FileServerBuilder {
	external := &b.Ceph().object.Spec.Storage.Ceph.External
	external.RecoveryUser, external.SharesSecretRef = "", v1alpha1.SecretReference{}
	external.ProvisioningSecretRef = v1alpha1.SecretReference{Name: "ceph"}
	return b
}

// Rook keeps shares in a Ceph file system that Rook runs.
func (b *FileServerBuilder) Rook() *FileServerBuilder {
	b.object.Spec.Storage = v1alpha1.FileServerStorage{Ceph: v1alpha1.CephStorage{Rook: v1alpha1.RookCeph{
		ClusterRef: v1alpha1.CephClusterReference{Name: "rook-ceph"}, FileSystem: "fs1", RecoveryPool: "howdah",
	}}}
	return b
}

// NodeSelector restricts the nodes.
func (b *FileServerBuilder) NodeSelector(key, value string) *FileServerBuilder {
	b.placement().NodeSelector = map[string]string{key: value}
	return b
}

// Tolerate lets servers run on tainted nodes.
func (b *FileServerBuilder) Tolerate(toleration corev1.Toleration) *FileServerBuilder {
	b.placement().Tolerations = append(b.placement().Tolerations, toleration)
	return b
}

func (b *FileServerBuilder) placement() *v1alpha1.Placement {
	if b.object.Spec.Placement == nil {
		b.object.Spec.Placement = &v1alpha1.Placement{}
	}
	return b.object.Spec.Placement
}

// NamespaceReplicas sets the number of namespace servers.
func (b *FileServerBuilder) NamespaceReplicas(n int32) *FileServerBuilder {
	b.object.Spec.NamespaceServers = &v1alpha1.NamespaceServers{Replicas: n}
	return b
}

// NFS sets the lease and the grace period, in seconds.
func (b *FileServerBuilder) NFS(lease, grace int32) *FileServerBuilder {
	b.object.Spec.NFS = &v1alpha1.NFSOptions{LeaseSeconds: lease, GraceSeconds: grace}
	return b
}

// Pods sets what is for every pod.
func (b *FileServerBuilder) Pods(settings v1alpha1.PodSettings) *FileServerBuilder {
	b.object.Spec.Pods = &settings
	return b
}

// Place says which nodes data servers and namespace servers run on.
func (b *FileServerBuilder) Place(dataServers, namespaceServers v1alpha1.Placement) *FileServerBuilder {
	b.object.Spec.Placement = &dataServers
	b.object.Spec.NamespaceServers = &v1alpha1.NamespaceServers{Replicas: 2, Placement: &namespaceServers}
	return b
}

// LoadBalancer gives the servers addresses for clients outside the cluster.
func (b *FileServerBuilder) LoadBalancer(balancer v1alpha1.LoadBalancer) *FileServerBuilder {
	b.object.Spec.Network.LoadBalancer = &balancer
	return b
}

// HostNetwork puts the data servers on their nodes' networks. With addressesIn they are reached at the nodes' addresses there, which count as Nodes.
func (b *FileServerBuilder) HostNetwork(firstPort int32, addressesIn ...string) *FileServerBuilder {
	b.object.Spec.Network.HostNetwork = &v1alpha1.HostNetwork{FirstPort: firstPort, AddressesIn: addressesIn}
	b.object.Spec.AdditionalNodeNetworks = append(b.object.Spec.AdditionalNodeNetworks, addressesIn...)
	return b
}

// Paused keeps the operator from changing anything.
func (b *FileServerBuilder) Paused() *FileServerBuilder {
	b.object.Annotations = map[string]string{v1alpha1.PausedAnnotation: v1alpha1.PausedTrue}
	return b
}

// Resources sets the requests of each data server.
func (b *FileServerBuilder) Resources(cpu, memory string) *FileServerBuilder {
	b.object.Spec.Resources = &corev1.ResourceRequirements{Requests: corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory),
	}}
	return b
}

// Build is the object, with the schema's defaults.
func (b *FileServerBuilder) Build() *v1alpha1.FileServer { return Defaulted(&b.object) }
