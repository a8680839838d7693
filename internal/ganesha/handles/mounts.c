// SPDX-License-Identifier: Apache-2.0
// Shares in Ceph that are mounted side by side, for nfs-ganesha as Debian packages it.
//
// Ganesha takes calls when it has made all its exports. FSAL_CEPH mounts the directory of each, one after the other, and each takes a second or
// more: the metadata servers end the client of the start before, and the cluster has to agree on that. With 12 shares the clients of all waited for
// 18 to 20 s after a kill, where with one it was 4 to 5 s (2026-11-23); a share whose user is gone kept the others waiting, too.
//
// Here threads mount them, from the moment at which the process starts. When FSAL_CEPH makes a client, it is given the one that is there,
// or waits for it; what it then asks of it was done before, and it gets the answer that there was. Each share is given once, so whatever is exported
// later, or again, is mounted by FSAL_CEPH itself. What it asks for must be what was done: if it is not, the export fails, and the instance
// manager's next reload makes it in the usual way.
//
// The list is a file (HOWDAH_MOUNTS), written by the instance manager together with the configuration (internal/ganesha/mounts.go): strings that
// end with a NUL, the path of ceph.conf, ganesha's nodeid, and for each share its user, its file system, and its path. Without it, or with
// an empty one, nothing is done. No key is in it: libcephfs finds the users' keyrings by ceph.conf.
#define _GNU_SOURCE
#define _FILE_OFFSET_BITS 64
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cephfs/libcephfs.h>

#include "mounts.h"

#define EXPORTED __attribute__((visibility("default")))
#define LIST_VARIABLE "HOWDAH_MOUNTS"

// THREADS_MOST bounds what the metadata servers get at once; waiting is most of the time. UUID_BYTES has room for "ganesha-0x", 16 digits and the end.
enum { EXIT_CONFIG = 78, THREADS_MOST = 16, UUID_BYTES = 32, HASHED_BYTES = 8192 };

struct share {
	const char *user, *system, *path;
	char uuid[UUID_BYTES];
	struct ceph_mount_info *cmount; // NULL before, and if not even that could be made.
	int answer; // Of the step that failed, or 0.
	bool done, given;
	struct ceph_client_callback_args callbacks; // FSAL_CEPH's.
	atomic_bool registered;
};

static const char *config, *node;
static struct share *shares;
static size_t shares_known;

// Guarded by it: done and given, and these.
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t one_done = PTHREAD_COND_INITIALIZER;
static size_t next_share, shares_done, shares_failed;
static bool over;
static struct timespec began;

static __typeof__(ceph_create) *behind_create;
static __typeof__(ceph_conf_read_file) *behind_conf_read_file;
static __typeof__(ceph_conf_set) *behind_conf_set;
static __typeof__(ceph_init) *behind_init;
static __typeof__(ceph_ll_register_callbacks) *behind_register_callbacks;
static __typeof__(ceph_select_filesystem) *behind_select_filesystem;
static __typeof__(ceph_start_reclaim) *behind_start_reclaim;
static __typeof__(ceph_finish_reclaim) *behind_finish_reclaim;
static __typeof__(ceph_set_uuid) *behind_set_uuid;
static __typeof__(ceph_mount) *behind_mount;
static __typeof__(ceph_shutdown) *behind_shutdown;

// What FSAL_CEPH sets (create_export in its main.c); client_oc is its own option's default.
static const struct {
	const char *name, *value;
} settings[] = { { "client_mountpoint", "/" }, { "client_acl_type", "posix_acl" }, { "client_oc", "false" } };

static void *behind(void *library, const char *name)
{
	void *found = dlsym(library, name);

	if (found == NULL) {
		fprintf(stderr, "howdah-handles: %s: libcephfs has no such function; no share could be mounted\n", name);
		_exit(EXIT_CONFIG);
	}
	return found;
}

