// Package objectmetrics makes metrics of the operator's API objects, as kube-state-metrics does of Kubernetes' own. Samples is a pure
// function of the objects: what is gone from the API is gone from the metrics, and nothing is counted that a restart would forget.
package objectmetrics
