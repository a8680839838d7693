package desired

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/naming"
)

// ShareStorage is the place of a share that the FileServer's steward is to make, with a quota in bytes, 0 for none, empty or as a copy of source. It is a whole object and not an apply configuration, as
// ShareExports are.
func ShareStorage(share *v1alpha1.FileShare, quotaBytes int64, source internalv1.StorageSource) *internalv1.ShareStorage {
	return &internalv1.ShareStorage{
		ObjectMeta: metav1.ObjectMeta{
			Name:            naming.ShareStorage(naming.KeyOf(share), share.Spec.FileServerRef.Name),
			Namespace:       naming.ServerNamespace(share),
			Labels:          labels(shareLabels(share)),
			Annotations:     map[string]string{v1alpha1.OwnerAnnotation: naming.Owner("FileShare", share.Namespace, share.Name)},
			OwnerReferences: ownerOf(share),
			Finalizers:      []string{v1alpha1.StorageFinalizer},
		},
		Spec: internalv1.ShareStorageSpec{
			FileServerRef: internalv1.FileServerReference{Name: share.Spec.FileServerRef.Name},
			FileShareRef:  internalv1.FileShareReference{Name: naming.KeyOf(share)},
			DataPolicy:    internalv1.DataRetain,
			QuotaBytes:    quotaBytes,
			Source:        source,
		},
	}
}
