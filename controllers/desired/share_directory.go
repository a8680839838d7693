package desired

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/naming"
	"github.com/howdah/howdah/internal/placement"
)

// ShareDirectory is the object of a directory that a share declares. It is a whole object and not an
// apply configuration: ShareDirectories are created once and never applied, because from then on their state is the
// namespace servers' to write. owner is nil for a directory above the share's depth; such a one exists in
// the namespace only and is ready at once.
func ShareDirectory(share *v1alpha1.FileShare, path string, owner *placement.Owner) *internalv1.ShareDirectory {
	directory := &internalv1.ShareDirectory{
		ObjectMeta: metav1.ObjectMeta{
			Name:        naming.Directory(share.Spec.FileServerRef.Name, naming.KeyOf(share), path),
			Namespace:   naming.ServerNamespace(share),
			Labels:      labels(shareLabels(share)),
			Annotations: map[string]string{v1alpha1.DeclaredAnnotation: v1alpha1.DeclaredTrue},
		},
		Spec: internalv1.ShareDirectorySpec{
			FileServerRef: internalv1.FileServerReference{Name: share.Spec.FileServerRef.Name},
			FileShareRef:  internalv1.FileShareReference{Name: naming.KeyOf(share)},
			Path:          path,
			UID:           share.Spec.UID,
			GID:           share.Spec.GID,
			Mode:          share.Spec.Mode,
		},
	}
	if owner != nil {
		directory.Labels[v1alpha1.DataServerLabel] = owner.Server
		directory.Spec.DataServerRef.Name = owner.Server
		directory.Spec.Volume = &owner.Volume
	}
	return directory
}
