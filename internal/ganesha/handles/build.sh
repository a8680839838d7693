#!/bin/sh
# Builds the library against the installed nfs-ganesha, in a stage of the Dockerfile's, and makes below OUT what the
# server image gets: the library, and ganesha.nfsd as Debian has it but that it needs the library.
#   build.sh OUT
set -eu
out=$1
cd "$(dirname "$0")"
flags="-std=gnu11 -O2 -D_FORTIFY_SOURCE=2 -fstack-protector-strong -Wall -Wextra -Werror"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# shellcheck disable=SC2086 # several flags
gcc $flags selftest.c -o "$work/selftest"
"$work/selftest"

# Ganesha has no -dev package: its headers are in its source. Debian keeps the source of what it ships, but mirrors may not;
# then the version must be one that was compared before.
version=$(dpkg-query -W -f '${source:Upstream-Version}' nfs-ganesha)
if (cd "$work" && apt-get source --download-only --tar-only "nfs-ganesha=$(dpkg-query -W -f '${source:Version}' nfs-ganesha)"); then
	tar -xzf "$work"/nfs-ganesha_*.orig.tar.gz -C "$work" --strip-components=1
	: > "$work/config.h"
	gcc -std=gnu11 -fsyntax-only -D_GNU_SOURCE -Wall -Wextra -Werror -I "$work" -isystem "$work/src/include" \
		-isystem /usr/include/ntirpc layout.c
	echo "layout.h agrees with the headers of nfs-ganesha $version"
elif grep -qxF "$version" compared-versions; then
	echo "the source of nfs-ganesha $version is not to be had; layout.h was compared with it before"
else
	echo "the source of nfs-ganesha $version is not to be had, and layout.h was never compared with it (compared-versions)" >&2
	exit 1
fi

mkdir -p "$out/usr/bin" "$out/usr/lib/howdah"
# shellcheck disable=SC2086
gcc $flags -shared -fPIC -fvisibility=hidden -Wl,-z,relro,-z,now -s handles.c owners.c clients.c grace.c leases.c records.c listen.c cephfs.c mounts.c -o "$out/usr/lib/howdah/libhowdah-handles.so"
cp /usr/bin/ganesha.nfsd "$out/usr/bin/ganesha.nfsd"
patchelf --add-needed /usr/lib/howdah/libhowdah-handles.so "$out/usr/bin/ganesha.nfsd"
# The first one needed is the first one searched.
[ "$(patchelf --print-needed "$out/usr/bin/ganesha.nfsd" | head -n 1)" = /usr/lib/howdah/libhowdah-handles.so ]
