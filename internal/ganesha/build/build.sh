#!/bin/sh
# Builds nfs-ganesha from the orig archive of Debian's source package, with the patches of this folder, in a stage of the
# Dockerfile, and makes below OUT what the server image gets. README.md says why, and how to follow a new version.
#   build.sh OUT             the data server's ganesha; below OUT.tests one without signed handles, for tests
#   build.sh OUT sanitized   one with AddressSanitizer and UndefinedBehaviorSanitizer, for fuzzing
set -eu
out=$1 kind=${2:-}
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd -P)
# shellcheck source=internal/ganesha/build/version
. "$here/version"
work=${GANESHA_WORK:-$(mktemp -d)}
[ -n "${GANESHA_WORK:-}" ] || trap 'rm -rf "$work"' EXIT
mkdir -p "$work"
cd "$work"

# Mirrors may have the archive of a version and not its packaging, so only the archive is asked for; it must be the known one.
archive=${GANESHA_ARCHIVE:-}
if [ -z "$archive" ]; then
	apt-get source --download-only --tar-only "nfs-ganesha=$GANESHA_DEBIAN_VERSION"
	archive=nfs-ganesha_$GANESHA_VERSION.orig.tar.gz
fi
echo "$GANESHA_SHA256  $archive" | sha256sum --check --quiet

