// SPDX-License-Identifier: Apache-2.0
// What FSAL_CEPH asks of libcephfs, and what it is told, for nfs-ganesha as Debian packages it.
//
// 1. Files of snapshots have numbers of their own.
//
// In CephFS a file, the same file in a snapshot, and a directory's .snap have one inode number, and differ by the number of the snapshot.
// FSAL_CEPH gives clients the inode number alone (fileid, RFC 8881 section 5.8.1.13: unique in a file system): cp refuses to copy a
// file out of a snapshot over itself ("are the same file"), and find takes .snap for a loop. These functions stand between FSAL_CEPH and
// libcephfs. What is in a snapshot gets the inode number, changed by a number that is made of the snapshot's; it is changed back where a handle
// leads to an inode, since the handle has both. The highest bit, which no inode number of CephFS has, tells a changed number from
// those in handles that were made before there was this.
//
// 2. A session with a metadata server ends when that of any other client of CephFS would.
//
// FSAL_CEPH asks for sessions that live for 300 s without a sign of life, so that a later start can reclaim what clients have. All that such a
// dead session holds is kept from others as long (a session of the usual kind gives way after 60 s to who wants it), and a metadata server that
// takes another's place waits for it as long (mds_reconnect_timeout, 45 s, counts for sessions of the usual kind alone): with a node that had
// both, a data server and a metadata server, the whole file system stood still for 300 s (2026-11-22). A directory has one data
// server here, so there is nobody from whom what clients have would have to be kept before they reclaim it.
//
// 3. A listing of snapshots is one that changes.
//
// The change attribute of .snap (RFC 8881 section 5.8.1.4), by which clients know whether the names that they found there still are, stays
// what it was when snapshots come and go: a client that had read a snapshot by its path did so for as long as it ran after the snapshot was
// deleted. It follows the clock here, so that a client asks for the names again when it next looks at .snap's attributes (acdirmax, 60 s).
#define _GNU_SOURCE
#define _FILE_OFFSET_BITS 64
#include <dirent.h>
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include <cephfs/libcephfs.h>

#include "cephfs.h"

#define EXPORTED __attribute__((visibility("default")))
#define LIVE ((uint64_t)-2) // CEPH_NOSNAP
#define SNAPDIR ((uint64_t)-1) // CEPH_SNAPDIR
#define CHANGED ((uint64_t)1 << 63)
enum { EXIT_CONFIG = 78 };

// The declarations are libcephfs.h's; these are of the functions behind ours.
static __typeof__(ceph_ll_getattr) *behind_getattr;
static __typeof__(ceph_ll_lookup) *behind_lookup;
static __typeof__(ceph_ll_walk) *behind_walk;
static __typeof__(ceph_ll_lookup_vino) *behind_lookup_vino;
static __typeof__(ceph_readdirplus_r) *behind_readdirplus;

static void *behind(void *fsal, const char *name)
{
	void *found = dlsym(fsal, name);

	if (found == NULL) {
		fprintf(stderr, "howdah-handles: %s: libcephfs has no such function; snapshots would have the numbers of live files\n", name);
		_exit(EXIT_CONFIG);
	}
	return found;
}

// The FSAL is not in the global scope: its libraries are found by it alone.
void prepare_cephfs(void *fsal)
{
	behind_getattr = behind(fsal, "ceph_ll_getattr");
	behind_lookup = behind(fsal, "ceph_ll_lookup");
	behind_walk = behind(fsal, "ceph_ll_walk");
	behind_lookup_vino = behind(fsal, "ceph_ll_lookup_vino");
	behind_readdirplus = behind(fsal, "ceph_readdirplus_r");
}

// changed is its own inverse but for CHANGED. The steps are those of SplitMix64, which are one to one: each snapshot has its own.
static uint64_t changed(uint64_t ino, uint64_t snapshot)
{
	uint64_t z = snapshot + 0x9e3779b97f4a7c15;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
	z ^= z >> 31;
	return (ino ^ z) | CHANGED;
}

static void number(struct ceph_statx *stx)
{
	if (stx->stx_dev != LIVE && stx->stx_ino != 0 && (stx->stx_ino & CHANGED) == 0)
		stx->stx_ino = changed(stx->stx_ino, stx->stx_dev);
	if (stx->stx_dev == SNAPDIR)
		stx->stx_version = (uint64_t)time(NULL);
}

EXPORTED int ceph_ll_getattr(struct ceph_mount_info *cmount, struct Inode *in, struct ceph_statx *stx, unsigned int want,
			     unsigned int flags, const UserPerm *perms)
{
	int answer = behind_getattr(cmount, in, stx, want, flags, perms);

	if (answer >= 0)
		number(stx);
	return answer;
}

EXPORTED int ceph_ll_lookup(struct ceph_mount_info *cmount, Inode *parent, const char *name, Inode **out, struct ceph_statx *stx,
			    unsigned want, unsigned flags, const UserPerm *perms)
{
	int answer = behind_lookup(cmount, parent, name, out, stx, want, flags, perms);

	if (answer >= 0)
		number(stx);
	return answer;
}

EXPORTED int ceph_ll_walk(struct ceph_mount_info *cmount, const char *name, Inode **i, struct ceph_statx *stx, unsigned int want,
			  unsigned int flags, const UserPerm *perms)
{
	int answer = behind_walk(cmount, name, i, stx, want, flags, perms);

	if (answer >= 0)
		number(stx);
	return answer;
}

EXPORTED int ceph_readdirplus_r(struct ceph_mount_info *cmount, struct ceph_dir_result *dirp, struct dirent *de, struct ceph_statx *stx,
				unsigned want, unsigned flags, struct Inode **out)
{
	int answer = behind_readdirplus(cmount, dirp, de, stx, want, flags, out);

	if (answer > 0)
		number(stx);
	return answer;
}

EXPORTED int ceph_ll_lookup_vino(struct ceph_mount_info *cmount, vinodeno_t vino, Inode **inode)
{
	if (vino.snapid.val != LIVE && (vino.ino.val & CHANGED) != 0)
		vino.ino.val = changed(vino.ino.val, vino.snapid.val) & ~CHANGED;
	return behind_lookup_vino(cmount, vino, inode);
}

EXPORTED void ceph_set_session_timeout(struct ceph_mount_info *cmount, unsigned timeout)
{
	(void)cmount;
	(void)timeout;
}
