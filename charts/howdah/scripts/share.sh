#!/bin/sh
# What `helm test` runs in a pod: writes a file to the share at $SHARE, reads it and removes it, with all that it made.
# $POD_UID keeps two of them apart.
set -eu

top=$SHARE/howdah-test-$POD_UID
text="written by helm test of pod $POD_UID"
directory=$top

refuse() {
  echo "helm test: $*" >&2
  exit 1
}

clean() {
  [ ! -e "$directory/file" ] || rm -f "$directory/file"
  while [ "$directory" != "$SHARE" ]; do
    [ ! -d "$directory" ] || rmdir "$directory"
    directory=${directory%/*}
  done
}

trap clean EXIT
trap 'exit 1' HUP INT TERM

mkdir "$directory" || refuse "user $(id -u) can't make a directory in the share: its spec.uid, gid and mode decide, and the values test.user and test.group"

# Above its spec.depth, which is 8 at the most, a share has directories and no files.
levels=1
until problem=$({ printf '%s\n' "$text" | dd of="$directory/file" conv=fsync status=none; } 2>&1); do
  [ "$levels" -lt 8 ] || refuse "can't write a file, $levels directories deep: $problem"
  directory=$directory/below
  mkdir "$directory"
  levels=$((levels + 1))
done

[ "$(cat "$directory/file")" = "$text" ] || refuse "what was read is not what was written: $(cat "$directory/file")"
file=$directory/file
rm "$file"
[ ! -e "$file" ] || refuse "a file that was removed is still there"
clean
[ ! -e "$top" ] || refuse "a directory that was removed is still there"
echo "helm test: a file was written, read and removed, $levels directories deep in the share"
