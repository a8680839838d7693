// SPDX-License-Identifier: Apache-2.0
// A grace period that ends when it may, for nfs-ganesha as Debian packages it.
//
// It may as soon as all clients of before have reclaimed what they had, and ganesha looks whether they have when its reaper runs: every half lease
// (nfs_reaper_thread.c). With leases of 6 s, opens waited for up to 3 s longer than they had to. A client that has reclaimed goes on with its work,
// so its calls are the moment to look; in grace they have the reaper run, a few times in a second at most. How long a grace period lasts at
// most is not known here: calls that come later than any do nothing.
//
// And one that begins when clients can use it. Ganesha's begins before it mounts what it serves; where that takes longer than the grace period
// (a storage that is slow to answer, a busy node), it was over with the first call, and clients lost what they had open and locked (EIO). It
// begins anew when ganesha makes the reaper, which is the last that it does before it says that it is initialized, and the one that ends
// grace periods. Nothing else could have ended it by then but the one look that ganesha takes when it has read who may reclaim: before that it
// begins anew, too. When it takes its port, as it was first, was too early: on a busy node seconds pass between the two (5.5 s were seen).
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#include "grace.h"
#include "leases.h"
#include "mounts.h"

enum { MILLISECONDS_BETWEEN = 100, MILLISECONDS_MOST = 300 * 1000 };

typedef void start_grace(void *how);
typedef void wake(void);
typedef void wait_for_others(void);
struct fridge;
struct fridge_parameters;
typedef int make_fridge(struct fridge **made, const char *name, const struct fridge_parameters *parameters);

__attribute__((visibility("default"))) start_grace nfs_start_grace;
__attribute__((visibility("default"))) wait_for_others nfs_wait_for_grace_enforcement;
__attribute__((visibility("default"))) make_fridge fridgethr_init;

static start_grace *ganeshas;
static wake *ganesha_wakes_reaper;
static _Atomic int64_t began, looked; // 0: never.

static int64_t milliseconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000 + 1;
}

// Ganesha starts a grace period, or looks whether it has to.
void nfs_start_grace(void *how)
{
	if (ganeshas == NULL) {
		ganeshas = (start_grace *)dlsym(RTLD_NEXT, "nfs_start_grace");
		ganesha_wakes_reaper = (wake *)dlsym(RTLD_NEXT, "reaper_wake");
	}
	began = milliseconds();
	ganeshas(how);
}

// In grace ganesha takes a start without a reason (an event) for more time, and reads nothing anew.
static void begin_grace_anew(void)
{
	if (began != 0)
		nfs_start_grace(NULL);
}

// Ganesha waits until all of its cluster are in grace, and looks whether it is over.
void nfs_wait_for_grace_enforcement(void)
{
	wait_for_others *ganeshas_wait = (wait_for_others *)dlsym(RTLD_NEXT, "nfs_wait_for_grace_enforcement");

	begin_grace_anew();
	ganeshas_wait();
}

// Ganesha makes threads of a kind (fridgethr.c); those named so end grace periods (nfs_reaper_thread.c).
int fridgethr_init(struct fridge **made, const char *name, const struct fridge_parameters *parameters)
{
	make_fridge *ganeshas_make = (make_fridge *)dlsym(RTLD_NEXT, "fridgethr_init");

	if (strcmp(name, "reaper") == 0) {
		begin_grace_anew();
		end_unasked_mounts();
		mark_late_clients();
	}
	return ganeshas_make(made, name, parameters);
}

void look_at_grace(void)
{
	int64_t now, last;

	if (began == 0 || ganesha_wakes_reaper == NULL)
		return;
	now = milliseconds();
	if (now - began > MILLISECONDS_MOST)
		return;
	last = looked;
	if (now - last >= MILLISECONDS_BETWEEN && atomic_compare_exchange_strong(&looked, &last, now))
		ganesha_wakes_reaper();
}
