// Package e2e holds the user stories that need real servers, real mounts and
// real data. It runs unchanged on the lab, on kind or on any cluster that has
// Howdah installed:
//
//	KUBECONFIG=... CLIENT_IMAGE=... go test ./test/e2e/...
//
// One FileServer of three data servers, one share and two client pods on
// distinct nodes serve all stories; what a story adds, it removes.
package e2e
