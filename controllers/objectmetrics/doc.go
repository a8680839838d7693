// Package objectmetrics makes metrics of the operator's API objects, as kube-state-metrics does for Kubernetes' own.
// Samples is a pure function of the objects: a deleted object has no metrics, and a restart changes nothing.
package objectmetrics
