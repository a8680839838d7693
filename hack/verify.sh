#!/usr/bin/env bash
# Fails when something generated is not what its source says, when a linter
# complains, or when the chart does not hold. Quick checks come first.
set -euo pipefail
cd "$(dirname "$0")/.."
source hack/environment.sh
source hack/progress.sh

step() { echo "=== verify: $* (at $SECONDS s)"; }

step "shell scripts"
mapfile -t scripts < <(git ls-files '*.sh' .ci/run hack/lab/lab)
for script in "${scripts[@]}"; do bash -n "$script"; done
shellcheck -x "${scripts[@]}"

step "names that must not be in here"
# Where packages come from, and where a checkout lies, is the machine's business.
if git grep -nE '(^|[^a-z0-9.])(/work/(main|shared|\.library)|proxy\.golang\.org|deb\.debian\.org|registry\.npmjs\.org|pypi\.org)' -- . ':!hack/verify.sh' ':!**/go.sum'; then
  echo "verify: name neither registries nor folders of one machine" >&2
  exit 1
fi

step "generated files"
before=$(git status --porcelain; git diff | sha256sum)
remind "generating" hack/generate.sh
after=$(git status --porcelain; git diff | sha256sum)
if [ "$before" != "$after" ]; then
  git --no-pager diff
  git status --short
  echo "verify: generated files were not up to date; they are now: look at the difference and commit it" >&2
  exit 1
fi
if [ "${CI:-}" = true ] && [ -n "$(git status --porcelain)" ]; then
  git status --short
  echo "verify: the work tree has files that are not committed" >&2
  exit 1
fi

step "modules"
go mod verify >/dev/null
go mod tidy -diff

step "chart"
HELM=$(hack/tools/build.sh helm)
KUSTOMIZE=$(hack/tools/build.sh kustomize)
export HELM KUSTOMIZE
"$HELM" lint --strict --quiet charts/howdah
go test ./test/chart

step "lint"
remind "go vet" go vet ./...
golangci_lint=$(hack/tools/build.sh golangci-lint)
remind "golangci-lint of the API" "$golangci_lint" run -c .golangci-api.yml ./api/v1alpha1/... ./api/internalapi/v1alpha1/...
remind "golangci-lint of everything" "$golangci_lint" run ./...
for module in hack/kind/rehearsal hack/lab hack/lab/network hack/lab/provisioner hack/pictures hack/release hack/tools/testrun; do
  (cd "$module" && "$golangci_lint" run -c "$OLDPWD/.golangci.yml" ./...)
done

step "known vulnerabilities"
vulnerable=0
hack/vulnerabilities.sh || vulnerable=$?
case $vulnerable in
  0) ;;
  # A machine without a way to the database can say everything else all the same.
  4) unknown=", but known vulnerabilities were not looked for: no database" ;;
  *)
    echo "verify: update the modules that govulncheck names" >&2
    exit 1
    ;;
esac
echo "=== verify: good, in $SECONDS s${unknown:-}"
