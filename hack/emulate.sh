#!/usr/bin/env bash
# Runs a command while this machine's kernel starts programs for another processor by Debian's QEMU, in containers and chroots, too.
# It sets up binfmt_misc on the machine and restores it at the end. A setup that is there already is left alone.
#
#   hack/emulate.sh arm64 COMMAND…
#
# Programs are some ten times slower so. It needs root.
set -euo pipefail
case ${1:?arm64, and a command} in
  # How an ELF file for AArch64 begins, of 64 bits and little-endian, and which bits of it count.
  arm64) machine=aarch64
    magic='\x7f\x45\x4c\x46\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00'
    mask='\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff' ;;
  *) echo "emulate: no programs for $1 are known here; want arm64" >&2; exit 2 ;;
esac
shift
[ $# -gt 0 ] || { echo "emulate: which command?" >&2; exit 2; }

if [ "$(uname -m)" != "$machine" ]; then
  # mmdebstrap asks arch-test whether programs for the other processor run.
  if ! command -v "qemu-$machine-static" >/dev/null || ! command -v arch-test >/dev/null; then
    echo "emulate: installing Debian's QEMU for single programs (40 MB)" >&2
    apt-get -o DPkg::Lock::Timeout=300 update -q >&2
    DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 install -q --yes --no-install-recommends qemu-user-static arch-test >&2
  fi
  formats=/proc/sys/fs/binfmt_misc
  mine=$formats/howdah-$machine
  # Of several at once the last one that ends takes it away: all have the first lock meanwhile, who sets up or takes away the second.
  users=${TMPDIR:-/tmp}/howdah-emulate-$machine
  exec 8>>"$users" 9>>"$users.setup"
  finish() {
    local status=$?
    trap - EXIT INT TERM HUP
    flock 9
    if flock -n -x 8; then
      [ ! -e "$mine" ] || echo -1 >"$mine"
      [ ! -s "$users" ] || umount "$formats" || true
      : >"$users"
    fi
    exit "$status"
  }
  trap finish EXIT
  trap 'exit 130' INT TERM HUP
  flock 9
  flock -s 8
  if [ ! -e "$formats/register" ]; then
    mount -t binfmt_misc binfmt_misc "$formats"
    echo "mounted here" >&8
  fi
  if ! grep -ls "^magic ${magic//\\x/}" "$formats"/*64* | xargs -r grep -q '^flags:.*F'; then
    # F: the kernel keeps the emulator open, so that it is found where its file is not. C: with the rights of the program that it runs.
    echo ":howdah-$machine:M::$magic:$mask:$(command -v "qemu-$machine-static"):FC" >"$formats/register"
  fi
  flock -u 9
fi
"$@" 8>&- 9>&-
