#!/usr/bin/env bash
# Runs a command in a clone of HEAD on a fresh Debian: a root file system with nothing but
# git, make, certificates and this host's Go, every cache empty, and processes of its own, which all end
# with the command. It proves that the scripts install what they need. Needs root.
#
#   hack/fresh.sh make test
#
# HOWDAH_FRESH_SUITE is the Debian (bookworm), HOWDAH_FRESH_DIR where it is put (/var/tmp), and
# HOWDAH_FRESH_CACHE a folder to use as HOWDAH_CACHE, to go on from an earlier run.
set -euo pipefail
cd "$(dirname "$0")/.."
[ $# -gt 0 ] || { echo "usage: hack/fresh.sh COMMAND..." >&2; exit 2; }
hack/host-packages.sh

root=$(mktemp -d "${HOWDAH_FRESH_DIR:-/var/tmp}/howdah-fresh.XXXXXX")
# All mounts are in the command's own mount namespace: here the folder is just files.
trap 'rm -rf "$root"' EXIT
trap 'exit 130' INT TERM HUP

suite=${HOWDAH_FRESH_SUITE:-bookworm}
echo "fresh: making a Debian $suite in $root" >&2
mmdebstrap --quiet --variant=minbase --include=ca-certificates,git,make "$suite" "$root" >&2
# What makes the network work here: the host's resolver, certificates, proxies and mirrors.
cp /etc/resolv.conf /etc/hosts "$root/etc/"
cp /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/"
cp -r /etc/apt/apt.conf.d "$root/etc/apt/"
git clone --quiet . "$root/src"
goroot=$(go env GOROOT)
mkdir -p "$root/usr/local/go" "$root/cache" "$root/old"
settings=()
for name in GOPROXY GOSUMDB GONOSUMDB GOPRIVATE GONOPROXY; do settings+=("$name=$(go env "$name")"); done
for name in http_proxy https_proxy no_proxy HTTP_PROXY HTTPS_PROXY NO_PROXY; do
  [ -z "${!name:-}" ] || settings+=("$name=${!name}")
done

# shellcheck disable=SC2016 # the inner shell expands it
unshare --mount --pid --fork --kill-child --propagation private bash -c '
  set -euo pipefail
  root=$1 goroot=$2 cache=$3; shift 3
  mount --bind "$root" "$root"
  cd "$root"
  mount --rbind /dev dev
  mount -t proc proc proc
  mount -t sysfs sysfs sys
  mount -t tmpfs tmpfs run
  mount --bind -o ro "$goroot" usr/local/go
  [ -z "$cache" ] || mount --bind "$cache" cache
  pivot_root . old
  umount -l /old
  cd /src
  exec env -i "$@"
' fresh "$root" "$goroot" "${HOWDAH_FRESH_CACHE:-}" "${settings[@]}" HOME=/root HOWDAH_CACHE=/cache \
  PATH=/usr/local/go/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "$@" &
child=$!
trap 'kill "$child" 2>/dev/null; wait "$child" || true; exit 130' INT TERM HUP
wait "$child"
