# shellcheck shell=bash
# For scripts that try volumes of several file systems: source it.

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
