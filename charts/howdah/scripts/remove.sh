#!/bin/sh
# The second container of `helm test`: removes the directories that share.sh made in the share, once it says which, and enters none of them.
set -eu

refuse() {
  echo "helm test: $*" >&2
  exit 1
}

waited=0
until [ -e "$STATE/deepest" ]; do
  [ "$waited" -lt 200 ] || refuse "the container that writes has sent nothing for $waited s; howdah-test-$POD_UID may be left in the share"
  sleep 1
  waited=$((waited + 1))
done
directory=$(cat "$STATE/deepest")
while [ -n "$directory" ]; do
  rmdir "$SHARE/$directory" || refuse "can't remove the directory $directory of the share"
  case $directory in
    */*) directory=${directory%/*} ;;
    *) directory= ;;
  esac
done
[ ! -e "$SHARE/howdah-test-$POD_UID" ] || refuse "a directory that was removed is still there"
