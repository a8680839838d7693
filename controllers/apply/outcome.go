package apply

import (
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
)

// conflictDelay is about what the cache needs to catch up with our own last write.
const conflictDelay = 50 * time.Millisecond

// Outcome is what a pass returns for the errors of its parts. Lost races alone (conflicts) are no
// error to log, only a reason to try again: an object moved on. One of another kind is returned with them.
func Outcome(errs ...error) (ctrl.Result, error) {
	all := errors.Join(errs...)
	if all == nil {
		return ctrl.Result{}, nil
	}
	for _, err := range errs {
		if err != nil && !apierrors.IsConflict(err) {
			return ctrl.Result{}, all
		}
	}
	return ctrl.Result{RequeueAfter: conflictDelay}, nil
}
