#!/usr/bin/env bash
# What a mkdir of a distributed directory and a first entry take, and where the time goes: native data servers and a namespace server in
# network namespaces, a real API server and etcd, a client of Howdah's own and one in User-mode Linux (test/kernels). Needs root and no lab.
#
#   HOWDAH_MKDIR_ROUNDS=2   how often each measurement is made
#   TMPDIR=/dev/shm         etcd keeps its data in memory: what its fsync costs is the difference
#
# The report stays in .test-results/mkdir.
set -euo pipefail
cd "$(dirname "$0")/.."
export HOWDAH_MKDIR_INTO=$PWD/.test-results/mkdir
rm -rf "$HOWDAH_MKDIR_INTO"
mkdir -p "$HOWDAH_MKDIR_INTO"
hack/test-kernels.sh -test.run='^TestMkdirSpeed$'
cat "$HOWDAH_MKDIR_INTO/report.txt"
