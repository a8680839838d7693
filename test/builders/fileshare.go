package builders

import (
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/howdah/howdah/api/v1alpha1"
)

// FileShareBuilder makes a FileShare.
type FileShareBuilder struct{ object v1alpha1.FileShare }

// FileShare starts one of a FileServer, with its own name as path.
func FileShare(namespace, name, fileServer string) *FileShareBuilder {
	return &FileShareBuilder{v1alpha1.FileShare{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "FileShare"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       v1alpha1.FileShareSpec{FileServerRef: v1alpha1.FileServerReference{Name: fileServer}, Path: "/" + name},
	}}
}

// OnNamespace sets the Kubernetes namespace of the FileServer.
func (b *FileShareBuilder) OnNamespace(namespace string) *FileShareBuilder {
	b.object.Spec.FileServerRef.Namespace = namespace
	return b
}

// Path sets the place in the namespace.
func (b *FileShareBuilder) Path(path string) *FileShareBuilder {
	b.object.Spec.Path = path
	return b
}

// Single makes the share one directory on one server.
func (b *FileShareBuilder) Single() *FileShareBuilder {
	b.object.Spec.Layout = v1alpha1.LayoutSingle
	return b
}

// Depth sets the level at which directories are spread.
func (b *FileShareBuilder) Depth(n int32) *FileShareBuilder {
	b.object.Spec.Depth = n
	return b
}

// Directories declares directories.
func (b *FileShareBuilder) Directories(patterns ...string) *FileShareBuilder {
	b.object.Spec.Directories = patterns
	return b
}

// Owner sets user, group and mode of the root.
func (b *FileShareBuilder) Owner(user, group int64, mode string) *FileShareBuilder {
	b.object.Spec.UID, b.object.Spec.GID, b.object.Spec.Mode = &user, &group, mode
	return b
}

// Access adds a rule.
func (b *FileShareBuilder) Access(accessType v1alpha1.AccessType, squash v1alpha1.Squash, clients ...string) *FileShareBuilder {
	b.object.Spec.Access = append(b.object.Spec.Access, v1alpha1.AccessRule{Clients: clients, AccessType: accessType, Squash: squash})
	return b
}

// Quota bounds what the files may take.
func (b *FileShareBuilder) Quota(size string) *FileShareBuilder {
	quantity := resource.MustParse(size)
	b.object.Spec.Quota.Size = &quantity
	return b
}

// Hot has several data servers serve directories; no paths: all of the share.
func (b *FileShareBuilder) Hot(dataServers int32, paths ...string) *FileShareBuilder {
	b.object.Spec.HotDirectories = append(b.object.Spec.HotDirectories, v1alpha1.HotDirectories{Paths: paths, DataServers: dataServers})
	return b
}

// FindHot has several data servers serve directories that many clients use.
func (b *FileShareBuilder) FindHot(clients, dataServers int32) *FileShareBuilder {
	b.object.Spec.FindHotDirectories = v1alpha1.HotDirectorySearch{Clients: clients, DataServers: dataServers}
	return b
}

// FromSnapshot has the share begin with what a FileShareSnapshot has in it.
func (b *FileShareBuilder) FromSnapshot(name string) *FileShareBuilder {
	b.object.Spec.Source.SnapshotRef.Name = name
	return b
}

// ReclaimPolicy tells what happens to the data.
func (b *FileShareBuilder) ReclaimPolicy(policy v1alpha1.ReclaimPolicy) *FileShareBuilder {
	b.object.Spec.ReclaimPolicy = policy
	return b
}

// Inventoried makes all of its directories known, for tests without an operator. An API server takes that as status.
func (b *FileShareBuilder) Inventoried() *FileShareBuilder {
	b.object.Status.Conditions = InventoriedConditions()
	return b
}

// Created sets the creation time, for tests without an API server.
func (b *FileShareBuilder) Created(at time.Time) *FileShareBuilder {
	b.object.CreationTimestamp = metav1.NewTime(at)
	return b
}

// Deleting marks the object as being deleted, for tests without an API server.
func (b *FileShareBuilder) Deleting(at time.Time) *FileShareBuilder {
	deletion := metav1.NewTime(at)
	b.object.DeletionTimestamp = &deletion
	return b
}

// Build is the object, with the schema's defaults.
func (b *FileShareBuilder) Build() *v1alpha1.FileShare { return Defaulted(&b.object) }
