package apply

import (
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/howdah/howdah/api/v1alpha1"
)

// Reason returns the reason of a condition for a failed apply. The user must correct a name that is in use and an
// object that the API server refuses; other errors are retried.
func Reason(err error) string {
	taken, ok := IsNameTaken(err)
	switch {
	case ok && !taken.Leftover:
		return v1alpha1.ReasonNameTaken
	case isRefused(err):
		return v1alpha1.ReasonApplyFailed
	}
	return v1alpha1.ReasonProgressing
}

// isRefused reports whether one of the joined errors can't be corrected by a retry.
func isRefused(err error) bool {
	switch wrapped := err.(type) { //nolint:errorlint // the tree of errors itself is walked
	case interface{ Unwrap() []error }:
		return slices.ContainsFunc(wrapped.Unwrap(), isRefused)
	case interface{ Unwrap() error }:
		return isRefused(wrapped.Unwrap())
	}
	return apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err) || apierrors.IsMethodNotSupported(err)
}