void prepare_mounts(void *library)
{
	behind_create = behind(library, "ceph_create");
	behind_conf_read_file = behind(library, "ceph_conf_read_file");
	behind_conf_set = behind(library, "ceph_conf_set");
	behind_init = behind(library, "ceph_init");
	behind_register_callbacks = behind(library, "ceph_ll_register_callbacks");
	behind_select_filesystem = behind(library, "ceph_select_filesystem");
	behind_start_reclaim = behind(library, "ceph_start_reclaim");
	behind_finish_reclaim = behind(library, "ceph_finish_reclaim");
	behind_set_uuid = behind(library, "ceph_set_uuid");
	behind_mount = behind(library, "ceph_mount");
	behind_shutdown = behind(library, "ceph_shutdown");
}

// Callbacks are taken before a client is mounted, and FSAL_CEPH has none to give by then. Until it has, it knows no inode that these
// could be about, and creates none.
static void invalidate_inode(void *handle, vinodeno_t inode, int64_t offset, int64_t length)
{
	struct share *share = handle;

	if (share->registered && share->callbacks.ino_cb != NULL)
		share->callbacks.ino_cb(share->callbacks.handle, inode, offset, length);
}

static void release_inode(void *handle, vinodeno_t inode)
{
	struct share *share = handle;

	if (share->registered && share->callbacks.ino_release_cb != NULL)
		share->callbacks.ino_release_cb(share->callbacks.handle, inode);
}

static void invalidate_name(void *handle, vinodeno_t directory, vinodeno_t inode, const char *name, size_t length)
{
	struct share *share = handle;

	if (share->registered && share->callbacks.dentry_cb != NULL)
		share->callbacks.dentry_cb(share->callbacks.handle, directory, inode, name, length);
}

static mode_t creation_mask(void *handle)
{
	struct share *share = handle;

	return share->registered && share->callbacks.umask_cb != NULL ? share->callbacks.umask_cb(share->callbacks.handle) : 0;
}

// mounted does what FSAL_CEPH would, in its order, and tells the first error.
static int mounted(struct share *share)
{
	struct ceph_client_callback_args callbacks = {
		.handle = share, .ino_cb = invalidate_inode, .ino_release_cb = release_inode, .dentry_cb = invalidate_name, .umask_cb = creation_mask,
	};
	int error = behind_create(&share->cmount, share->user);

	if (error != 0) {
		share->cmount = NULL;
		return error;
	}
	error = behind_conf_read_file(share->cmount, config);
	for (size_t i = 0; error == 0 && i < sizeof(settings) / sizeof(settings[0]); i++)
		error = behind_conf_set(share->cmount, settings[i].name, settings[i].value);
	if (error == 0)
		error = behind_init(share->cmount);
	if (error != 0)
		return error;
	behind_register_callbacks(share->cmount, &callbacks);
	error = behind_select_filesystem(share->cmount, share->system);
	if (error != 0)
		return error;
	error = behind_start_reclaim(share->cmount, share->uuid, CEPH_RECLAIM_RESET);
	if (error != 0 && error != -ENOENT) // There may be no client of before.
		return error;
	behind_finish_reclaim(share->cmount);
	behind_set_uuid(share->cmount, share->uuid);
	return behind_mount(share->cmount, share->path);
}

static double seconds_since(struct timespec start)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)(now.tv_sec - start.tv_sec) + (double)(now.tv_nsec - start.tv_nsec) / 1e9;
}

static void *mount_shares(void *unused)
{
	pthread_mutex_lock(&lock);
	while (next_share < shares_known && !over) {
		struct share *share = &shares[next_share++];
		bool unasked;

		pthread_mutex_unlock(&lock);
		share->answer = mounted(share);
		pthread_mutex_lock(&lock);
		share->done = true;
		shares_failed += share->answer != 0;
		if (++shares_done == shares_known)
			fprintf(stderr, "howdah-handles: mounted %zu of %zu shares in Ceph in %.1f s\n", shares_known - shares_failed, shares_known, seconds_since(began));
		unasked = over && !share->given;
		share->given |= unasked;
		pthread_cond_broadcast(&one_done);
		if (unasked && share->cmount != NULL) {
			pthread_mutex_unlock(&lock);
			behind_shutdown(share->cmount);
			pthread_mutex_lock(&lock);
		}
	}
	pthread_mutex_unlock(&lock);
	return unused;
}

