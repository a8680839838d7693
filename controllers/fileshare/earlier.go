package fileshare

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/controllers/apply"
	"github.com/howdah/howdah/controllers/index"
	"github.com/howdah/howdah/controllers/lookup"
	"github.com/howdah/howdah/internal/naming"
)

// Data of a share in another Kubernetes namespace than its FileServer outlives that namespace, and is found again by
// names. Another namespace can get the same name, so retained data has the UID of its namespace.

// observeNamespace reads the UID of the share's namespace.
func (r *Reconciler) observeNamespace(ctx context.Context, o *observed) error {
	if !naming.IsForeign(o.share) {
		return nil
	}
	namespace := &corev1.Namespace{}
	key := types.NamespacedName{Name: o.share.Namespace}
	found, err := lookup.Object(ctx, r.Client, key, namespace)
	if err == nil && !found {
		found, err = lookup.Object(ctx, r.Live, key, namespace) // A new one that the cache lacks yet.
	}
	if found {
		o.namespaceUID = string(namespace.UID)
	}
	return err
}

// isOfEarlierNamespace reports whether a ShareDirectory has data of an earlier namespace of the same name that was not
// handed over. One without a UID is older than this rule and belongs to the share.
func isOfEarlierNamespace(o *observed, directory *internalv1.ShareDirectory) bool {
	uid := directory.Annotations[v1alpha1.NamespaceUIDAnnotation]
	if !isRetained(directory) || uid == "" || uid == o.namespaceUID {
		return false
	}
	return o.fileServer == nil || !slices.Contains(o.fileServer.Spec.DataHandovers, v1alpha1.DataHandover{Namespace: o.share.Namespace, NamespaceUID: o.namespaceUID})
}

// findEarlierNamespace returns why a share of another namespace can't use existing data of its name; nil if it can.
func findEarlierNamespace(o *observed) *finding {
	if !naming.IsForeign(o.share) {
		return nil
	}
	for _, directory := range o.directories {
		if isOfEarlierNamespace(o, directory) {
			return &finding{v1alpha1.ReasonDataOfDeletedNamespace, fmt.Sprintf(
				"FileServer %s of namespace %s has data of a share %s of an earlier namespace %s, which was deleted; it is not this namespace's. Whoever runs the FileServer can hand it over, "+
					"by spec.dataHandovers: [{namespace: %s, namespaceUID: %s}]; or delete this share and make it with another name",
				o.share.Spec.FileServerRef.Name, o.namespace(), o.share.Name, o.share.Namespace, o.share.Namespace, o.namespaceUID)}
		}
	}
	return nil
}

// bind records in a retained ShareDirectory the UID of the namespace whose data it has.
func bind(directory *internalv1.ShareDirectory, namespaceUID string) {
	if namespaceUID != "" && directory.Annotations[v1alpha1.NamespaceUIDAnnotation] == "" {
		setAnnotation(directory, v1alpha1.NamespaceUIDAnnotation, namespaceUID)
	}
}

// retainOrphans does for a share that lost its finalizer what its deletion would have done: it records whose data its
// ShareDirectories have.
func (r *Reconciler) retainOrphans(ctx context.Context, attachment *internalv1.ShareAttachment) error {
	var list internalv1.ShareDirectoryList
	if err := r.Client.List(ctx, &list, client.InNamespace(attachment.Namespace), index.OfFileShare(attachment.Name), client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing ShareDirectories: %w", err)
	}
	var changes []directoryChange
	for i := range list.Items {
		if change, needed := retained(&list.Items[i], attachment.Spec.NamespaceUID); needed {
			changes = append(changes, change)
		}
	}
	_, err := apply.Execute(ctx, r.Client, patches(changes))
	return err
}
