// Command operatorload measures what the operator costs on a big cluster: CPU seconds, API writes and
// passes for one directory made, one pod restarted and nothing at all, and its memory with 100,000
// ShareDirectories. A real API server and etcd run (envtest), the operator runs as a process of its own with the
// rights of its generated role, and the command plays the StatefulSet controller, the kubelet and the servers.
//
//	KUBEBUILDER_ASSETS=… operatorload --operator bin/howdah --file-servers 50 --shares 10 --directories 200
//
// With --many-shares it gives one FileServer very many shares instead, deletes some of them at once, adds others up to
// the limit and one above it, and fails if a share that stays was not Ready for a moment.
//
// Everything is in one Kubernetes namespace: what looks through all of it shows.
package main
