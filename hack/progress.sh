# Sourced by scripts whose commands are silent for long: nobody should have to wonder whether something still works.
# shellcheck shell=bash

# remind WHAT COMMAND...: runs the command, and says every 10 seconds on standard error what it is and for how long already.
remind() {
  local what=$1 started=$SECONDS owner=$$ teller status=0
  shift
  # It holds no pipe or lock of the caller's (9 is the one that these scripts use), and ends with the script, however that ends.
  (
    exec 9>&-
    while sleep 10 >/dev/null 2>&1 && kill -0 "$owner" 2>/dev/null; do
      echo "... $what: $((SECONDS - started)) s" >&2
    done
  ) >/dev/null &
  teller=$!
  "$@" || status=$?
  kill "$teller" 2>/dev/null || true
  wait "$teller" 2>/dev/null || true
  return "$status"
}
