#!/usr/bin/env bash
# Known vulnerabilities in what is called, by govulncheck. It needs the Go vulnerability database, which it asks over the
# network; GOVULNDB names a copy (file:///…). It ends with 3 if there are any, and with 4 if it could not look.
set -euo pipefail
cd "$(dirname "$0")/.."
source hack/environment.sh
source hack/progress.sh
program=$(mktemp -d)/govulncheck
trap 'rm -rf "$(dirname "$program")"' EXIT
remind "building govulncheck" go -C hack/release build -o "$program" golang.org/x/vuln/cmd/govulncheck
found=0
for module in . hack/lab hack/lab/network hack/lab/provisioner hack/pictures hack/release; do
  echo "vulnerabilities: $module" >&2
  status=0
  "$program" -C "$module" ${GOVULNDB:+-db "$GOVULNDB"} ./... || status=$?
  case $status in
    0) ;;
    3) found=3 ;;
    *)
      echo "vulnerabilities: nothing is known of $module; if the database can't be reached, set GOVULNDB to a copy of it" >&2
      exit 4
      ;;
  esac
done
exit "$found"
