#!/usr/bin/env bash
# Installs Howdah with Helm into the cluster that KUBECONFIG names, from this checkout.
#
#   hack/install.sh --lab NAME    builds the images, loads them into that lab, installs
#   hack/install.sh               installs; the cluster can pull $HOWDAH_IMAGE and $HOWDAH_SERVER_IMAGE
set -euo pipefail
cd "$(dirname "$0")/.."
source hack/environment.sh
source hack/progress.sh

lab=
while [ $# -gt 0 ]; do
  case $1 in
    --lab) lab=${2:?--lab wants a name}; shift 2 ;;
    *) echo "usage: hack/install.sh [--lab NAME]" >&2; exit 2 ;;
  esac
done

if [ -n "$lab" ]; then
  archives=$(hack/lab/lab images)
  mapfile -t archives <<<"$archives"
  load=()
  for archive in "${archives[@]}"; do load+=(--archive "$archive"); done
  hack/lab/lab load --name "$lab" "${load[@]}"
fi

helm=$(hack/tools/build.sh helm)
# The tag is not new with each build, so pods of an earlier one must be replaced by hand (below).
before=$(kubectl -n howdah-system get deployment howdah -o jsonpath='{.metadata.uid}' 2>/dev/null || true)
remind "helm upgrade --install, until the operator is there" "$helm" upgrade --install howdah charts/howdah \
  --namespace howdah-system --create-namespace --wait --timeout 20m --set provisioning.enabled=true --set rook.enabled=true --set failover.enabled=true --set failover.volumes=true \
  --set image.repository="${HOWDAH_IMAGE%:*}" --set image.tag="${HOWDAH_IMAGE##*:}" \
  --set serverImage.repository="${HOWDAH_SERVER_IMAGE%:*}" --set serverImage.tag="${HOWDAH_SERVER_IMAGE##*:}"
if [ -n "$before" ] && [ -n "$lab" ]; then
  kubectl -n howdah-system rollout restart deployment howdah
  kubectl -n howdah-system rollout status deployment howdah --timeout 20m
fi
