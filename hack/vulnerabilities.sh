#!/usr/bin/env bash
# Known vulnerabilities in what is called, by govulncheck. It needs the Go vulnerability database, which it asks over the
# network; GOVULNDB names a copy (file:///…). It is no part of make verify: CI may not reach the database.
set -euo pipefail
cd "$(dirname "$0")/.."
source hack/environment.sh
program=$(mktemp -d)/govulncheck
trap 'rm -rf "$(dirname "$program")"' EXIT
echo "vulnerabilities: building govulncheck" >&2
go -C hack/release build -o "$program" golang.org/x/vuln/cmd/govulncheck
status=0
for module in . hack/lab hack/lab/provisioner hack/pictures hack/release; do
  echo "vulnerabilities: $module" >&2
  if ! "$program" -C "$module" ${GOVULNDB:+-db "$GOVULNDB"} ./...; then status=1; fi
done
if [ "$status" -ne 0 ]; then
  echo "vulnerabilities: see above; if the database can't be reached, set GOVULNDB to a copy of it" >&2
fi
exit "$status"
