#!/usr/bin/env bash
# Makes a release of the commit that is checked out, in dist/VERSION: programs, images, chart, manifests, a list of what is in
# them (SPDX), provenance (in-toto, SLSA) and SHA256SUMS. docs/contribute/releases.md says what each is. Two runs on one commit are equal.
#
#   hack/release.sh                 # everything
#   hack/release.sh twice           # programs, chart and manifests twice, in clones at different places: are they equal?
#
# VERSION is the chart's, HOWDAH_RELEASE_DIR another folder than dist/VERSION, HOWDAH_RELEASE_IMAGES=no leaves the images out,
# HOWDAH_RELEASE_PLATFORMS="linux/amd64" takes only some of the systems and processors, for a trial. Images for another processor than this machine's
# are made under Debian's QEMU (hack/emulate.sh), which takes root, and a quarter of an hour the first time.
# HOWDAH_RELEASE_KEY is an Ed25519 key (PEM) to sign the provenance with, HOWDAH_RELEASE_DIRTY=yes allows uncommitted changes.
set -euo pipefail
cd "$(dirname "$0")/.."
source hack/environment.sh
source hack/progress.sh

step() { echo "=== release: $* (at $SECONDS s)" >&2; }

version=$(sed -n 's/^version: //p' charts/howdah/Chart.yaml)
app=$(sed -n 's/^appVersion: //p' charts/howdah/Chart.yaml)
if [ "$version" != "$app" ]; then
  echo "release: Chart.yaml has version $version and appVersion $app; make them one" >&2
  exit 1
fi

# twice makes what needs no image in two clones of HEAD, and compares.
twice() {
  local work one two commit
  # What is checked out may change meanwhile.
  commit=$(git rev-parse HEAD)
  work=$(mktemp -d "${TMPDIR:-/tmp}/howdah-release.XXXXXX")
  # shellcheck disable=SC2064 # now, while it is known
  trap "rm -rf '$work'" EXIT
  one=$work/first two=$work/a/second/place
  for clone in "$one" "$two"; do
    step "a build in $clone"
    git clone --quiet --no-checkout . "$clone"
    git -C "$clone" checkout --quiet --detach "$commit"
    # A cache of Go's of its own for the second, if asked for: then nothing of it was compiled by the first.
    if [ "$clone" = "$two" ] && [ "${HOWDAH_RELEASE_FRESH:-}" = yes ]; then export GOCACHE=$work/cache; fi
    HOWDAH_RELEASE_IMAGES=no HOWDAH_RELEASE_DIR="$clone/out" "$clone/hack/release.sh"
  done
  step "compare"
  if ! diff "$one/out/SHA256SUMS" "$two/out/SHA256SUMS"; then
    echo "release: two builds differ, in the files above" >&2
    exit 1
  fi
  cat "$two/out/SHA256SUMS"
  echo "release: two builds of ${commit:0:7} are equal, $(wc -l <"$two/out/SHA256SUMS") files"
}
if [ "${1:-}" = twice ]; then
  twice
  exit
fi

if [ -n "$(git status --porcelain)" ] && [ "${HOWDAH_RELEASE_DIRTY:-}" != yes ]; then
  echo "release: the work tree has changes that are not committed: commit them, or HOWDAH_RELEASE_DIRTY=yes for a trial" >&2
  exit 1
fi
commit=$(git rev-parse HEAD)
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH
into=${HOWDAH_RELEASE_DIR:-$PWD/dist/$version}
rm -rf "$into"
mkdir -p "$into"
into=$(cd "$into" && pwd)
work=$(mktemp -d "${TMPDIR:-/tmp}/howdah-release.XXXXXX")
trap 'rm -rf "$work"' EXIT
go -C hack/release build -o "$work/release" .

# pack ARCHIVE FOLDER...: the folders of $work, without times, places and users in the archive.
pack() {
  local archive=$1
  shift
  tar --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner --mode=u+rw,go+r,go-w --format=gnu -C "$work" -cf - "$@" | gzip -n -9 >"$into/$archive"
}

