// Package limits decides whether what a share takes of its FileServer fits into spec.limits. It counts objects that the caller has, and
// imports no client, no context and no logger.
package limits
