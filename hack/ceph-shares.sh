#!/usr/bin/env bash
# Makes in a Ceph what storage.ceph.external of a FileServer needs, and the Secret with it (docs/operate/ceph.md):
#
#   hack/ceph-shares.sh -n ml spec training | kubectl apply -f -
#   hack/ceph-shares.sh -n ml secret training unet3d
#
# The Ceph is that of hack/ceph.sh; -ceph names another one's command line. --help tells more.
set -euo pipefail
cd "$(dirname "$0")/.."
source hack/environment.sh
exec go run ./hack/cephshares "$@"
