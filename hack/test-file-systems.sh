#!/usr/bin/env bash
# The tests of data servers on volumes, with volumes of other file systems than that of this machine's disk: the real ganesha, its exports, full volumes,
# moves between volumes, and every operation of NFS. It needs root, loop devices, and a kernel with the file systems; one that the kernel lacks is
# left out, and named. It needs no lab.
#
#   hack/test-file-systems.sh [xfs] [btrfs] [ext4]      (default: xfs btrfs)
#
# HOWDAH_GANESHA_SCENARIO is a regular expression for the scenarios of TestGanesha to run, HOWDAH_FILE_SYSTEM_PACKAGES the packages.
set -euo pipefail
cd "$(dirname "$0")/.."
source hack/environment.sh
[ $# -gt 0 ] || set -- xfs btrfs
packages=${HOWDAH_FILE_SYSTEM_PACKAGES:-./internal/dataserver/volumes ./internal/dataserver/mover ./internal/dataserver ./test/hostile}

# make_file_system TYPE FILE SIZE: a file system of a type (ext4, xfs, btrfs) in a sparse file.
make_file_system() {
  truncate -s "$3" "$2"
  case $1 in
    ext4) mkfs.ext4 -q -F "$2" ;;
    *) "mkfs.$1" -q -f "$2" ;;
  esac
}

# file_system_tools TYPES…: installs what makes them, if it is missing.
file_system_tools() {
  local type missing=()
  for type in "$@"; do
    command -v "mkfs.$type" >/dev/null && continue
    case $type in
      ext4) missing+=(e2fsprogs) ;;
      xfs) missing+=(xfsprogs) ;;
      btrfs) missing+=(btrfs-progs) ;;
      *) echo "file system $type is not ext4, xfs or btrfs" >&2; return 2 ;;
    esac
  done
  [ ${#missing[@]} -gt 0 ] || return 0
  apt-get update -q >&2
  DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "${missing[@]}" >&2
}

file_system_tools "$@"

if [ -z "${HOWDAH_GANESHA_ROOT:-}" ]; then HOWDAH_GANESHA_ROOT=$(hack/lab/lab images --target tested --unpack); fi
export HOWDAH_GANESHA_ROOT HOWDAH_REQUIRE_GANESHA=1
scratch=$(mktemp -d /var/tmp/howdah-file-systems-XXXXXX)
cleanup() {
  local status=$?
  trap - EXIT
  mountpoint -q "$scratch/disk" && umount "$scratch/disk" # The loop device goes with it.
  rm -rf --one-file-system "$scratch"
  exit "$status"
}
trap cleanup EXIT
trap 'exit 130' INT TERM HUP
mkdir "$scratch/disk"

failed=() left=() passed=()
for type in "$@"; do
  if ! grep -qw "$type" /proc/filesystems && ! modprobe "$type" 2>/dev/null; then
    left+=("$type")
    continue
  fi
  # For the tests that need no ganesha, which work in their temporary folders. It is sparse.
  make_file_system "$type" "$scratch/disk.img" 8G
  mount -o loop "$scratch/disk.img" "$scratch/disk"
  mkdir "$scratch/disk/tmp"
  echo "=== $type: go test $packages"
  # shellcheck disable=SC2086 # packages are words
  if GOTMPDIR=$scratch TMPDIR=$scratch/disk/tmp HOWDAH_FILE_SYSTEM=$type go test -vet=off -count=1 -timeout 90m -p 1 -skip 'Real.*Cluster|TestFuzz' $packages; then passed+=("$type"); else failed+=("$type"); fi
  umount "$scratch/disk"
  rm "$scratch/disk.img"
done
echo "test-file-systems: passed: ${passed[*]:-none}; failed: ${failed[*]:-none}; not in this kernel: ${left[*]:-none}"
[ ${#failed[@]} -eq 0 ] && [ ${#passed[@]} -gt 0 ]
