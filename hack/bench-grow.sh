#!/usr/bin/env bash
# Makes a lab of its own with three ordinary nodes and two that run data servers and nothing else, has a client read through one mount from one
# data server, adds the two nodes, moves directories there with kubectl howdah rebalance, and takes the lab down again: a quarter of an hour.
# With BACKEND=ceph the data is in a Ceph on three nodes without a cap, two of them more than with volumes.
# HOWDAH_GROW_CAP is the cap in Mbit/s of the link of each of the three nodes with data servers.
# It ends with 0 if the goals are met, 4 if one is not, and 3 if the run is INVALID: then it says what disturbed it.
set -euo pipefail
cd "$(dirname "$0")/.."
source hack/environment.sh
cap=${HOWDAH_GROW_CAP:-48}
name=${HOWDAH_GROW_LAB:-howdah-grow}
case ${BACKEND:-volumes} in
volumes) nodes=5 memory=1500M flags=() ;;
ceph) nodes=7 memory=2000M flags=(--ceph) ;;
*) echo "BACKEND=$BACKEND: want volumes or ceph" >&2; exit 2 ;;
esac

cleanup() {
	trap - EXIT INT TERM
	[ -z "${programs:-}" ] || rm -rf "$programs"
	hack/lab/lab down --name "$name" || true
}
trap cleanup EXIT
trap 'exit 130' INT TERM

hack/lab/lab up --name "$name" --nodes "$nodes" --memory "$memory" --nic-cap "node1=$cap,node4=$cap,node5=$cap"
eval "$(hack/lab/lab env --name "$name")"
if [ "${#flags[@]}" -gt 0 ]; then
	kubectl cordon node1 node2 node4 node5
	hack/ceph.sh --lab "$name"
	kubectl uncordon node1 node2 node4 node5
fi
hack/install.sh --lab "$name"
# Not go run: it would make 1 of every exit code.
programs=$(mktemp -d)
go build -o "$programs/" ./test/scale ./cmd/kubectl-howdah
export PATH="$programs:$PATH"
echo "load of the machine: $(cut -d' ' -f1-3 /proc/loadavg), $(nproc) cores"
"$programs/scale" --server-nodes node1 --grow-nodes node4,node5 --client-node node2 --cap-mbit "$cap" --seconds 30 "${flags[@]}"
