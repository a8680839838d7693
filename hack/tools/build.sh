#!/usr/bin/env bash
# Builds one pinned development tool and prints the path of its binary.
#
#   hack/tools/build.sh controller-gen
#
# Binaries are kept in a cache folder named after what they are built from
# (${HOWDAH_CACHE:-/var/cache/howdah}/tools/<hash>/), so a fresh clone finds
# them warm and a changed pin never meets an old binary.
set -euo pipefail
cd "$(dirname "$0")"
# shellcheck source=hack/progress.sh
source ../progress.sh

declare -A packages=(
  [controller-gen]=sigs.k8s.io/controller-tools/cmd/controller-gen
  [crd-ref-docs]=github.com/elastic/crd-ref-docs
  [ginkgo]=github.com/onsi/ginkgo/v2/ginkgo
  [gofumpt]=mvdan.cc/gofumpt
  [golangci-lint]=./golangci-lint
  [gotestsum]=gotest.tools/gotestsum
  [helm]=helm.sh/helm/v4/cmd/helm
  [helm-docs]=github.com/norwoodj/helm-docs/cmd/helm-docs
  [kustomize]=sigs.k8s.io/kustomize/kustomize/v5
  [testrun]=./testrun
)

name=${1:?which tool? one of: ${!packages[*]}}
package=${packages[$name]:?unknown tool; one of: ${!packages[*]}}

cache=${HOWDAH_CACHE:-/var/cache/howdah}/tools
if ! mkdir -p "$cache" 2>/dev/null || [ ! -w "$cache" ]; then
  cache=${XDG_CACHE_HOME:-$HOME/.cache}/howdah/tools
fi
sources=()
[[ $package != ./* ]] || sources=("$package"/*.go)
inputs=$({ cat go.mod go.sum "${sources[@]}"; go env GOVERSION GOOS GOARCH; } | sha256sum | cut -c1-16)
folder=$cache/$inputs
mkdir -p "$folder"

if [ ! -x "$folder/$name" ]; then
  # Two builds of one tool must not write one file: the second waits and finds it made.
  exec 9>"$folder/.$name.lock"
  flock 9
  if [ ! -x "$folder/$name" ]; then
    echo "building $name ($package): up to five minutes on two cores for the largest, if nothing of it was compiled before" >&2
    started=$SECONDS
    # CGO_ENABLED and -trimpath are fixed, or Go's build cache misses between callers.
    CGO_ENABLED=0 remind "building $name" nice -n 5 go build -trimpath -ldflags='-s -w' -o "$folder/.$name.new" "$package" >&2
    mv "$folder/.$name.new" "$folder/$name"
    echo "built $name in $((SECONDS - started)) s" >&2
  fi
fi

# bin/NAME in the checkout is for people; scripts use the path that is printed.
mkdir -p ../../bin
ln -sfn "$folder/$name" "../../bin/$name"
echo "$folder/$name"
