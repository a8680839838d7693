// Package namespaceprobe evicts namespace servers that do not answer. When a node is lost, Kubernetes keeps its pods as endpoints of
// Services for some 50 s, and sends new connections to them. A namespace server has no data, so nothing has to be known of its node
// before another takes its place. Data servers are another matter (internal/failover).
//
// decide.go is pure; prober.go asks the pods and the API server.
package namespaceprobe
