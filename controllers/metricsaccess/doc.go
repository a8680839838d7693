// Package metricsaccess gives the operator's metrics only to clients that the API server authorizes: it asks who a
// token is (TokenReview) and whether he may get /metrics (SubjectAccessReview). It decides nothing else.
//
// controller-runtime's filter of the same kind (pkg/metrics/filters) is built on k8s.io/apiserver, which would be linked
// into the one program that namespace servers are, too.
package metricsaccess
