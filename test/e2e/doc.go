// Package e2e holds the user stories that need real servers, real mounts and
// real data. It runs unchanged on the lab, on kind or on any cluster that has
// Howdah installed:
//
//	KUBECONFIG=... CLIENT_IMAGE=... go test ./test/e2e/...
//
// Its FileServers have volumes; with HOWDAH_E2E_BACKEND=ceph they are in the Ceph
// that hack/ceph.sh put into the cluster (backend_test.go), and specs that are
// about volumes are skipped.
//
// One FileServer of three data servers, one share and two client pods on
// distinct nodes serve all stories; what a story adds, it removes.
package e2e
