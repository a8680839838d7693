#!/usr/bin/env bash
# Runs stages of the tests several times on a machine that is kept busy, and prints how each round ended.
# Tests that pass on an idle machine alone are wrong: nothing in a test may depend on how fast a machine is.
#
#   hack/test-busy.sh [unit] [integration] [e2e]      (default: unit integration)
#
# HOWDAH_BUSY_LOAD is how many endless loops run beside (8), HOWDAH_BUSY_ROUNDS how often (3).
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1
load=${HOWDAH_BUSY_LOAD:-8}
rounds=${HOWDAH_BUSY_ROUNDS:-3}
[ $# -gt 0 ] || set -- unit integration

# Results of earlier rounds must not be taken for new ones.
export HOWDAH_TEST_COUNT=1
trap 'exit 130' INT TERM HUP
report=() failed=0
for ((round = 1; round <= rounds; round++)); do
  started=$SECONDS log=$(mktemp)
  echo "=== busy: round $round of $rounds, load $load"
  hack/busy.sh "$load" hack/test.sh "$@" 2>&1 | tee "$log" || failed=$((failed + 1))
  average=$(cut -d ' ' -f 1-3 /proc/loadavg)
  report+=("round $round: $(tail -1 "$log"), in $((SECONDS - started)) s; load averages at its end: $average")
  rm -f "$log"
done
echo
printf '%s\n' "${report[@]}"
[ "$failed" -eq 0 ]
