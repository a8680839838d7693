#!/usr/bin/env bash
# Everyday commands on the NFS clients of several Linux kernels, against real namespace servers and the real ganesha
# (test/kernels). Needs root; what is missing is downloaded or built into the cache.
#
#   hack/test-kernels.sh [flags of the test binary, such as -test.run=TestKernels/fresh]
#
#   HOWDAH_KERNELS="6.1 7.2"     only these kernels
#   HOWDAH_KERNELS_FAMILY=IPv6   all servers and clients have IPv6 addresses alone
set -euo pipefail
cd "$(dirname "$0")/.."
source hack/environment.sh
source hack/progress.sh

case ${HOWDAH_KERNELS_FAMILY:-IPv4} in
IPv4 | IPv6) ;;
*)
  echo "HOWDAH_KERNELS_FAMILY is $HOWDAH_KERNELS_FAMILY: set it to IPv4 or IPv6" >&2
  exit 2
  ;;
esac

KUBEBUILDER_ASSETS=$(hack/lab/lab assets)
HOWDAH_GANESHA_ROOT=${HOWDAH_GANESHA_ROOT:-$(hack/lab/lab images --target ganesha --unpack)}
HOWDAH_CLIENTS_ROOT=${HOWDAH_CLIENTS_ROOT:-$(hack/lab/lab clients)}
HOWDAH_BINARY=$PWD/bin/howdah
HOWDAH_REGISTERS=$PWD/bin/registers.so
export KUBEBUILDER_ASSETS HOWDAH_GANESHA_ROOT HOWDAH_CLIENTS_ROOT HOWDAH_BINARY HOWDAH_REGISTERS
remind "building howdah" go build -o "$HOWDAH_BINARY" ./cmd/howdah
gcc -Wall -Werror -O2 -shared -fPIC -o "$HOWDAH_REGISTERS" test/kernels/testdata/registers.c
remind "building the test" go test -vet=off -c -o bin/kernels.test ./test/kernels

# What the run writes is in a folder that its processes hold a lock of. It goes with the run, and one whose run was killed
# (its lock ended with its last process) goes with the next. Not in /tmp: ganesha does not export a tmpfs.
# The groups of a killed run that held servers to a part of a CPU (make bench-model) are empty then, and have its name.
forget() {
  rm -rf "$1"
  for groups in /sys/fs/cgroup/{cpu/,}"$(basename "$1")"; do
    [ ! -d "$groups" ] || find "$groups" -depth -type d -exec rmdir {} + 2>/dev/null || true
  done
}
for left in /var/tmp/howdah-kernels-*/; do
  if [ -d "$left" ] && flock -n "$left" true; then forget "$left"; fi
done
HOWDAH_KERNELS_SCRATCH=$(mktemp -d /var/tmp/howdah-kernels-XXXXXX)
export HOWDAH_KERNELS_SCRATCH
exec 9<"$HOWDAH_KERNELS_SCRATCH"
flock -n 9
trap 'forget "$HOWDAH_KERNELS_SCRATCH"' EXIT
trap 'exit 130' INT TERM HUP

# Networks, mounts and processes are in namespaces that end with this script, however it ends.
# shellcheck disable=SC2016 # The inner shell expands them.
setpriv --pdeathsig KILL unshare --net --mount --pid --ipc --fork --kill-child --mount-proc bash -euc '
  mount -t tmpfs tmpfs /run
  cd test/kernels
  exec ../../bin/kernels.test -test.v -test.timeout=60m "$@"' bash "$@" &
child=$!
trap 'kill -KILL "$child" 2>/dev/null; wait "$child" || true; exit 130' INT TERM HUP
wait "$child"