# program COMMAND OS ARCH [FILE...]: flags as in the Dockerfile, so that the image has the very same program.
program() {
  local command=$1 os=$2 arch=$3 name=$1-$version-$2-$3
  shift 3
  step "$command for $os/$arch"
  mkdir -p "$work/$name"
  GOOS=$os GOARCH=$arch CGO_ENABLED=0 remind "compiling $command for $os/$arch" go build -trimpath -buildvcs=false -ldflags "-s -w -X main.version=$version" -o "$work/$name/$command" "./cmd/$command"
  cp LICENSE "$@" "$work/$name"
  pack "$name.tar.gz" "$name"
}
processors=()
for platform in ${HOWDAH_RELEASE_PLATFORMS:-linux/amd64 linux/arm64 darwin/amd64 darwin/arm64}; do
  os=${platform%/*} arch=${platform#*/}
  program kubectl-howdah "$os" "$arch" cmd/kubectl-howdah/kubectl_complete-howdah
  [ "$os" = linux ] || continue
  program howdah linux "$arch"
  processors+=("$arch")
done

step "chart and manifests"
helm=$(hack/tools/build.sh helm)
kustomize=$(hack/tools/build.sh kustomize)
"$helm" package charts/howdah --destination "$work/chart" >/dev/null
tar -xzf "$work/chart/howdah-$version.tgz" -C "$work/chart"
tar --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner --mode=u+rw,go+r,go-w --format=gnu -C "$work/chart" -cf - howdah | gzip -n -9 >"$into/howdah-$version.tgz"
"$kustomize" build config/default >"$into/howdah-$version.yaml"
"$kustomize" build config/crd >"$into/howdah-$version-crds.yaml"

programs=("$work"/howdah-"$version"-linux-*/howdah "$work"/kubectl-howdah-"$version"-*/kubectl-howdah)
step "what is in the programs"
"$work/release" sbom --name howdah --version "$version" --epoch "$SOURCE_DATE_EPOCH" "${programs[@]}" >"$into/howdah-$version.spdx.json"

# image TARGET: the Dockerfile's, for each processor, built as the lab builds it.
image() {
  local target=$1 name=howdah/$1:$version arch archive parts=() emulated list packages
  for arch in "${processors[@]}"; do
    step "image $name for $arch"
    emulated=()
    [ "$arch" = "$(go env GOHOSTARCH)" ] || emulated=(hack/emulate.sh "$arch")
    archive=$("${emulated[@]}" hack/lab/lab images --arch "$arch" --target "$target" --tag "$name" --build-arg "VERSION=$version" | tail -1)
    parts+=(--archive "$archive" --same "$work/howdah-$version-linux-$arch/howdah")
    list=image-$target-$version-$arch packages=()
    [ "$target" != server ] || packages=(--archive "$archive")
    "$work/release" sbom --name "image-$target" --version "$version" --epoch "$SOURCE_DATE_EPOCH" "${packages[@]}" \
      "$work/howdah-$version-linux-$arch/howdah" >"$into/$list.spdx.json"
  done
  "$work/release" image --name "$name" --epoch "$SOURCE_DATE_EPOCH" --into "$work/oci-$target" --binary /usr/local/bin/howdah "${parts[@]}"
  # An archive of an image has its files at the top, and is not compressed: its layers are.
  tar --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner --mode=u+rw,go+r,go-w --format=gnu -C "$work/oci-$target" -cf "$into/image-$target-$version.tar" .
}
if [ "${HOWDAH_RELEASE_IMAGES:-yes}" = yes ]; then
  image howdah
  image server
fi

if [ "$(git rev-parse HEAD)" != "$commit" ]; then
  echo "release: the work tree is at another commit than in the beginning: leave it alone meanwhile, or release from a clone" >&2
  exit 1
fi
step "provenance and checksums"
mapfile -t files < <(find "$into" -maxdepth 1 -type f | sort)
"$work/release" provenance --version "$version" --commit "$commit" --epoch "$SOURCE_DATE_EPOCH" ${HOWDAH_RELEASE_KEY:+--key "$HOWDAH_RELEASE_KEY"} "${files[@]}" \
  >"$into/howdah-$version.intoto.json"
(cd "$into" && find . -maxdepth 1 -type f -printf '%P\n' | LC_ALL=C sort | xargs sha256sum) >"$work/sums"
mv "$work/sums" "$into/SHA256SUMS"
step "done: $into"
ls -l "$into" >&2
