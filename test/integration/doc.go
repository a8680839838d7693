// Package integration holds the user stories that need an API server and
// nothing else: etcd and kube-apiserver run, the operator runs in the test
// process with the rights of its generated ClusterRole, and the tests
// play the parts of the StatefulSet controller, the kubelet and the servers (world_test.go). One file per story.
//
//	KUBEBUILDER_ASSETS=<directory with etcd and kube-apiserver> go test ./test/integration/...
package integration
