package desired

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	k8slabels "k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/naming"
)

// ShareAttachment attaches a share of another Kubernetes namespace to its FileServer. It is a whole object and not an apply configuration, as
// ShareExports are.
func ShareAttachment(share *v1alpha1.FileShare) *internalv1.ShareAttachment {
	return &internalv1.ShareAttachment{
		ObjectMeta: metav1.ObjectMeta{
			Name:        naming.KeyOf(share),
			Namespace:   naming.ServerNamespace(share),
			Labels:      labels(shareLabels(share)),
			Annotations: map[string]string{v1alpha1.OwnerAnnotation: naming.Owner("FileShare", share.Namespace, share.Name)},
			Finalizers:  []string{v1alpha1.AttachmentFinalizer},
		},
		Spec: internalv1.ShareAttachmentSpec{
			FileServerRef:      internalv1.FileServerReference{Name: share.Spec.FileServerRef.Name},
			FileShareRef:       internalv1.FileShareReference{Name: naming.KeyOf(share)},
			FileShareUID:       string(share.UID),
			Path:               share.Spec.Path,
			Layout:             internalv1.ShareLayout(share.Spec.Layout),
			Depth:              share.Spec.Depth,
			MaxDirectories:     share.Spec.MaxDirectories,
			HotDirectories:     share.Spec.HotDirectories,
			FindHotDirectories: findHot(share),
			UID:                share.Spec.UID,
			GID:                share.Spec.GID,
			Mode:               share.Spec.Mode,
			Access:             accessRules(share.Spec.Access),
			IgnoreDataOn:       share.Spec.IgnoreDataOn,
			AcceptedLosses:     share.Spec.AcceptedLosses,
		},
	}
}

// findHot is how a share looks for hot directories; nil: it does not.
func findHot(share *v1alpha1.FileShare) *v1alpha1.HotDirectorySearch {
	if search := share.Spec.FindHotDirectories; search != (v1alpha1.HotDirectorySearch{}) {
		return &search
	}
	return nil
}

// AllowsNamespace reports whether a FileServer serves shares of a Kubernetes namespace. namespaceLabels are used only
// if spec.allowedNamespaces has a selector. An invalid selector allows no namespace (SelectorFault).
func AllowsNamespace(fs *v1alpha1.FileServer, namespace string, namespaceLabels map[string]string) bool {
	allowed := fs.Spec.AllowedNamespaces
	switch {
	case namespace == fs.Namespace:
		return true
	case allowed == nil:
		return false
	case allowed.From == v1alpha1.NamespacesFromAll:
		return true
	case allowed.From != v1alpha1.NamespacesFromSelector || allowed.Selector == nil:
		return false
	}
	selector, err := metav1.LabelSelectorAsSelector(allowed.Selector)
	return err == nil && !selector.Empty() && selector.Matches(k8slabels.Set(namespaceLabels))
}

// SelectorFault is why the selector of spec.allowedNamespaces can't be used; nil if it can, or there is none. The schema can't tell which
// labels there can be: what a rule about them may cost is not bounded.
func SelectorFault(fs *v1alpha1.FileServer) error {
	if fs.Spec.AllowedNamespaces == nil || fs.Spec.AllowedNamespaces.Selector == nil {
		return nil
	}
	_, err := metav1.LabelSelectorAsSelector(fs.Spec.AllowedNamespaces.Selector)
	return err
}

// SelectShare selects what belongs to a share in its FileServer's Kubernetes namespace, and nothing of a share of the same
// name in another one.
func SelectShare(share *v1alpha1.FileShare) k8slabels.Selector {
	selector := k8slabels.SelectorFromSet(shareLabels(share))
	if naming.IsForeign(share) {
		return selector
	}
	if notForeign, err := k8slabels.NewRequirement(v1alpha1.FileShareNamespaceLabel, selection.DoesNotExist, nil); err == nil {
		return selector.Add(*notForeign)
	}
	return k8slabels.Nothing() // unreachable: the label's key is a valid one
}

func shareLabels(share *v1alpha1.FileShare) map[string]string {
	return naming.ShareLabels(naming.ServerNamespace(share), share.Spec.FileServerRef.Name, naming.KeyOf(share))
}
