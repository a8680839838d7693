#!/usr/bin/env bash
# Measures what the operator costs on a big cluster (test/operatorload): CPU seconds, API writes and memory with
# 100,000 ShareDirectories. Some 15 minutes on two cores; for a quick trial
#
#   HOWDAH_LOAD="--file-servers 4 --shares 3 --directories 20 --rounds 3 --idle 5s" make bench-operator
set -euo pipefail
cd "$(dirname "$0")/.."
source hack/environment.sh
source hack/progress.sh
KUBEBUILDER_ASSETS=$(hack/lab/lab assets)
export KUBEBUILDER_ASSETS
remind "building the operator" go build -o bin/howdah ./cmd/howdah
remind "building the benchmark" go build -o bin/operatorload ./test/operatorload
# shellcheck disable=SC2086 # the flags are words
bin/operatorload --operator bin/howdah ${HOWDAH_LOAD:-}
