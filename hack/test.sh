#!/usr/bin/env bash
# Runs stages of the tests and ends with one summary, "N passed, N failed, N skipped"
# alone on the last line. A stage that fails does not stop the next.
#
#   hack/test.sh unit integration e2e
#
#   unit         everything that needs nothing but Go: units, goldens, fuzz seeds, also of hack/lab and hack/tools
#   race         the packages with goroutines, under the race detector (needs gcc)
#   integration  suites on envtest: a real API server and etcd; rules and dashboards with promtool
#   e2e          suites on a cluster: a lab is made for them (hack/e2e.sh), or KUBECONFIG with HOWDAH_E2E_CLUSTER=yes.
#                HOWDAH_E2E_BACKEND=ceph has the FileServers of the suites in a Ceph, which the lab gets, instead of on volumes
#   ceph         those that need a Ceph, then the suites of e2e on it: a lab with one is made for them, or KUBECONFIG as above, with
#                hack/lab/ceph in the cluster
#   processes    those that need a Ceph and no cluster, on one whose daemons are processes of this machine (hack/ceph-processes)
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1
source hack/environment.sh

# make verify vets with everything else that golangci-lint knows; here it would cost a cold machine minutes.
export GOFLAGS="${GOFLAGS:-} -vet=off"
# HOWDAH_TEST_COUNT=1 runs also what passed before and has not changed since.
[ -z "${HOWDAH_TEST_COUNT:-}" ] || GOFLAGS+=" -count=$HOWDAH_TEST_COUNT"

