#!/usr/bin/env bash
# What N data servers give through one mount, as a part of N links: five native data servers in network namespaces, each behind a link of the
# same speed, and clients in User-mode Linux (test/kernels, test/model); beside one plain ganesha and the kernel's own server. Needs root and no lab.
# It ends with 0 if the goals are met, 4 if one is not, and 3 if the run is INVALID: then it says what disturbed it.
#
#   HOWDAH_MODEL_LINK=400       Mbit/s of each link: low enough that the links are the limit, not the machine's CPUs
#   HOWDAH_MODEL_ROUNDS=3       how often each measurement is made; they are interleaved, and the median counts
#   HOWDAH_MODEL_SECTIONS=all   or some of: links connections readahead random clients hot small names; or none
#   HOWDAH_MODEL_BESIDE=all     or some of: ganesha (Debian's, alone), kernel (in User-mode Linux); or none
#   HOWDAH_MODEL_HOT=5          the most clients and data servers of one hot directory: 2 to 5; each client has up to 2 GiB of memory
#   HOWDAH_MODEL_FILES=400      small files on each server: 4000 is 20,000 on five
#   HOWDAH_MODEL_SETTINGS=none  or all, or some of: threads slots tcp idle cache expired disk; each is compared with another value
#
# The report and all figures (JSON) stay in .test-results/model.
set -euo pipefail
cd "$(dirname "$0")/.."
export HOWDAH_MODEL_INTO=$PWD/.test-results/model
rm -rf "$HOWDAH_MODEL_INTO"
mkdir -p "$HOWDAH_MODEL_INTO"
beside=${HOWDAH_MODEL_BESIDE:-all}
case $beside in *all*|*ganesha*)
  HOWDAH_PACKAGED_ROOT=${HOWDAH_PACKAGED_ROOT:-$(hack/lab/lab images --target packaged --unpack)}
  export HOWDAH_PACKAGED_ROOT
esac
case $beside in *all*|*kernel*)
  HOWDAH_NFS_SERVER_ROOT=${HOWDAH_NFS_SERVER_ROOT:-$(hack/lab/lab nfs-server)}
  export HOWDAH_NFS_SERVER_ROOT
esac
hack/test-kernels.sh -test.run='^TestModel$'
cat "$HOWDAH_MODEL_INTO/report.txt"
exit "$(cat "$HOWDAH_MODEL_INTO/outcome")"
