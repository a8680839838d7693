// SPDX-License-Identifier: Apache-2.0
// Clients that come from another address, for nfs-ganesha as Debian packages it.
//
// Ganesha remembers its clients over a restart by "ADDRESS-(LENGTH:OWNER)", where the address is what it saw them come from
// (recovery_fs.c and recovery_rados_kv.c), and lets nobody reclaim whose text is another. A client owner is all that RFC 8881 knows a client by
// (section 2.4), and networks of pods change addresses on the way: when the server's pod comes back on another node, a client may be seen by
// another one of its node's. It was refused with NFS4ERR_NO_GRACE then, lost its locks, and could open nothing until the grace period was over (21 to
// 25 s). The comparison is the only one in ganesha of PATH_MAX bytes (check_clid in nfs4_recovery.c; the tests of internal/instance show that it still
// is): this function stands in front of it, and leaves the addresses out.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <limits.h>
#include <string.h>

__attribute__((visibility("default"))) int strncmp(const char *one, const char *other, size_t most);

static int compare(const char *one, const char *other, size_t most)
{
	for (; most > 0; one++, other++, most--) {
		if (*one != *other)
			return (unsigned char)*one - (unsigned char)*other;
		if (*one == '\0')
			return 0;
	}
	return 0;
}

static int is_ganeshas(void *caller)
{
	Dl_info from;

	return dladdr(caller, &from) != 0 && strstr(from.dli_fname, "/libganesha_nfsd.so") != NULL;
}

int strncmp(const char *one, const char *other, size_t most)
{
	if (most == PATH_MAX && is_ganeshas(__builtin_return_address(0))) {
		const char *owner = strstr(one, "-("), *others = strstr(other, "-(");

		if (owner != NULL && others != NULL)
			return compare(owner, others, most);
	}
	return compare(one, other, most);
}
