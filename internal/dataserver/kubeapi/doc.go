// Package kubeapi is the data server's side of the Kubernetes API: it watches its DataServer and the ShareExports of it, and writes their
// statuses. What a status should be, given what was observed, is decided by plain functions (status.go). It must not import the other rooms of
// internal/dataserver but backend.
package kubeapi
