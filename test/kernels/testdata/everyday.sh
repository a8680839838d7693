# shellcheck shell=bash
# Sourced before each of the everyday commands. $W is where they work, $S a tree to copy, $out what they make.
export LC_ALL=C TZ=UTC GIT_CONFIG_GLOBAL=/tmp/gitconfig

# make_source FOLDER: a tree with directories, files, a link and times of long ago. It has no files at
# its top, so that it may become directories of a share.
make_source() {
  mkdir -p "$1/one/sub/deep" "$1/two" "$1/empty"
  for i in 1 2 3; do head -c $((i * 30000)) /usr/bin/git > "$1/one/file$i"; done
  echo '#!/bin/sh' > "$1/one/run"; chmod 755 "$1/one/run"
  echo secret > "$1/two/secret"; chmod 600 "$1/two/secret"; chown 1000:1000 "$1/two/secret"
  echo deep > "$1/one/sub/deep/file"
  echo 'a name' > "$1/two/with spaces and ünïcode"
  ln -s ../one/file1 "$1/two/link"
  chmod 750 "$1/two"; chown 1000:1000 "$1/two"; chmod 2775 "$1/one/sub"
  find "$1" -depth -exec touch -h -d '2001-02-03 04:05:06' {} +
}

# listing FOLDER [times]: what is there, with the sums of files. Every directory is entered first: what is
# not entered shows nothing of itself.
listing() {
  [ -e "$1" ] || { echo gone; return; }
  ls -AR "$1" > /dev/null
  (
    cd "$1" || exit
    # Times of links can't be set over NFS.
    find . -name .git -prune -o -type l -printf "%P|%y|%U:%G|%l\n" -o -printf "%P|%y|%m|%U:%G${2:+|%T+}\n" | sort
    find . -name .git -prune -o -type f -print0 | sort -z | xargs -0r cat | cksum
  )
}
