// Package failover times what a client waits when the node of a data server in Ceph is lost, with processes of this machine in place of a lab,
// whose emulated kernel takes most of that time for itself. hack/bench-failover.sh (make bench-failover) runs it.
//
// Real are Ceph, etcd, the API server, Kubernetes' controller manager, scheduler and kube-proxy, the operator, the namespace servers, the
// steward, the data servers with ganesha, and the packets between all of them. The operator, the API server and Ceph are on no node.
//
// The kubelet and the container runtime are stood in for, by this package:
//
//   - A node is a network namespace with an address, a Lease that is renewed every 10 s, and a kube-proxy.
//   - A pod that is bound to a node becomes a process in namespaces of its own, with an address of the node's range, the user, environment,
//     arguments and volumes of its specification, and a token of its account. Its containers' root is that of the server image.
//   - Its status is what a kubelet reports: phase, address, container, and Ready by the pod's own readiness probe. Liveness is not probed.
//   - No image is pulled, no sandbox is made, and nothing is counted (cgroups). So a pod starts in a few tenths of a second.
//
// The client is one of this package, too. It sends what Linux sends, reclaims as Linux does, and takes as long as Linux to give a connection up.
package failover
