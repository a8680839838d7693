// Package plugin tests kubectl howdah in a terminal on a cluster with Howdah, as a person uses it: status, tree, mount, clients, plan, bench,
// explain and support-bundle, with a share at a path that is taken, a data server without a node, and a user with few rights.
//
// `make test-plugin` makes a lab and starts it. It needs KUBECONFIG and CLIENT_IMAGE as test/e2e does, kubectl-howdah in PATH, and script(1).
// What each command prints is kept in HOWDAH_PLUGIN_OUTPUT, in two files: with colours (.ansi) and without (.txt).
// HOWDAH_PLUGIN_BENCH=no leaves the benchmark out.
package plugin
