#!/usr/bin/env bash
# Puts a small real Ceph (hack/lab/ceph) into the cluster that KUBECONFIG names and waits until it is healthy.
#
#   hack/ceph.sh --lab NAME    builds the image and loads it into that lab first
#   hack/ceph.sh               the nodes have the image howdah/ceph:dev, or can pull it
set -euo pipefail
cd "$(dirname "$0")/.."
source hack/environment.sh

lab=
while [ $# -gt 0 ]; do
  case $1 in
    --lab) lab=${2:?--lab wants a name}; shift 2 ;;
    *) echo "usage: hack/ceph.sh [--lab NAME]" >&2; exit 2 ;;
  esac
done

if [ -n "$lab" ]; then
  archive=$(hack/lab/lab images --file hack/lab/ceph/image/Dockerfile --context hack/lab/ceph/image --target ceph --tag howdah/ceph:dev)
  hack/lab/lab load --name "$lab" --archive "$archive"
fi
started=$SECONDS
kubectl apply --server-side -k hack/lab/ceph
if ! kubectl -n ceph wait --for=condition=Complete job/ceph-setup --timeout="${HOWDAH_CEPH_TIMEOUT:-10m}"; then
  kubectl -n ceph get pods,pvc,events -o wide >&2
  kubectl -n ceph logs --prefix --tail=20 --all-containers -l 'app in (ceph-setup, ceph-mon, ceph-mgr, ceph-osd, ceph-mds)' --max-log-requests 20 >&2
  exit 1
fi
kubectl -n ceph logs job/ceph-setup
echo "ceph: HEALTH_OK and the accounts after $((SECONDS - started)) s"
