#!/usr/bin/env bash
# Everyday commands on the NFS clients of several Linux kernels, against real namespace servers and the real ganesha
# (test/kernels). Needs root; what is missing is downloaded or built into the cache.
#
#   hack/test-kernels.sh [flags of the test binary, such as -test.run=TestKernels/fresh]
#
#   HOWDAH_KERNELS="6.1 7.2"   only these kernels
set -euo pipefail
cd "$(dirname "$0")/.."
source hack/environment.sh

KUBEBUILDER_ASSETS=$(hack/lab/lab assets)
HOWDAH_GANESHA_ROOT=${HOWDAH_GANESHA_ROOT:-$(hack/lab/lab images --target ganesha --unpack)}
HOWDAH_CLIENTS_ROOT=${HOWDAH_CLIENTS_ROOT:-$(hack/lab/lab clients)}
HOWDAH_BINARY=$PWD/bin/howdah
export KUBEBUILDER_ASSETS HOWDAH_GANESHA_ROOT HOWDAH_CLIENTS_ROOT HOWDAH_BINARY
go build -o "$HOWDAH_BINARY" ./cmd/howdah
go test -vet=off -c -o bin/kernels.test ./test/kernels

# Networks, mounts and processes are in namespaces that end with this command, however it ends.
# shellcheck disable=SC2016 # The inner shell expands them.
exec unshare --net --mount --pid --ipc --fork --kill-child --mount-proc bash -euc '
  mount -t tmpfs tmpfs /run
  cd test/kernels
  exec ../../bin/kernels.test -test.v -test.timeout=60m "$@"' bash "$@"
