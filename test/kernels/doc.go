// Package kernels tries Howdah with the NFS clients of real Linux kernels, the way a user does: with mkdir, cp, rsync
// and git. The clients are User-mode Linux machines; the data servers are the real ganesha under its
// supervisor, each in a network namespace of its own; the namespace servers are the real ones, on envtest's API server.
//
// There is no Kubernetes node and no pod, so it needs no lab: hack/test-kernels.sh (make test-kernels) runs it, in
// namespaces that take everything away with them when they end.
package kernels
