package apply

import (
	"errors"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
)

// conflictDelay is about the time in which the cache gets our own last write.
const conflictDelay = 50 * time.Millisecond

// Outcome is what a pass returns for the errors of its parts. If all errors are lost races (conflicts), nothing is
// logged and the pass is repeated. Otherwise all errors are returned.
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

// isLostRace checks every one of joined errors. IsConflict would accept a single one.
func isLostRace(err error) bool {
	switch wrapped := err.(type) { //nolint:errorlint // the tree of errors itself is walked
	case interface{ Unwrap() []error }:
		return !slices.ContainsFunc(wrapped.Unwrap(), func(err error) bool { return !isLostRace(err) })
	case interface{ Unwrap() error }:
		return isLostRace(wrapped.Unwrap())
	}
	return apierrors.IsConflict(err)
}