# A work folder that is kept compiles again only what a changed patch touches: the new tree is compared with the old one.
rm -rf new
mkdir new
tar -xzf "$archive" -C new --strip-components=1
for patch in "$here"/patches/*.patch; do
	[ -e "$patch" ] || continue
	echo "applying $(basename "$patch")"
	# Fuzz hides that a patch meets other code than the one it was written for.
	patch --directory=new/src --strip=1 --fuzz=0 --no-backup-if-mismatch --silent --input="$patch"
done
mkdir -p source
if command -v rsync >/dev/null 2>&1; then
	rsync --archive --checksum --no-times --delete new/ source/
else
	rm -rf source
	mv new source
fi
rm -rf new

# NDEBUG as Debian has it: ganesha's assertions end the process on what a client sends.
# SOURCE_DATE_EPOCH and the prefix map make two builds equal, wherever they were.
SOURCE_DATE_EPOCH=$GANESHA_DATE
export SOURCE_DATE_EPOCH
flags="-DNDEBUG -g -ffile-prefix-map=$work=. -fstack-protector-strong -fstack-clash-protection -fPIC"
link="-Wl,-z,relro,-z,now"
case $kind in
sanitized)
	# Variables without a value get one that is sure to be seen: addresses that nothing has. The sanitizers alone don't find their use.
	flags="$flags -ftrivial-auto-var-init=pattern -O1 -fno-omit-frame-pointer -fsanitize=address,undefined -fsanitize-recover=address,undefined -fno-sanitize=alignment -DSANITIZE_ADDRESS"
	link="$link -fsanitize=address,undefined"
	;;
'')
	# Variables without a value are 0, so a use of one finds nothing of earlier calls, and no client gets it.
	flags="$flags -ftrivial-auto-var-init=zero -O2 -D_FORTIFY_SOURCE=3"
	case $(dpkg --print-architecture) in
	amd64) flags="$flags -fcf-protection" ;;
	arm64) flags="$flags -mbranch-protection=standard" ;;
	esac
	;;
*)
	echo "build.sh: unknown kind $kind" >&2
	exit 2
	;;
esac

off=""
# What a data server has no use for is not in it: other protocols (NFSv3 and its helpers, 9P), Kerberos until Howdah has it,
# D-Bus, rpcbind, and file systems other than a volume's and Ceph's.
for option in USE_DBUS USE_GSS USE_NFS3 USE_NLM USE_NFSACL3 USE_RQUOTA USE_9P USE_NFSIDMAP _MSPAC_SUPPORT USE_LTTNG RADOS_URLS RPCBIND \
	USE_GUI_ADMIN_TOOLS USE_ADMIN_TOOLS USE_MAN_PAGE USE_UNWIND USE_NFS_RDMA USE_FSAL_PROXY_V4 USE_FSAL_PROXY_V3 USE_FSAL_LUSTRE \
	USE_FSAL_LIZARDFS USE_FSAL_KVSFS USE_FSAL_GPFS USE_FSAL_XFS USE_FSAL_GLUSTER USE_FSAL_NULL USE_FSAL_RGW USE_FSAL_MEM USE_FSAL_SAUNAFS; do
	off="$off -D$option=OFF"
done
# shellcheck disable=SC2086 # several options
cmake -S source/src -B build -Wno-dev -DCMAKE_BUILD_TYPE=Release -DCMAKE_C_FLAGS_RELEASE= -DCMAKE_CXX_FLAGS_RELEASE= -DCMAKE_INSTALL_PREFIX=/usr -DLIB_INSTALL_DIR=/usr/lib/ganesha \
	-DFSAL_DESTINATION=/usr/lib/ganesha -DCMAKE_INSTALL_RPATH=/usr/lib/ganesha -DCMAKE_BUILD_WITH_INSTALL_RPATH=ON \
	-DCMAKE_C_FLAGS="$flags" -DCMAKE_CXX_FLAGS="$flags" -DCMAKE_EXE_LINKER_FLAGS="-pie $link" \
	-DCMAKE_SHARED_LINKER_FLAGS="$link" -DCMAKE_MODULE_LINKER_FLAGS="$link" \
	-DUSE_SYSTEM_NTIRPC=ON -DALLOCATOR=libc -DUSE_FSAL_VFS=ON -DUSE_FSAL_CEPH=ON -DCEPHFS_POSIX_ACL=ON -DUSE_MONITORING=ON \
	-DUSE_RADOS_RECOV=ON $off > cmake.log || { cat cmake.log >&2; exit 1; }
make -C build -j"$(nproc)" > make.log 2>&1 || { grep -E -A5 'error|Error' make.log | head -60 >&2; exit 1; }

mkdir -p "$out/usr/bin" "$out/usr/lib/ganesha" "$out.tests/usr/lib/howdah"
install -m 0755 build/ganesha.nfsd "$out/usr/bin/ganesha.nfsd"
install -m 0755 build/ganesha.unsigned "$out.tests/usr/lib/howdah/ganesha.unsigned"
# What tests do to it.
cc -O1 -Wall -Wextra -Werror -shared -fPIC -o "$out.tests/usr/lib/howdah/attack.so" "$here/tests/attack.c"
cc -O1 -Wall -Wextra -Werror -o "$out.tests/usr/lib/howdah/older" "$here/tests/older.c"
cc -O1 -Wall -Wextra -Werror -static -o "$out.tests/usr/lib/howdah/chroot-again" "$here/tests/again.c"
find build \( -name '*.so' -o -name '*.so.*' \) -type f | while read -r library; do
	install -m 0644 "$library" "$out/usr/lib/ganesha/$(basename "$library")"
done
[ -n "$kind" ] || strip --strip-unneeded "$out/usr/bin/ganesha.nfsd" "$out"/usr/lib/ganesha/*.so*

# The licence, what was changed, and the changes themselves go with the program.
doc="$out/usr/share/doc/nfs-ganesha"
mkdir -p "$doc/patches"
install -m 0644 source/src/LICENSE.txt "$doc/copyright"
install -m 0644 "$here"/patches/*.patch "$doc/patches"
echo "nfs-ganesha $GANESHA_VERSION with Howdah's patches" > "$doc/version"
{
	echo "This is nfs-ganesha $GANESHA_VERSION, changed by Howdah. Its licence is the LGPL, version 3 or later (file copyright)."
	echo "The source is nfs-ganesha_$GANESHA_VERSION.orig.tar.gz of Debian's source package nfs-ganesha $GANESHA_DEBIAN_VERSION"
	echo "(SHA-256 $GANESHA_SHA256), with these changes (folder patches):"
	for patch in "$here"/patches/*.patch; do
		echo "  $(basename "$patch"): $(head -n 1 "$patch")"
	done
} > "$doc/NOTICE"
