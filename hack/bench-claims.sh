#!/usr/bin/env bash
# Measures what many claims of a StorageClass at once cost, on a real API server with data servers that are played
# (test/integration): the time until all have volumes, and what the operator writes. HOWDAH_CLAIMS says how many.
set -euo pipefail
cd "$(dirname "$0")/.."
source hack/environment.sh
source hack/progress.sh
KUBEBUILDER_ASSETS=$(hack/lab/lab assets)
export KUBEBUILDER_ASSETS HOWDAH_CLAIMS=${HOWDAH_CLAIMS:-500}
echo "load of the machine: $(cut -d' ' -f1-3 /proc/loadavg), $(nproc) cores"
output=$(mktemp)
trap 'rm -f "$output"' EXIT
measure() { go test ./test/integration/ -v -count=1 -timeout 2h -ginkgo.no-color -ginkgo.focus 'A claim of a StorageClass is one of many' >"$output" 2>&1; }
if ! remind "$HOWDAH_CLAIMS claims: the test is built, then they are made and waited for, some three minutes for 500" measure; then
  cat "$output" >&2
  exit 1
fi
# It is there twice: once in Ginkgo's report.
grep -o '[0-9]* claims at once, .*' "$output" | head -1
