package desired

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/naming"
	"github.com/howdah/howdah/internal/placement"
)

// ShareDirectory is the record of a directory that a share declares. It is a whole object and not an
// apply configuration: records are created once and never applied, because from then on their state is the
// namespace servers' to write. owner is nil for a directory above the share's depth; such a one exists in
// the namespace only and is ready at once.
func ShareDirectory(share *v1alpha1.FileShare, path string, owner *placement.Owner) *v1alpha1.ShareDirectory {
	mode := share.Spec.Mode
	if mode == "" {
		mode = defaultMode
	}
	uid, gid := orZero(share.Spec.Owner), orZero(share.Spec.Group)
	record := &v1alpha1.ShareDirectory{
		ObjectMeta: metav1.ObjectMeta{
			Name:        naming.Directory(share.Name, path),
			Namespace:   share.Namespace,
			Labels:      labels(SelectShare(share)),
			Annotations: map[string]string{v1alpha1.DeclaredAnnotation: v1alpha1.DeclaredTrue},
		},
		Spec: v1alpha1.ShareDirectorySpec{
			FileServerName: share.Spec.FileServerName,
			ShareName:      share.Name,
			Path:           path,
			Owner:          &uid,
			Group:          &gid,
			Mode:           mode,
			State:          v1alpha1.DirectoryReady,
		},
	}
	if owner != nil {
		record.Labels[v1alpha1.DataServerLabel] = owner.Server
		record.Spec.ServerName = owner.Server
		record.Spec.Volume = &owner.Volume
		record.Spec.State = v1alpha1.DirectoryCreating
	}
	return record
}
