// Package limits decides whether a share fits into its FileServer's spec.limits. It counts objects that the caller
// passes, and imports no client, no context and no logger.
package limits
