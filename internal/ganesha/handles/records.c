// SPDX-License-Identifier: Apache-2.0
// Whom ganesha waits for in grace, for nfs-ganesha as Debian packages it with its recovery records in RADOS.
//
// Namespace servers and the instance manager reach ganesha over loopback. They open and lock nothing, so they have nothing to reclaim; ganesha
// remembers them as it does any client, and would wait for them. Worse: the instance manager makes a client ID for each of its looks and destroys it.
// Ganesha counts those that say they have reclaimed, takes nothing off when a client ID is destroyed (nfs4_op_destroy_clientid.c), and ends grace when
// the count is the number of clients of before (nfs_try_lift_grace). One that was remembered and came twice ended it before another client had
// reclaimed, which lost what it had open and locked (EIO), or had it last as long as it may (5 of 3 were counted, and opens waited for 31 s).
//
// Where records are files the instance manager removes its own (internal/instance/volumes/recovery.go). In RADOS that would take a connection
// more while clients wait, so they are left out here, where ganesha reads them. There are as many as namespace servers, and one: far fewer than
// ganesha reads at a time (MAX_ITEMS in recovery_rados_kv.c), which matters because it goes on behind the last record that it is given.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <unistd.h>

#include "records.h"

enum { EXIT_CONFIG = 78 };

typedef int next_record(void *iterator, char **key, char **record, size_t *length);

__attribute__((visibility("default"))) next_record rados_omap_get_next;

// Librados is not in the global scope: it came with ganesha's library for such records.
static next_record *behind(void)
{
	void *librados = dlopen("librados.so.2", RTLD_NOW | RTLD_NOLOAD);
	void *found = librados == NULL ? NULL : dlsym(librados, "rados_omap_get_next");

	if (found == NULL) {
		fprintf(stderr, "howdah-handles: rados_omap_get_next: librados has no such function; recovery records could not be read\n");
		_exit(EXIT_CONFIG);
	}
	return (next_record *)found;
}

int rados_omap_get_next(void *iterator, char **key, char **record, size_t *length)
{
	static next_record *real;
	int error;

	if (real == NULL)
		real = behind();
	do
		error = real(iterator, key, record, length);
	while (error == 0 && *key != NULL && *record != NULL && is_own_client(*record, *length));
	return error;
}