static void *unmount_unasked(void *unused)
{
	for (size_t i = 0; i < shares_known; i++) {
		bool unasked;

		pthread_mutex_lock(&lock);
		unasked = shares[i].done && !shares[i].given;
		shares[i].given |= unasked;
		pthread_mutex_unlock(&lock);
		if (unasked && shares[i].cmount != NULL)
			behind_shutdown(shares[i].cmount);
	}
	return unused;
}

// start starts a thread that takes none of the signals that are ganesha's.
static bool start(void *(*work)(void *))
{
	sigset_t all, before;
	pthread_t thread;
	bool started;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	started = pthread_create(&thread, NULL, work, NULL) == 0;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (started)
		pthread_detach(thread);
	return started;
}

void end_unasked_mounts(void)
{
	bool any = false;

	pthread_mutex_lock(&lock);
	over = true;
	for (size_t i = 0; i < shares_known; i++)
		any |= shares[i].done && !shares[i].given;
	pthread_mutex_unlock(&lock);
	if (any)
		start(unmount_unasked);
}

// read_list reads the file, or tells that there is none that could be read. It stays in memory.
static char *read_list(const char *path, size_t *length)
{
	int file = open(path, O_RDONLY | O_CLOEXEC);
	struct stat about;
	char *text = NULL;

	*length = 0;
	if (file >= 0 && fstat(file, &about) == 0 && (text = malloc((size_t)about.st_size + 1)) != NULL) {
		ssize_t got = read(file, text, (size_t)about.st_size);

		if (got == (ssize_t)about.st_size) {
			*length = (size_t)got;
		} else {
			free(text);
			text = NULL;
		}
	}
	if (file >= 0)
		close(file);
	return text;
}

// next takes a string, or tells that there is no whole one.
static const char *next(char **at, const char *end)
{
	char *text = *at, *nul = memchr(text, '\0', (size_t)(end - text));

	if (nul == NULL)
		return NULL;
	*at = nul + 1;
	return text;
}

// The uuid is FSAL_CEPH's (create_unique_id in its main.c), so that a start reclaims what one without this library left, and the reverse.
static void identify(struct share *share, uint64_t (*hash)(const char *, size_t))
{
	char hashed[HASHED_BYTES];

	snprintf(hashed, sizeof(hashed), "%s%s%s%s", node, share->user, share->system, share->path);
	snprintf(share->uuid, sizeof(share->uuid), "ganesha-0x%" PRIx64, hash(hashed, strlen(hashed)));
}

static bool parse(char *at, const char *end)
{
	uint64_t (*hash)(const char *, size_t) = (uint64_t (*)(const char *, size_t))dlsym(RTLD_DEFAULT, "CityHash64");
	size_t most = 0;

	for (const char *byte = at; byte < end; byte++)
		most += *byte == '\0';
	config = next(&at, end);
	node = config == NULL ? NULL : next(&at, end);
	shares = calloc(most, sizeof(*shares));
	if (node == NULL || hash == NULL || shares == NULL)
		return false;
	while (at < end) {
		struct share *share = &shares[shares_known];

		share->user = next(&at, end);
		share->system = share->user == NULL ? NULL : next(&at, end);
		share->path = share->system == NULL ? NULL : next(&at, end);
		if (share->path == NULL)
			return false;
		identify(share, hash);
		shares_known++;
	}
	return true;
}

__attribute__((constructor)) static void mount_early(void)
{
	const char *path = getenv(LIST_VARIABLE);
	void *library;
	size_t length;
	char *list;

	if (path == NULL || *path == '\0')
		return;
	clock_gettime(CLOCK_MONOTONIC, &began);
	list = read_list(path, &length);
	if (list != NULL && length == 0)
		return;
	library = list == NULL ? NULL : dlopen("libcephfs.so.2", RTLD_NOW);
	if (library == NULL || !parse(list, list + length)) {
		fprintf(stderr, "howdah-handles: %s: can't be used; shares in Ceph are mounted one after the other\n", path);
		shares_known = 0;
		return;
	}
	prepare_mounts(library);
	for (size_t threads = 0; threads < THREADS_MOST && threads < shares_known; threads++)
		if (!start(mount_shares)) {
			if (threads == 0)
				shares_known = 0;
			return;
		}
}

