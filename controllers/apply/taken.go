package apply

import (
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/howdah/howdah/api/v1alpha1"
)

// NameTaken means that an object has the name that a child needs, and belongs to another owner. Its text says what to
// do and has no generated names.
type NameTaken struct {
	// Kind, Namespace and Name are those of the existing object.
	Kind, Namespace, Name string
	// Leftover: it belongs to a deleted object with the owner's name, and Kubernetes' garbage collector will delete it,
	// so waiting helps.
	Leftover bool
	// Holder describes its owner, for messages.
	Holder string
}

// Error implements error.
func (e *NameTaken) Error() string {
	what := e.Kind + " " + e.Name
	if e.Namespace != "" {
		what = e.Kind + " " + e.Namespace + "/" + e.Name
	}
	if e.Leftover {
		return fmt.Sprintf("%s still belongs to %s, which was deleted; waiting for Kubernetes to remove it", what, e.Holder)
	}
	return fmt.Sprintf("%s exists and belongs to %s; Howdah needs that name and does not touch it: delete or rename it, or give this object another name", what, e.Holder)
}

// IsNameTaken finds a NameTaken in an error.
func IsNameTaken(err error) (*NameTaken, bool) {
	var taken *NameTaken
	ok := errors.As(err, &taken)
	return taken, ok
}

// takenBy returns a NameTaken if present belongs to another owner; nil if it is owner's.
//
// An object without a controller belongs to owner if its marks say so. A restore from a backup, or "kubectl delete
// --cascade=orphan", leaves such objects.
func takenBy(id identity, present, owner client.Object, ownerGVK schema.GroupVersionKind, unowned bool) error {
	taken := &NameTaken{Kind: id.Kind, Namespace: id.Namespace, Name: id.Name}
	ours := present.GetLabels()[v1alpha1.ManagedByLabel] == v1alpha1.ManagedBy
	mark := present.GetAnnotations()[v1alpha1.OwnerAnnotation]
	controller := metav1.GetControllerOf(present)
	switch {
	case controller != nil && !unowned && ours && controller.UID == owner.GetUID():
		return nil
	case controller != nil && ours && controller.Kind == ownerGVK.Kind && controller.Name == owner.GetName():
		taken.Leftover, taken.Holder = true, "an earlier "+controller.Kind+" "+controller.Name
	case controller != nil:
		taken.Holder = controller.Kind + " " + controller.Name
	case ours && mark == ownerValue(owner, ownerGVK):
		return nil
	case ours && mark != "":
		taken.Holder = mark
	default:
		taken.Holder = "another program (no label " + v1alpha1.ManagedByLabel + "=" + v1alpha1.ManagedBy + ")"
		if ours {
			taken.Holder = "another program (no annotation " + v1alpha1.OwnerAnnotation + ")"
		}
	}
	return taken
}
