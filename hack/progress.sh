# Sourced by scripts whose commands print nothing for long, so that users see that they still run.
# shellcheck shell=bash

# remind WHAT COMMAND...: runs the command, and reports every 10 seconds on standard error what runs and for how long.
remind() {
  local what=$1 started=$SECONDS owner=$$ reporter status=0
  shift
  # It holds no pipe or lock of the caller's (9 is the one that these scripts use), and ends with the script, however that ends.
  (
    exec 9>&-
    while sleep 10 >/dev/null 2>&1 && kill -0 "$owner" 2>/dev/null; do
      echo "... $what: $((SECONDS - started)) s" >&2
    done
  ) >/dev/null &
  reporter=$!
  "$@" || status=$?
  kill "$reporter" 2>/dev/null || true
  wait "$reporter" 2>/dev/null || true
  return "$status"
}
