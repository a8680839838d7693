// Package argocd tests Howdah with the real Argo CD on a cluster. Argo CD installs the chart and makes the storage of a team, by the
// examples of config/argocd. The suite checks that nothing that Howdah writes makes an Application OutOfSync while servers and the operator
// are killed under load, that selfHeal and prune do what docs/use/gitops.md says, and that a benchmark can stop a sync.
//
// `make test-argocd` makes a lab, runs Argo CD beside it (hack/argocd/run.sh) and starts this suite with these variables:
//
//   - KUBECONFIG, HOWDAH_IMAGE, HOWDAH_SERVER_IMAGE and CLIENT_IMAGE: as for test/e2e
//   - HOWDAH_ARGOCD_REPOSITORIES: the folder that git://127.0.0.1 serves; the suite makes the repositories howdah and platform in it
//   - HOWDAH_ARGOCD_MINUTES: how long everything must stay Synced under load (default 2; 10 for the figures of docs/use/gitops.md)
//   - HOWDAH_E2E_TIMEOUT_FACTOR: multiplies every timeout (default 4)
//   - HOWDAH_FLUX: the program of hack/flux; without it the spec of Flux is skipped
package argocd
