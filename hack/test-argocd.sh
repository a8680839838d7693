#!/usr/bin/env bash
# The real Argo CD on a lab of its own: it installs Howdah and makes storage by the examples of config/argocd, then the engine of Flux does
# the latter (hack/argocd/story.sh). Needs root. Some 15 minutes; the first time 10 more, for Argo CD is built.
# HOWDAH_ARGOCD_MINUTES is how long all has to stay Synced (2), HOWDAH_ARGOCD_LAB names the lab, HOWDAH_E2E_KEEP=yes leaves it up.
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
remind "building what is needed of Flux" go -C hack/flux build -ldflags='-s -w' -o "$scratch/flux" .
archives=$(hack/lab/lab images)
mapfile -t archives <<<"$archives"
load=()
for archive in "${archives[@]}"; do load+=(--archive "$archive"); done
hack/lab/lab up --name "$name" --nodes 3
eval "$(hack/lab/lab env --name "$name")"
hack/lab/lab load --name "$name" "${load[@]}"

# In the lab's network, where the ports of Argo CD are nobody else's; there the API server has another address.
api=$(kubectl -n default get endpointslice kubernetes -o jsonpath='{.endpoints[0].addresses[0]}:{.ports[0].port}')
sed "s|https://127.0.0.1:[0-9]*|https://$api|" "$KUBECONFIG" >"$scratch/kubeconfig"
mkdir "$scratch/repositories"
ip netns exec "howdah-lab-$name" env KUBECONFIG="$scratch/kubeconfig" HOWDAH_FLUX="$scratch/flux" \
  hack/argocd/run.sh "$scratch/repositories" hack/argocd/story.sh "$scratch/repositories" &
child=$!
trap 'kill -TERM "$child" 2>/dev/null; wait "$child" || true; exit 130' INT TERM HUP
wait "$child"
