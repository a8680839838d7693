#!/bin/sh
# What `helm test` runs in a pod: writes a file to the share at $SHARE, reads it and removes it. The directories that it makes are left to
# remove.sh beside it, in another container: what is distributed is a mount point to who entered it, and can't be removed there.
# $STATE is a folder of both, and $POD_UID keeps two pods apart.
set -eu

top=howdah-test-$POD_UID
text="written by helm test of pod $POD_UID"
directory=

refuse() {
  echo "helm test: $*" >&2
  exit 1
}

# Tells remove.sh the deepest directory; nothing if there is none.
leave() {
  [ -z "$directory" ] || [ ! -e "$SHARE/$directory/file" ] || rm -f "$SHARE/$directory/file"
  printf '%s' "$directory" >"$STATE/deepest.new"
  mv "$STATE/deepest.new" "$STATE/deepest"
}

trap leave EXIT
trap 'exit 1' HUP INT TERM

mkdir "$SHARE/$top" || refuse "user $(id -u) can't make a directory in the share: its spec.uid, gid and mode decide, and the values test.user and test.group"
directory=$top

# Above its spec.depth, which is 8 at the most, a share has directories and no files.
levels=1
until problem=$({ printf '%s\n' "$text" | dd of="$SHARE/$directory/file" conv=fsync status=none; } 2>&1); do
  [ "$levels" -lt 8 ] || refuse "can't write a file, $levels directories deep: $problem"
  mkdir "$SHARE/$directory/below"
  directory=$directory/below
  levels=$((levels + 1))
done

file=$SHARE/$directory/file
[ "$(cat "$file")" = "$text" ] || refuse "what was read is not what was written: $(cat "$file")"
rm "$file"
[ ! -e "$file" ] || refuse "a file that was removed is still there"
echo "helm test: a file was written, read and removed, $levels directories deep in the share"
