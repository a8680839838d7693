// Package fileserver creates the child objects of FileServers. A pass observes everything (observe.go), decides without
// side effects (decide.go), applies the decision (controllers/desired, controllers/apply), and reports once (status.go,
// servers.go). It remembers nothing between passes, except the namespace servers' connections (namespace_servers.go):
// every decision follows from what exists. It must not import another kind's controller.
package fileserver
