#!/usr/bin/env bash
# Runs a command on a machine that is kept busy: beside it run endless loops of the same priority, which
# end with it, however it ends. A test that depends on the wall clock fails here.
#
#   hack/busy.sh 8 go test ./internal/nfs4/...
set -euo pipefail
[ $# -gt 1 ] || { echo "usage: hack/busy.sh LOAD COMMAND..." >&2; exit 2; }
load=$1
shift

loops=()
finish() {
  trap - EXIT INT TERM HUP
  kill "${loops[@]}" 2>/dev/null || true
  wait "${loops[@]}" 2>/dev/null || true
}
trap finish EXIT
trap 'exit 130' INT TERM HUP

# A loop looks after its parent, in case that is killed with no time to clean up.
parent=$$
for ((i = 0; i < load; i++)); do
  (while [ -d "/proc/$parent" ]; do for ((n = 0; n < 1000000; n++)); do :; done; done) &
  loops+=($!)
done

# In the background with wait, so that a signal is acted on at once; the command gets it too.
"$@" &
child=$!
trap 'kill -TERM "$child" 2>/dev/null; wait "$child" || true; exit 130' INT TERM HUP
wait "$child"
