#!/usr/bin/env bash
# Measures what one FileServer with very many shares costs the operator (test/operatorload): 1,025 shares with the
# longest access lists, 300 of them deleted at once, others up to the limit of 4,096, and one more, which is refused.
# It fails if any share that stays is not Ready for a moment. Long on two busy cores: each access list has 2,048
# addresses; for a trial
#
#   HOWDAH_SHARES="--many-shares 100 --deleted 30 --limit 1000" make bench-shares
#
# --profiles FOLDER writes CPU profiles of the operator and the API server during each step, and of the operator's heap.
set -euo pipefail
cd "$(dirname "$0")/.."
source hack/environment.sh
source hack/progress.sh
KUBEBUILDER_ASSETS=$(hack/lab/lab assets)
export KUBEBUILDER_ASSETS
remind "building the operator" go build -o bin/howdah ./cmd/howdah
remind "building the benchmark" go build -o bin/operatorload ./test/operatorload
echo "load of the machine: $(cut -d' ' -f1-3 /proc/loadavg), $(nproc) cores"
# shellcheck disable=SC2086 # the flags are words
bin/operatorload --operator bin/howdah ${HOWDAH_SHARES:---many-shares 1025}
