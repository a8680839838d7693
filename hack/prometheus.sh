#!/usr/bin/env bash
# Prints a folder with Debian's prometheus and promtool. They are unpacked and not installed: the package would start a
# server on this machine. HOWDAH_PROMETHEUS names a folder that has them already.
set -euo pipefail
if [ -n "${HOWDAH_PROMETHEUS:-}" ]; then
  echo "$HOWDAH_PROMETHEUS"
  exit 0
fi
cache=${HOWDAH_CACHE:-/var/cache/howdah}/prometheus
mkdir -p "$cache"
exec 9>"$cache/.lock"
flock 9
if [ ! -x "$cache/usr/bin/promtool" ]; then
  echo "fetching Debian's prometheus (19 MB)" >&2
  scratch=$(mktemp -d "$cache/.new-XXXXXX")
  trap 'rm -rf "$scratch"' EXIT
  # Without root apt drops its rights to the user _apt, who can't write here: it says so and goes on.
  if ! (cd "$scratch" && apt-get download -q prometheus >&2); then
    apt-get update -q >&2
    (cd "$scratch" && apt-get download -q prometheus >&2)
  fi
  dpkg-deb --extract "$scratch"/prometheus_*.deb "$scratch/tree"
  rm -rf "${cache:?}/usr"
  mv "$scratch/tree/usr" "$cache/usr"
fi
echo "$cache/usr/bin"
