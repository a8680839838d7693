#!/usr/bin/env bash
# What serving a Ceph file system through Howdah costs: makes a lab of its own with a Ceph, has one client write, read and make small files
# through one and through three data servers, by ceph-fuse, and through one plain ganesha with the settings of Rook's CephNFS, all in one
# run; prints throughput, files per second, CPU seconds per GB and memory, and the ratios with their limits. Some 20 minutes.
# It ends with 0 if the limits are kept, 4 if one is not, and 3 if the run is INVALID: this machine had other things to do.
#
#   HOWDAH_COST="--rounds 1 --seconds 3 --mib 8" hack/bench-ceph.sh     # a trial
#
# HOWDAH_COST_LAB names the lab, HOWDAH_COST_KEEP=yes leaves it up.
set -euo pipefail
cd "$(dirname "$0")/.."
source hack/environment.sh
name=${HOWDAH_COST_LAB:-howdah-cost}
export HOWDAH_UNSIGNED_IMAGE=howdah/unsigned:dev

cleanup() {
  trap - EXIT INT TERM
  [ -z "${program:-}" ] || rm -rf "$(dirname "$program")"
  [ "${HOWDAH_COST_KEEP:-}" = yes ] || hack/lab/lab down --name "$name" || true
}
trap cleanup EXIT
trap 'exit 130' INT TERM

hack/lab/lab up --name "$name" --nodes 4 --memory 2500M
eval "$(hack/lab/lab env --name "$name")"
# The client's node has nothing else: no daemon of Ceph's, no server.
kubectl cordon node4
hack/install.sh --lab "$name"
hack/ceph.sh --lab "$name"
hack/lab/lab load --name "$name" --archive "$(hack/lab/lab images --target packaged --tag "$HOWDAH_UNSIGNED_IMAGE")"
# Not go run: it would make 1 of every exit code.
program=$(mktemp -d)/cephcost
go build -o "$program" ./test/cephcost
echo "load of the machine: $(cut -d' ' -f1-3 /proc/loadavg), $(nproc) cores"
# shellcheck disable=SC2086 # the flags are words
"$program" --server-nodes node1,node2,node3 --client-node node4 ${HOWDAH_COST:-}
