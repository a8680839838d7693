package apply

import (
	"errors"
	"slices"
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
	switch {
	case all == nil:
		return ctrl.Result{}, nil
	case isLostRace(all):
		return ctrl.Result{RequeueAfter: conflictDelay}, nil
	}
	return ctrl.Result{}, all
}

// isLostRace looks at every one of joined errors: IsConflict is content with one.
func isLostRace(err error) bool {
	switch wrapped := err.(type) { //nolint:errorlint // the tree of errors itself is walked
	case interface{ Unwrap() []error }:
		return !slices.ContainsFunc(wrapped.Unwrap(), func(err error) bool { return !isLostRace(err) })
	case interface{ Unwrap() error }:
		return isLostRace(wrapped.Unwrap())
	}
	return apierrors.IsConflict(err)
}
