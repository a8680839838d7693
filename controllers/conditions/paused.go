package conditions

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/howdah/howdah/api/v1alpha1"
)

// IsPaused reports whether the user has paused the object, so that the operator changes nothing.
func IsPaused(object metav1.Object) bool {
	return object.GetAnnotations()[v1alpha1.PausedAnnotation] == v1alpha1.PausedTrue
}

// SetPaused sets the condition Paused while the object is paused, and removes it otherwise.
func SetPaused(into *[]metav1.Condition, object metav1.Object, now time.Time) bool {
	message := "nothing of this object is changed until its annotation " + v1alpha1.PausedAnnotation + " is removed"
	if object.GetDeletionTimestamp() != nil {
		message += "; its deletion waits for that, too"
	}
	return setWhile(into, object.GetGeneration(), now, IsPaused(object), v1alpha1.ConditionPaused,
		metav1.Condition{Reason: v1alpha1.ReasonPaused, Message: message})
}
