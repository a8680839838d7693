// Package fileserver turns FileServers into their children. A pass observes
// everything (observe.go), decides purely (decide.go, storage.go), applies
// declaratively (controllers/desired, controllers/apply), and reports once (status.go,
// servers.go, pure as well). It remembers nothing between passes: every decision follows
// from what exists. It must not import another kind's controller.
package fileserver
