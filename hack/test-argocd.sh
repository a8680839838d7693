#!/usr/bin/env bash
# Runs test/argocd: makes a lab, and runs the real Argo CD beside it. Needs root. Takes 15 minutes, and 10 more the first time, to build Argo CD.
# HOWDAH_ARGOCD_MINUTES is how long everything must stay Synced (2), HOWDAH_ARGOCD_LAB names the lab, HOWDAH_E2E_KEEP=yes leaves it up.
set -euo pipefail
cd "$(dirname "$0")/.."
source hack/environment.sh
source hack/progress.sh
name=${HOWDAH_ARGOCD_LAB:-howdah-argocd}
scratch=$(mktemp -d "${TMPDIR:-/tmp}/howdah-gitops.XXXXXX")

finish() {
  local status=$?
  trap - EXIT INT TERM HUP
  if [ "$status" -ne 0 ]; then
    { kubectl get nfs,pods -A -o wide; kubectl -n howdah-system logs deployment/howdah --tail=30; } >&2 2>&1 || true
  fi
  rm -rf "$scratch"
  [ "${HOWDAH_E2E_KEEP:-}" = yes ] || hack/lab/lab down --name "$name" >&2 || true
  exit "$status"
}
trap finish EXIT
trap 'exit 130' INT TERM HUP

hack/argocd/run.sh build
remind "building the engine of Flux" go -C hack/flux build -ldflags='-s -w' -o "$scratch/flux" .
remind "building the tests" go test -vet=off -c -o "$scratch/argocd.test" ./test/argocd
archives=$(hack/lab/lab images)
mapfile -t archives <<<"$archives"
load=()
for archive in "${archives[@]}"; do load+=(--archive "$archive"); done
hack/lab/lab up --name "$name" --nodes 3
eval "$(hack/lab/lab env --name "$name")"
hack/lab/lab load --name "$name" "${load[@]}"

# Argo CD and the tests run in the lab's network namespace, where its ports are free. The API server has another address there.
api=$(kubectl -n default get endpointslice kubernetes -o jsonpath='{.endpoints[0].addresses[0]}:{.ports[0].port}')
sed "s|https://127.0.0.1:[0-9]*|https://$api|" "$KUBECONFIG" >"$scratch/kubeconfig"
mkdir "$scratch/repositories"
ip netns exec "howdah-lab-$name" env KUBECONFIG="$scratch/kubeconfig" HOWDAH_FLUX="$scratch/flux" HOWDAH_ARGOCD_REPOSITORIES="$scratch/repositories" \
  hack/argocd/run.sh "$scratch/repositories" env -C test/argocd "$scratch/argocd.test" -test.timeout=0 -ginkgo.v -ginkgo.no-color &
child=$!
trap 'kill -TERM "$child" 2>/dev/null; wait "$child" || true; exit 130' INT TERM HUP
wait "$child"
