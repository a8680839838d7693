#!/usr/bin/env bash
# Makes the documentation a static site in site/, by Debian's Hugo, and checks every link of it. With "look", headless
# Chromium (Debian's) takes a picture of some pages, into .test-results/site.
#
#   hack/site.sh
#   hack/site.sh look
set -euo pipefail
cd "$(dirname "$0")/.."
source hack/environment.sh

# install PACKAGE...: those of Debian's that are missing; nothing but this script wants them.
install_missing() {
  local package missing=()
  for package in "$@"; do
    dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null | grep -qx installed || missing+=("$package")
  done
  [ ${#missing[@]} -gt 0 ] || return 0
  if [ "$(id -u)" -ne 0 ]; then
    echo "site: as root, install: ${missing[*]}" >&2
    exit 1
  fi
  echo "site: installing ${missing[*]}" >&2
  apt-get update -q >&2
  DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "${missing[@]}" >&2
}

install_missing hugo
staged=$(mktemp -d)
trap 'rm -rf "$staged"' EXIT
echo "site: staging the pages" >&2
go run ./hack/site stage "$staged"
cp -r hack/site/config.toml hack/site/layouts "$staged"
cp hack/site/static/* "$staged/static/"
echo "site: hugo" >&2
rm -rf site
hugo --quiet --source "$staged" --destination "$PWD/site"
go run ./hack/site check site
echo "site: open site/index.html" >&2

[ "${1:-}" = look ] || exit 0
install_missing chromium fonts-dejavu-core
into=.test-results/site
mkdir -p "$into"
for page in index docs/index docs/start/quickstart docs/start/concepts docs/operate/sizing docs/start/comparison docs/reference/api; do
  echo "site: a picture of $page" >&2
  chromium --headless --no-sandbox --disable-gpu --hide-scrollbars --window-size=1280,1600 \
    --screenshot="$into/${page//\//-}.png" "file://$PWD/site/$page.html" 2>/dev/null
done
echo "site: pictures are in $into" >&2