results=${HOWDAH_TEST_RESULTS:-.test-results}
mkdir -p "$results"
rm -f "$results"/*.json
testrun=$(hack/tools/build.sh testrun) || exit 1

# Which packages are integration tests is not a matter of folders: those that import envtest are, those of rules and
# dashboards and of the chart, which need promtool, helm and kustomize, and those that run the real ganesha.
integration_packages() {
  go list -f '{{.ImportPath}} {{join .TestImports " "}} {{join .XTestImports " "}}' ./... |
    awk '$1 !~ "/test/(e2e|failover|kernels)$" && / sigs.k8s.io\/controller-runtime\/pkg\/envtest( |$)/ || $1 ~ "/(test/(chart|hostile|monitoring)|internal/dataserver)$" {print $1}'
}
longest_first() {
  awk '{rank = /\/test\/integration$/ ? 1 : /\/internal\/dataserver$/ ? 2 : /\/test\/hostile$/ ? 4 : 3; print rank, $0}' | sort -s -k1,1 | cut -d' ' -f2
}
unit_packages() {
  go list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}' ./... | grep -v -e /test/e2e -e /test/failover -e /test/kernels -e /test/ceph -e /test/argocd -e /test/plugin |
    grep -vxFf <(integration_packages; echo none)
}

# run NUMBER STAGE [testrun flags] -- COMMAND...: the command writes go test -json.
run() {
  local number=$1 stage=$2 flags=()
  shift 2
  while [ "$1" != -- ]; do flags+=("$1"); shift; done
  shift
  echo "=== $stage: $*" | cut -c1-150
  "$@" | "$testrun" -stage "$stage" -into "$results/$number-$stage.json" "${flags[@]}"
}

unit() {
  # shellcheck disable=SC2046 # package paths have no spaces
  run 1 unit -- go test -json -timeout 30m $(unit_packages)
  # The modules with code of this project, but for those that only exist to compile Kubernetes.
  local module
  for module in hack/lab hack/lab/network hack/lab/provisioner hack/pictures hack/release; do
    if [ -n "$(find "$module" -name '*_test.go' -print -quit)" ]; then
      run 1 "${module//\//-}" -- go -C "$module" test -json ./...
    fi
  done
  # Only this one: the others would ask for the sources of every linter.
  run 1 hack-tools -- go -C hack/tools test -json ./testrun
}

# race runs what has goroutines, of the unit tests. Fewer random schedules than there: the detector makes each several times as slow, and
# looks for unsynchronized access, which a few show.
race() {
  local with=(env CGO_ENABLED=1 "HOWDAH_CRASH_SEEDS=${HOWDAH_CRASH_SEEDS:-100}")
  # shellcheck disable=SC2046 # package paths have no spaces
  run 1 race -- "${with[@]}" go test -race -json -timeout 30m $(unit_packages |
    grep -E '/(controllers|internal/(benchmark|ceph/client|child|dataserver|load|namespace|nfs4|plugin|publichttp|steward))(/|$)')
}

integration() {
  # A long line of coloured dots is cut by go test in the middle of a colour.
  export GINKGO_NO_COLOR=true
  KUBEBUILDER_ASSETS=$(hack/lab/lab assets) || exit 1
  HELM=$(hack/tools/build.sh helm) || exit 1
  KUSTOMIZE=$(hack/tools/build.sh kustomize) || exit 1
  # The real ganesha, of the image that users get.
  HOWDAH_GANESHA_ROOT=$(hack/lab/lab images --target tested --unpack) || exit 1
  HOWDAH_PROMETHEUS=$(hack/prometheus.sh) || exit 1
  export KUBEBUILDER_ASSETS HELM KUSTOMIZE HOWDAH_GANESHA_ROOT HOWDAH_REQUIRE_GANESHA=1 HOWDAH_PROMETHEUS HOWDAH_REQUIRE_PROMETHEUS=1
  # envtest gives an API server 20 s to start; a busy machine takes longer.
  export KUBEBUILDER_CONTROLPLANE_START_TIMEOUT=3m KUBEBUILDER_CONTROLPLANE_STOP_TIMEOUT=3m
  # Two packages at once: they mostly wait, for grace periods and for what must not happen (28 minutes took 14 of CPU). Attacks come last, because they
  # measure how long others wait.
  # shellcheck disable=SC2046
  run 2 integration -- go test -json -p 2 -timeout 60m $(integration_packages | longest_first)
}

# apart leaves out the specs of the end-to-end suite that have targets of their own, because they take long or take the whole cluster.
apart='!lost-node && !network-volumes && !install && !random-kills && !consistency && !rollout && !disaster && !move-kills && !host-network && !first-byte'

e2e() {
  local with=(env HOWDAH_E2E_OUTSIDE=yes hack/e2e.sh)
  [ "${HOWDAH_E2E_BACKEND:-volumes}" != ceph ] || with=(env HOWDAH_E2E_OUTSIDE=yes HOWDAH_E2E_CEPH=yes hack/e2e.sh)
  [ "${HOWDAH_E2E_CLUSTER:-}" != yes ] || with=(env)
  HELM=$(hack/tools/build.sh helm) || exit 1
  export HELM
  # The soak of five minutes has the same mishaps in the same order each time. Another seed: HOWDAH_E2E_SEED, or make soak.
  [ -n "${HOWDAH_E2E_LABELS:-}" ] || export HOWDAH_E2E_SEED=${HOWDAH_E2E_SEED:-26}
  # The suite has a bound of its own, which a busy machine widens. Nodes that lose their power take minutes to come back
  # with all their pods: make test-lost-node asks for them. So does make test-install for those that take the operator away.
  run 3 e2e -stream -- "${with[@]}" go test -json -count=1 -timeout 0 ./test/e2e/... -ginkgo.label-filter="${HOWDAH_E2E_LABELS:-$apart && !ceph && !capacity}"
}

ceph() {
  local with=(env HOWDAH_E2E_BACKEND=ceph HOWDAH_E2E_CEPH=yes hack/e2e.sh)
  [ "${HOWDAH_E2E_CLUSTER:-}" != yes ] || with=(env HOWDAH_E2E_BACKEND=ceph)
  # Packages one after the other: all have the same Ceph. HOWDAH_E2E_LABELS=ceph leaves the suites of e2e out; what needs more than this lab has, or
  # ten minutes more, has targets of its own (make test-rook, make test-ceph-failures).
  run 4 ceph -stream -- "${with[@]}" go test -json -p 1 -count=1 -timeout 0 ./test/ceph/... ./test/e2e/... -ginkgo.label-filter="${HOWDAH_E2E_LABELS:-$apart && !failures && !rook}"
}

processes() {
  run 5 processes -- hack/ceph-processes/run.sh
}

for stage in "$@"; do
  case $stage in
    unit | race | integration | e2e | ceph | processes) "$stage" ;;
    *) echo "unknown stage $stage" >&2; exit 2 ;;
  esac
done
echo
"$testrun" -total "$results"/*.json
