package desired

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/naming"
)

// ShareSnapshot is what stands for a FileShareSnapshot where its FileServer is. It has no owner reference: that a FileShareSnapshot is missing, by
// a finalizer that was taken off or a restore that left it out, must not remove a snapshot. So it has the UID of the FileShareSnapshot's Kubernetes namespace if that is not the
// FileServer's: another namespace can get the name.
func ShareSnapshot(snapshot *v1alpha1.FileShareSnapshot, namespaceUID string, share *v1alpha1.FileShare, fs *v1alpha1.FileServer) *internalv1.ShareSnapshot {
	stored := &internalv1.ShareSnapshot{
		ObjectMeta: metav1.ObjectMeta{
			Name:        naming.ShareSnapshot(naming.KeyOf(share), snapshot.Name),
			Namespace:   naming.ServerNamespace(share),
			Labels:      labels(shareLabels(share)),
			Annotations: map[string]string{v1alpha1.OwnerAnnotation: naming.Owner("FileShareSnapshot", snapshot.Namespace, snapshot.Name)},
			Finalizers:  []string{v1alpha1.StoredSnapshotFinalizer},
		},
		Spec: internalv1.ShareSnapshotSpec{
			FileServerRef: internalv1.FileServerReference{Name: fs.Name},
			FileServerUID: v1alpha1.StorageIdentity(fs),
			FileShareRef:  internalv1.FileShareReference{Name: naming.KeyOf(share)},
			SnapshotName:  snapshot.Name,
		},
	}
	if namespaceUID != "" && stored.Namespace != snapshot.Namespace {
		stored.Annotations[v1alpha1.NamespaceUIDAnnotation] = namespaceUID
	}
	return stored
}
