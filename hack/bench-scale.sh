#!/usr/bin/env bash
# Makes a lab of its own with capped server nodes, runs the scale benchmark in it
# and takes the lab down again: about ten minutes. HOWDAH_SCALE_CAP is the cap in Mbit/s of each of
# three server nodes: low enough that the links are the limit, not the machine's two cores.
# It ends with 0 if the goals are met, 4 if one is not, and 3 if the run is INVALID: then it says what disturbed it.
set -euo pipefail
cd "$(dirname "$0")/.."
source hack/environment.sh
cap=${HOWDAH_SCALE_CAP:-48}
name=${HOWDAH_SCALE_LAB:-howdah-scale}
rounds=${HOWDAH_SCALE_ROUNDS:-2}

cleanup() {
	trap - EXIT INT TERM
	[ -z "${program:-}" ] || rm -rf "$(dirname "$program")"
	hack/lab/lab down --name "$name" || true
}
trap cleanup EXIT
trap 'exit 130' INT TERM

hack/lab/lab up --name "$name" --nodes 4 --nic-cap "node1=$cap,node2=$cap,node3=$cap"
eval "$(hack/lab/lab env --name "$name")"
hack/install.sh --lab "$name"
# Not go run: it would make 1 of every exit code.
program=$(mktemp -d)/scale
go build -o "$program" ./test/scale
"$program" --server-nodes node1,node2,node3 --client-node node4 --cap-mbit "$cap" --rounds "$rounds"
