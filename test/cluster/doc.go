// Package cluster is how the end-to-end tests and the benchmarks use a cluster:
// objects through the API, commands through kubectl exec. It knows no lab:
// whatever KUBECONFIG points at will do, with Howdah installed and its images present.
package cluster
