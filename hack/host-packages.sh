#!/usr/bin/env bash
# Installs the Debian packages that building, the lab and the tests need, if they are missing.
# The lab installs what its own root file systems need by itself (hack/lab).
set -euo pipefail

packages=(
  ca-certificates curl git make        # building
  g++ libc6-dev                        # the race detector, and tests of our C++
  buildah mmdebstrap                   # images, and the nodes' root file system
  iproute2 iptables kmod procps psmisc # networks of the lab
  e2fsprogs util-linux                 # disks of the nodes
  rsync                                # tests of moves between volumes: data servers copy with it
  xz-utils zstd
  shellcheck                           # make verify
)

missing=()
for package in "${packages[@]}"; do
  dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null | grep -qx installed || missing+=("$package")
done
[ ${#missing[@]} -gt 0 ] || exit 0
if [ "$(id -u)" -ne 0 ]; then
  echo "host-packages: as root, install: ${missing[*]}" >&2
  exit 1
fi
echo "host-packages: installing ${missing[*]}" >&2
export DEBIAN_FRONTEND=noninteractive
apt-get update -q >&2
apt-get install -q -y --no-install-recommends "${missing[@]}" >&2
