#!/usr/bin/env bash
# Kubernetes' own end-to-end tests of storage, against a StorageClass of Howdah on a lab of its own (hack/storagesuite). Needs root.
# HOWDAH_STORAGE_FOCUS and HOWDAH_STORAGE_SKIP are Ginkgo's, HOWDAH_STORAGE_LAB names the lab, HOWDAH_E2E_KEEP=yes leaves it up, also
# for the next run. What each spec did is in .test-results/storage.
set -euo pipefail
cd "$(dirname "$0")/.."
source hack/environment.sh
source hack/progress.sh
name=${HOWDAH_STORAGE_LAB:-howdah-storage}
# Disruptive ones stop kubelets by ssh, and slow ones are long; those with a feature in their name need what a lab hasn't (CSI snapshots,
# Windows), and the one of any volume data source an image of a registry. The one of mount options looks for all of them in a pod, where
# crun, the lab's runtime, drops nosuid and nodev (docs/operate/security.md).
skip=${HOWDAH_STORAGE_SKIP:-'\[Disruptive\]|\[Slow\]|\[Feature:|any volume data source|with mount options'}
results=${HOWDAH_TEST_RESULTS:-$PWD/.test-results}/storage
cache=$HOWDAH_CACHE/storagesuite

finish() {
  local status=$?
  trap - EXIT INT TERM HUP
  [ "${HOWDAH_E2E_KEEP:-}" = yes ] || hack/lab/lab down --name "$name" >&2 || true
  exit "$status"
}
trap finish EXIT
trap 'exit 130' INT TERM HUP

mkdir -p "$cache/image" "$results"
remind "building the suite, some 5 minutes on two cores the first time" go -C hack/storagesuite test -vet=off -c -ldflags='-s -w' -o "$cache/suite.test" .
go -C hack/storagesuite build -ldflags='-s -w' -o "$cache/image/agnhost" ./agnhost
cp hack/storagesuite/Dockerfile "$cache/image"
# The lab asks Git what an image is made of.
git init --quiet "$cache/image"
# No image comes from a registry: the suite gets one that does not exist, and the nodes get its images before.
printf 'promoterE2eRegistry: howdah.test/e2e\n' >"$cache/repositories.yaml"
export KUBE_TEST_REPO_LIST=$cache/repositories.yaml
load=()
while read -r target tag; do
  load+=(--archive "$(hack/lab/lab images --file "$cache/image/Dockerfile" --context "$cache/image" --target "$target" --tag "$tag")")
done < <("$cache/suite.test" -images)

hack/lab/lab up --name "$name" --nodes 3
eval "$(hack/lab/lab env --name "$name")"
hack/install.sh --lab "$name" >/dev/null
hack/lab/lab load --name "$name" "${load[@]}"
kubectl apply -f hack/storagesuite/objects.yaml
kubectl -n storage-suite wait --for=condition=Ready fileserver/suite --timeout=15m

"$cache/suite.test" -test.timeout=0 -ginkgo.timeout=3h -ginkgo.no-color -ginkgo.v -ginkgo.focus="${HOWDAH_STORAGE_FOCUS:-External.Storage}" -ginkgo.skip="$skip" \
  -ginkgo.junit-report="$results/junit.xml" -storage.testdriver="$PWD/hack/storagesuite/driver.yaml" -provider=skeleton >"$results/log" 2>&1 &
child=$!
trap 'kill -TERM "$child" 2>/dev/null; wait "$child" || true; exit 130' INT TERM HUP
while sleep 10; kill -0 "$child" 2>/dev/null; do
  echo "... $(grep -c '^• \[' "$results/log" || true) specs passed or failed, after $SECONDS s" >&2
done &
status=0
wait "$child" || status=$?
grep -E '^(• \[|\[(FAIL|PANICKED|TIMEDOUT)\]|Ran |PASS|FAIL!|SUCCESS!|.*specs? in)|Passed \|' "$results/log" | tail -40
[ "$status" -eq 0 ]
