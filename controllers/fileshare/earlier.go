package fileshare

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/controllers/apply"
	"github.com/howdah/howdah/controllers/lookup"
	"github.com/howdah/howdah/internal/naming"
)

// Data of a share in another Kubernetes namespace than its FileServer outlives that namespace, and is found again by
// names. Another namespace can get the same name, so retained data has the UID of its namespace.

// observeNamespace reads the UID of the share's namespace. It is read past the cache until the share is attached,
// because the cache may still have an earlier namespace of the name; a share never gets another namespace.
func (r *Reconciler) observeNamespace(ctx context.Context, o *observed) error {
	if !naming.IsForeign(o.share) {
		return nil
	}
	if isOfShare(o) && o.attachment.Spec.NamespaceUID != "" {
		o.namespaceUID = o.attachment.Spec.NamespaceUID
		return nil
	}
	namespace := &corev1.Namespace{}
	found, err := lookup.Object(ctx, r.Live, types.NamespacedName{Name: o.share.Namespace}, namespace)
	if found {
		o.namespaceUID = string(namespace.UID)
	}
	return err
}

// dataNamespace is the UID of the namespace that the share's directories are of, if they don't say it: that of the
// ShareAttachment, which may be of an earlier share that lost its finalizer; else the share's own.
func dataNamespace(o *observed) string {
	if o.attachment != nil && o.attachment.Spec.NamespaceUID != "" {
		return o.attachment.Spec.NamespaceUID
	}
	return o.namespaceUID
}

// retainEarlier returns the changes that mark directories of an earlier namespace as such, as the end of its share would
// have done. nil if the ShareAttachment is of the share's namespace.
func retainEarlier(o *observed) []directoryChange {
	if dataNamespace(o) == o.namespaceUID {
		return nil
	}
	return retain(o)
}

// isOfOthers reports whether the data of the share's name is that of an earlier namespace.
func isOfOthers(o *observed) bool {
	if !naming.IsForeign(o.share) {
		return false
	}
	if dataNamespace(o) != o.namespaceUID {
		return true
	}
	for _, directory := range o.directories {
		if isOfEarlierNamespace(o, directory) {
			return true
		}
	}
	return false
}

// retentions are changes of directories that must be written before what follows.
func retentions(changes []directoryChange) (all []apply.Change) {
	for _, change := range changes {
		all = append(all, apply.Change{Before: change.before, After: change.after, Race: apply.MustExistUnchanged})
	}
	return all
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

// unknownNamespace stands for the UID of a namespace that nothing names any more. No namespace has it.
const unknownNamespace = "unknown"

// retainOrphans does for a share that lost its finalizer what its deletion would have done: it records whose data its
// ShareDirectories have. The ShareAttachment names the namespace. Without one, because the share was no longer allowed,
// it is the present namespace, unless that is newer than the directory.
func (r *Reconciler) retainOrphans(ctx context.Context, namespace string, attachments []internalv1.ShareAttachment, left []*internalv1.ShareDirectory) error {
	if len(left) == 0 {
		return nil
	}
	present := &corev1.Namespace{}
	if _, err := lookup.Object(ctx, r.Live, types.NamespacedName{Name: namespace}, present); err != nil {
		return err
	}
	var changes []directoryChange
	for _, directory := range left {
		if change, needed := retained(directory, namespaceOf(directory, attachments, present)); needed {
			changes = append(changes, change)
		}
	}
	_, err := apply.Execute(ctx, r.Client, retentions(changes))
	return err
}

// namespaceOf is the UID of the namespace that an orphan's directory is of.
func namespaceOf(directory *internalv1.ShareDirectory, attachments []internalv1.ShareAttachment, present *corev1.Namespace) string {
	at := slices.IndexFunc(attachments, func(a internalv1.ShareAttachment) bool {
		return a.Namespace == directory.Namespace && a.Spec.FileServerRef.Name == directory.Spec.FileServerRef.Name
	})
	switch {
	case at >= 0 && attachments[at].Spec.NamespaceUID != "":
		return attachments[at].Spec.NamespaceUID
	case present.UID == "" || present.CreationTimestamp.After(directory.CreationTimestamp.Time):
		return unknownNamespace
	}
	return string(present.UID)
}
