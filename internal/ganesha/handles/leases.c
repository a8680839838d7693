// SPDX-License-Identifier: Apache-2.0
// Clients that renew their lease a little late, for nfs-ganesha as Debian packages it.
//
// Ganesha keeps what a client has beyond its lease, until another client wants it (Expired_Client_Threshold), which RFC 8881 section 8.4.3 allows:
// its reaper marks the client, every half lease (nfs_reaper_thread.c). A client that calls after its lease and before the reaper came is
// expired on the spot instead (reserve_lease_or_expire in nfs4_lease.c). It loses its locks, and is told NFS4ERR_EXPIRED by SEQUENCE, which has no
// such answer (RFC 8881 section 18.46.3): Linux makes EIO of it for whatever has no state, an ls or the mount of a directory. It happened to clients
// that were idle and well: Linux never renews sooner than after 5 s (nfs4renewd.c), and a lease of 6 s is 5 to 6 s of ganesha's clock.
//
// That clock has whole seconds. So the reaper is woken as soon as one begins: who is late is marked before he calls, but in those milliseconds.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <time.h>

#include "leases.h"

enum { NANOSECONDS_AFTER = 5 * 1000 * 1000 }; // time() may be behind by one tick of a kernel's (4 ms with 250 in a second, and with 1,000 less).

typedef void wake(void);

static void *wake_reaper(void *unused)
{
	wake *ganesha_wakes_reaper = (wake *)dlsym(RTLD_NEXT, "reaper_wake");
	const volatile bool *ends = (const volatile bool *)dlsym(RTLD_NEXT, "admin_shutdown");

	if (ganesha_wakes_reaper == NULL || ends == NULL)
		return unused;
	while (!*ends) {
		struct timespec next;

		clock_gettime(CLOCK_REALTIME, &next);
		next.tv_sec++;
		next.tv_nsec = NANOSECONDS_AFTER;
		clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &next, NULL);
		if (!*ends)
			ganesha_wakes_reaper();
	}
	return unused;
}

void mark_late_clients(void)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, wake_reaper, NULL) == 0)
		pthread_detach(thread);
}
