#!/usr/bin/env bash
# What N data servers give through one mount, as a part of N links: five native data servers in network namespaces, each behind a link of the
# same speed, and a client in User-mode Linux (test/kernels, test/model). Needs root and no lab.
# It ends with 0 if the goals are met, 4 if one is not, and 3 if the run is INVALID: then it says what disturbed it.
#
#   HOWDAH_MODEL_LINK=400   Mbit/s of each link: low enough that the links are the limit, not the machine's CPUs
#   HOWDAH_MODEL_ROUNDS=3   how often each measurement is made; they are interleaved, and the median counts
#
# The report and all figures (JSON) stay in .test-results/model.
set -euo pipefail
cd "$(dirname "$0")/.."
export HOWDAH_MODEL_INTO=$PWD/.test-results/model
rm -rf "$HOWDAH_MODEL_INTO"
mkdir -p "$HOWDAH_MODEL_INTO"
hack/test-kernels.sh -test.run='^TestModel$'
cat "$HOWDAH_MODEL_INTO/report.txt"
exit "$(cat "$HOWDAH_MODEL_INTO/outcome")"
