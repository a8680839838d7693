#!/bin/sh
# Builds howdah-ceph against the installed libraries of Ceph, in a stage of the Dockerfile's: the very ones that ganesha uses.
#   build.sh OUT
# Needs g++ librados-dev libradospp-dev libcephfs-dev nlohmann-json3-dev.
set -eu
out=$1
cd "$(dirname "$0")"
mkdir -p "$out/usr/libexec"
# CEPH_STATX and other wide types of libcephfs need 64-bit file offsets.
g++ -std=c++17 -O1 -D_FILE_OFFSET_BITS=64 -D_FORTIFY_SOURCE=2 -fstack-protector-strong -Wall -Wextra -Werror -Wl,-z,relro,-z,now -s \
	howdah-ceph.cc -o "$out/usr/libexec/howdah-ceph" -lrados -lcephfs
