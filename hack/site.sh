#!/usr/bin/env bash
# Makes the documentation a static site in site/, by MkDocs with the theme Material, and checks every link of it. With "look",
# headless Chromium (Debian's) takes pictures of some pages, wide and narrow, light and dark, into .test-results/site.
#
#   hack/site.sh
#   hack/site.sh look
set -euo pipefail
cd "$(dirname "$0")/.."
source hack/environment.sh

# install_missing PACKAGE...: installs those of Debian's packages that are missing; only this script needs them.
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

# What is pinned is kept in a folder of its own in the cache.
tools=$HOWDAH_CACHE/tools/mkdocs-$(sha256sum hack/site/requirements.txt | cut -c1-16)
if [ ! -e "$tools/complete" ]; then
  install_missing python3 python3-venv
  echo "site: installing MkDocs and Material" >&2
  rm -rf "$tools"
  python3 -m venv "$tools"
  "$tools/bin/pip" install --quiet --disable-pip-version-check --requirement hack/site/requirements.txt >&2
  touch "$tools/complete"
fi

staged=$(mktemp -d)
trap 'rm -rf "$staged"' EXIT
echo "site: staging the pages" >&2
go run ./hack/site stage "$staged"
mkdir -p "$staged/content/assets"
cp hack/site/assets/* "$staged/content/assets/"
cp --parents docs/icon.svg "$staged/content"
echo "site: MkDocs" >&2
rm -rf site
# The theme announces its next version at each build; the variable turns that off.
NO_MKDOCS_2_WARNING=1 "$tools/bin/mkdocs" build --quiet --strict --config-file "$staged/mkdocs.yml" --site-dir "$PWD/site"
go run ./hack/site check site
echo "site: open site/index.html" >&2

[ "${1:-}" = look ] || exit 0
install_missing chromium fonts-dejavu-core
into=.test-results/site
mkdir -p "$into"
for page in index docs/index docs/start/cluster docs/start/concepts docs/kinds/fileshare docs/operate/sizing docs/reference/api; do
  for look in 1300 400 1300-dark 400-dark; do
    echo "site: $page, $look" >&2
    options=()
    [[ $look != *-dark ]] || options=(--blink-settings=preferredColorScheme=0)
    chromium --headless --no-sandbox --disable-gpu --hide-scrollbars "${options[@]}" --window-size="${look%-dark},1800" \
      --screenshot="$into/${page//\//-}-$look.png" "file://$PWD/site/$page.html" 2>/dev/null
  done
done
echo "site: pictures are in $into" >&2
