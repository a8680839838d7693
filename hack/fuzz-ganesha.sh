#!/usr/bin/env bash
# Random sequences of NFS calls for the ganesha of this checkout, built with AddressSanitizer and UndefinedBehaviorSanitizer: clients that may
# write, that may only read, that are let in elsewhere, and that are let in nowhere. First every operation and every known attack is tried on it. It
# prints steps and findings, each with its seed, and fails on the first one. It needs root and no lab.
#
#   hack/fuzz-ganesha.sh [MINUTES [SEED]]     # default: 60, and a seed of the clock; each seed is a server of its own
#
# BACKEND=volumes (default) has files on a volume, BACKEND=ceph in a Ceph of processes that it starts (hack/ceph-processes).
# HOWDAH_FUZZ_TESTS is a regular expression for the tests to run.
set -euo pipefail
cd "$(dirname "$0")/.."
source hack/environment.sh
export HOWDAH_FUZZ_MINUTES=${1:-60} HOWDAH_FUZZ_SEED=${2:-} HOWDAH_REQUIRE_GANESHA=1
tests=${HOWDAH_FUZZ_TESTS:-^Test(Operations|Attacks|Fuzz)$}
if [ -z "${HOWDAH_GANESHA_ROOT:-}" ]; then
  echo "building a ganesha with sanitizers, unless it is there: some three minutes"
  HOWDAH_GANESHA_ROOT=$(hack/lab/lab images --target sanitized --unpack)
fi
export HOWDAH_GANESHA_ROOT
case ${BACKEND:-volumes} in
  volumes) exec go test -vet=off -count=1 -timeout 0 -v -run "$tests" ./test/hostile ;;
  ceph) exec hack/ceph-processes/run.sh --text --root "$HOWDAH_GANESHA_ROOT" --tests "test/hostile=$tests" ;;
  *) echo "BACKEND is volumes or ceph, not $BACKEND" >&2; exit 2 ;;
esac