// given finds the share of a client that FSAL_CEPH was given and has not mounted yet; NULL if there is none. Ganesha makes one export at a time.
static struct share *given;

static struct share *given_with(struct ceph_mount_info *cmount)
{
	return given != NULL && given->cmount == cmount ? given : NULL;
}

// as_done answers for a step that was done with a value.
static int as_done(struct share *share, const char *what, const char *done, const char *asked)
{
	if (asked != NULL && strcmp(done, asked) == 0)
		return 0;
	fprintf(stderr, "howdah-handles: client.%s: %s was %s, and ganesha asks for %s\n", share->user, what, done, asked == NULL ? "none" : asked);
	given = NULL;
	return -EINVAL;
}

EXPORTED int ceph_create(struct ceph_mount_info **cmount, const char *const id)
{
	struct share *found = NULL;

	given = NULL;
	pthread_mutex_lock(&lock);
	for (size_t i = 0; id != NULL && !over && found == NULL && i < shares_known; i++)
		if (!shares[i].given && strcmp(shares[i].user, id) == 0)
			found = &shares[i];
	if (found != NULL) {
		found->given = true;
		while (!found->done)
			pthread_cond_wait(&one_done, &lock);
	}
	pthread_mutex_unlock(&lock);
	if (found == NULL || found->cmount == NULL)
		return behind_create(cmount, id);
	given = found;
	*cmount = found->cmount;
	return 0;
}

EXPORTED int ceph_conf_read_file(struct ceph_mount_info *cmount, const char *path_list)
{
	struct share *share = given_with(cmount);

	return share == NULL ? behind_conf_read_file(cmount, path_list) : as_done(share, "ceph.conf", config, path_list);
}

EXPORTED int ceph_conf_set(struct ceph_mount_info *cmount, const char *option, const char *value)
{
	struct share *share = given_with(cmount);

	if (share == NULL)
		return behind_conf_set(cmount, option, value);
	for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++)
		if (strcmp(settings[i].name, option) == 0)
			return as_done(share, option, settings[i].value, value);
	return as_done(share, option, "not set", value);
}

EXPORTED int ceph_init(struct ceph_mount_info *cmount)
{
	return given_with(cmount) == NULL ? behind_init(cmount) : 0;
}

EXPORTED void ceph_ll_register_callbacks(struct ceph_mount_info *cmount, struct ceph_client_callback_args *args)
{
	struct share *share = given_with(cmount);

	if (share == NULL) {
		behind_register_callbacks(cmount, args);
		return;
	}
	share->callbacks = *args;
	share->registered = true;
}

EXPORTED int ceph_select_filesystem(struct ceph_mount_info *cmount, const char *name)
{
	struct share *share = given_with(cmount);

	return share == NULL ? behind_select_filesystem(cmount, name) : as_done(share, "the file system", share->system, name);
}

EXPORTED int ceph_start_reclaim(struct ceph_mount_info *cmount, const char *uuid, unsigned flags)
{
	struct share *share = given_with(cmount);

	return share == NULL ? behind_start_reclaim(cmount, uuid, flags) : as_done(share, "the uuid", share->uuid, uuid);
}

EXPORTED void ceph_finish_reclaim(struct ceph_mount_info *cmount)
{
	if (given_with(cmount) == NULL)
		behind_finish_reclaim(cmount);
}

EXPORTED void ceph_set_uuid(struct ceph_mount_info *cmount, const char *uuid)
{
	if (given_with(cmount) == NULL)
		behind_set_uuid(cmount, uuid);
}

EXPORTED int ceph_mount(struct ceph_mount_info *cmount, const char *root)
{
	struct share *share = given_with(cmount);
	int answer;

	if (share == NULL)
		return behind_mount(cmount, root);
	answer = as_done(share, "the path", share->path, root);
	given = NULL;
	return answer == 0 ? share->answer : answer;
}
