#!/bin/sh
# Builds the library against the nfs-ganesha that internal/ganesha/build made in the folder GANESHA, and puts it before
# that ganesha, which is below OUT already.
#   build.sh GANESHA OUT
set -eu
ganesha=$1 out=$2
cd "$(dirname "$0")"
flags="-std=gnu11 -O2 -D_FORTIFY_SOURCE=2 -fstack-protector-strong -Wall -Wextra -Werror"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# shellcheck disable=SC2086 # several flags
gcc $flags selftest.c -o "$work/selftest"
"$work/selftest"

: > "$work/config.h"
gcc -std=gnu11 -fsyntax-only -D_GNU_SOURCE -Wall -Wextra -Werror -I "$work" -isystem "$ganesha/source/src/include" \
	-isystem /usr/include/ntirpc layout.c
echo "layout.h agrees with the headers of the nfs-ganesha that was built"

mkdir -p "$out/usr/lib/howdah"
# shellcheck disable=SC2086
gcc $flags -shared -fPIC -fvisibility=hidden -Wl,-z,relro,-z,now -s handles.c owners.c clients.c grace.c leases.c records.c listen.c cephfs.c mounts.c -o "$out/usr/lib/howdah/libhowdah-handles.so"
patchelf --add-needed /usr/lib/howdah/libhowdah-handles.so "$out/usr/bin/ganesha.nfsd"
# The first one needed is the first one searched.
[ "$(patchelf --print-needed "$out/usr/bin/ganesha.nfsd" | head -n 1)" = /usr/lib/howdah/libhowdah-handles.so ]
