#!/usr/bin/env bash
# Prints a folder with Debian's redis-server. It is unpacked and not installed: the package would start a server on this machine.
set -euo pipefail
cache=${HOWDAH_CACHE:-/var/cache/howdah}/redis
mkdir -p "$cache"
exec 9>"$cache/.lock"
flock 9
if [ ! -x "$cache/bin/redis-server" ]; then
  # The program is in the package of tools, under the name of another of its duties.
  packages=(redis-tools libjemalloc2 liblzf1)
  echo "fetching Debian's redis (1.5 MB)" >&2
  scratch=$(mktemp -d "$cache/.new-XXXXXX")
  trap 'rm -rf "$scratch"' EXIT
  # Without root apt drops its rights to the user _apt, who can't write here: it says so and goes on.
  if ! (cd "$scratch" && apt-get download -q "${packages[@]}" >&2); then
    apt-get update -q >&2
    (cd "$scratch" && apt-get download -q "${packages[@]}" >&2)
  fi
  for package in "$scratch"/*.deb; do dpkg-deb --extract "$package" "$scratch/tree"; done
  ln -s redis-check-rdb "$scratch/tree/usr/bin/redis-server"
  rm -rf "${cache:?}/usr" "${cache:?}/bin"
  mv "$scratch/tree/usr" "$cache/usr"
  mkdir "$cache/bin"
  printf '#!/bin/sh\nLD_LIBRARY_PATH=%s exec %s/usr/bin/redis-server "$@"\n' \
    "$(dirname "$(find "$cache/usr/lib" -name 'libjemalloc.so*' -print -quit)")" "$cache" >"$cache/bin/redis-server"
  chmod 0755 "$cache/bin/redis-server"
fi
echo "$cache/bin"
