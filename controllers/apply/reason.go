package apply

import (
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/howdah/howdah/api/v1alpha1"
)

// Reason is the reason of a condition for what went wrong with applying: that a name is taken or the API server refuses
// an object is for somebody to mend, anything else passes by trying again.
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

// isRefused looks at every one of joined errors for one that trying again does not mend.
func isRefused(err error) bool {
	switch wrapped := err.(type) { //nolint:errorlint // the tree of errors itself is walked
	case interface{ Unwrap() []error }:
		return slices.ContainsFunc(wrapped.Unwrap(), isRefused)
	case interface{ Unwrap() error }:
		return isRefused(wrapped.Unwrap())
	}
	return apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err) || apierrors.IsMethodNotSupported(err)
}
