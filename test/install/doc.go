// Package install checks both ways to install Howdah, the chart and the
// kustomize base, and the samples, against a real API server: everything
// must be accepted with strict field validation; and what helm test, helm uninstall and installing again do.
// It tests no behaviour of the operator.
package install
