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

// Where a share is of another Kubernetes namespace than its FileServer's, what it leaves outlives its namespace, and is found again by names. A name can be
// given to others, so what is left has the UID of the namespace that it is of.

// observeNamespace reads which namespace the share's is.
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

// isOfEarlierNamespace: a ShareDirectory tells of data of an earlier namespace of the name, which was not handed over. One that says nothing is older than
// this rule, and is the share's.
func isOfEarlierNamespace(o *observed, directory *internalv1.ShareDirectory) bool {
	uid := directory.Annotations[v1alpha1.NamespaceUIDAnnotation]
	if !isRetained(directory) || uid == "" || uid == o.namespaceUID {
		return false
	}
	return o.fileServer == nil || !slices.Contains(o.fileServer.Spec.DataHandovers, v1alpha1.DataHandover{Namespace: o.share.Namespace, NamespaceUID: o.namespaceUID})
}

// findEarlierNamespace tells why a share of another namespace than its FileServer's can't have what is there of its name; nil if it can.
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

// bind notes in a ShareDirectory that is retained which namespace's data it tells of.
func bind(directory *internalv1.ShareDirectory, namespaceUID string) {
	if namespaceUID != "" && directory.Annotations[v1alpha1.NamespaceUIDAnnotation] == "" {
		setAnnotation(directory, v1alpha1.NamespaceUIDAnnotation, namespaceUID)
	}
}

// retainOrphans does for a share that is gone without its finalizer what its deletion would have: its ShareDirectories tell whose data they are of.
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
