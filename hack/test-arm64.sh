#!/usr/bin/env bash
# The data servers' image for arm64 on a machine of another kind: its stage `tested` is built under Debian's QEMU (hack/emulate.sh), and the
# tests that run a real ganesha (internal/dataserver, internal/ganesha) run that one. Needs root; a quarter of an hour the first time.
#
#   hack/test-arm64.sh [flags of go test]
set -euo pipefail
cd "$(dirname "$0")/.."
source hack/environment.sh
if [ "${1:-}" != inside ]; then exec hack/emulate.sh arm64 "$0" inside "$@"; fi
shift
root=$(hack/lab/lab images --arch arm64 --target tested --unpack)
# With an amd64 program nothing below would show anything.
head -c 20 "$root/usr/bin/ganesha.nfsd" | od -An -tx1 | tr -d ' \n' | grep -q '^7f454c46.*b700$' || { echo "test-arm64: $root/usr/bin/ganesha.nfsd is not for arm64" >&2; exit 1; }
echo "ganesha of $root: $(cat "$root/usr/share/doc/nfs-ganesha/version")" >&2
# Six minutes on a quiet machine; the default limit of ten is too tight for one that has other work.
HOWDAH_GANESHA_ROOT=$root HOWDAH_GANESHA_EMULATED=yes HOWDAH_REQUIRE_GANESHA=1 go test -count=1 -timeout 60m "$@" ./internal/dataserver ./internal/ganesha/...
