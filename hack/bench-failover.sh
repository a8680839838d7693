#!/usr/bin/env bash
# Times what a client waits when the node of a data server in Ceph is lost: on a real Ceph of processes (hack/ceph-processes), with a real control
# plane, operator, steward and kube-proxies, and nodes that the test stands in for (test/failover/doc.go). It needs root and no lab.
#
#   hack/bench-failover.sh [flags of the test program: -test.run=…]
#
#   HOWDAH_FAILOVER_ROUNDS=5   how many nodes are lost, one after the other
set -euo pipefail
cd "$(dirname "$0")/.."
source hack/environment.sh
source hack/progress.sh

KUBEBUILDER_ASSETS=$(hack/lab/lab assets)
HOWDAH_BINARY=$PWD/bin/howdah
export KUBEBUILDER_ASSETS HOWDAH_BINARY
remind "building howdah" go build -o "$HOWDAH_BINARY" ./cmd/howdah
exec hack/ceph-processes/run.sh --text --tests 'test/failover=TestALostNodesDataServerIsServedElsewhere' "$@"
