// SPDX-License-Identifier: Apache-2.0
// File handles that clients can't make up, and no referrals, for nfs-ganesha as Debian packages it.
//
// ganesha.nfsd in the server image names this library as its first (patchelf --add-needed), so that these
// functions stand in front of those of the same names in libganesha_nfsd.so:
//
//   nfs4_FSALToFhandle       makes every NFSv4 handle that goes out: a MAC is put behind it
//   nfs4_op_putfh            takes every handle that comes in: the MAC is checked and taken off
//   fsal_common_is_referral  tells whether a directory refers clients elsewhere: never
//   dlopen                   loads the FSALs, in a way that would pass by the third
//
// A handle is no secret to the client that was given it; the MAC keeps it from making others, of inodes outside of its
// export, which ganesha would open (README.md). The MAC counts as part of the file system's part of the
// handle, so ganesha's checks of lengths hold with it and without.
//
// Whatever is not as it should be ends the process before it serves: unsigned is never an option.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "layout.h"
#include "siphash.h"
#include "cephfs.h"
#include "grace.h"
#include "mounts.h"

enum { MAC_BYTES = 8, ROUND_BYTES = 2, KEYS_MOST = 2, EXPORTS_MOST = 1 << 16, EXIT_CONFIG = 78 };

// The environment variables with the paths of the keys; internal/instance sets them.
#define KEY_VARIABLE "HOWDAH_HANDLE_KEY" // Signs.
#define OLD_KEY_VARIABLE "HOWDAH_HANDLE_OLD_KEY" // May be unset; handles that it signed are taken as well.
// A file that tells how often each Export_Id was used before, 65536 words of two bytes; unset, none was. The instance manager changes
// a word while ganesha has no export of the id.
#define ROUNDS_VARIABLE "HOWDAH_EXPORT_ROUNDS"

#define EXPORTED __attribute__((visibility("default")))

typedef bool make_handle(bool allocate, struct handle *handle, const void *object, void *export);
typedef int take_handle(struct arguments *arguments, struct compound *compound, struct result *result);
typedef bool tell_referral(void *object, void *attributes, bool cache);
typedef void *load_library(const char *path, int flags);

EXPORTED make_handle nfs4_FSALToFhandle;
EXPORTED take_handle nfs4_op_putfh;
EXPORTED tell_referral fsal_common_is_referral;
EXPORTED load_library dlopen;

static make_handle *ganesha_make_handle;
static take_handle *ganesha_take_handle;
static struct siphash_key keys[KEYS_MOST];
static int keys_known;
static const volatile uint16_t *rounds;

static void refuse(const char *what, const char *which)
{
	fprintf(stderr, "howdah-handles: %s: %s; ganesha must not serve without signed file handles\n", which, what);
	_exit(EXIT_CONFIG);
}

static void read_key(const char *path)
{
	uint8_t bytes[SIPHASH_KEY_BYTES + 1]; // One more shows a file that is too long.
	int file = open(path, O_RDONLY | O_CLOEXEC);

	if (file < 0)
		refuse("the key can't be opened", path);
	if (read(file, bytes, sizeof(bytes)) != SIPHASH_KEY_BYTES)
		refuse("is not a key of 16 bytes", path);
	close(file);
	keys[keys_known++] = siphash_key_from(bytes);
	explicit_bzero(bytes, sizeof(bytes));
}

static void map_rounds(const char *path)
{
	const size_t size = EXPORTS_MOST * sizeof(*rounds);
	int file = open(path, O_RDONLY | O_CLOEXEC);
	struct stat about;
	void *mapped;

	if (file < 0 || fstat(file, &about) != 0)
		refuse("the rounds of Export_Ids can't be read", path);
	if (about.st_size != (off_t)size)
		refuse("does not have two bytes for each Export_Id", path);
	mapped = mmap(NULL, size, PROT_READ, MAP_SHARED, file, 0);
	if (mapped == MAP_FAILED)
		refuse("the rounds of Export_Ids can't be mapped", path);
	close(file);
	rounds = mapped;
}

// behind finds ganesha's function of the name, and sees that callers find ours.
static void *behind(const char *name, void *ours)
{
	void *theirs = dlsym(RTLD_NEXT, name);

	if (theirs == NULL || theirs == ours)
		refuse("this ganesha has no such function", name);
	if (dlsym(RTLD_DEFAULT, name) != ours)
		refuse("ganesha would call its own, because this library is not loaded first", name);
	return theirs;
}

__attribute__((constructor)) static void prepare(void)
{
	const char *key = getenv(KEY_VARIABLE), *old_key = getenv(OLD_KEY_VARIABLE), *path = getenv(ROUNDS_VARIABLE);

	ganesha_make_handle = behind("nfs4_FSALToFhandle", nfs4_FSALToFhandle);
	ganesha_take_handle = behind("nfs4_op_putfh", nfs4_op_putfh);
	(void)behind("fsal_common_is_referral", fsal_common_is_referral);
	if (key == NULL)
		refuse("is not set", KEY_VARIABLE);
	read_key(key);
	if (old_key != NULL)
		read_key(old_key);
	if (path != NULL && *path != '\0')
		map_rounds(path);
}

// sign is the MAC of a handle. Behind its bytes comes the round of its export, unless that is the first: an Export_Id that is
// used again has other handles than the exports that had it before.
static uint64_t sign(struct siphash_key key, const uint8_t *bytes, uint32_t length)
{
	uint8_t all[HANDLE_MOST + ROUND_BYTES];
	uint16_t round = rounds == NULL ? 0 : rounds[bytes[AT_EXPORT] << 8 | bytes[AT_EXPORT + 1]];

	if (round == 0)
		return htole64(siphash(key, bytes, length));
	memcpy(all, bytes, length);
	all[length] = (uint8_t)round;
	all[length + 1] = (uint8_t)(round >> 8);
	return htole64(siphash(key, all, (size_t)length + ROUND_BYTES));
}

// Handles of the tree of Pseudo paths fill all bytes that a handle can have. They have no room for a
// MAC and need none: they lead to nothing but names of exports.
static bool is_pseudo(const struct handle *handle)
{
	const uint8_t *bytes = handle->bytes;

	return handle->length == HANDLE_MOST && bytes[AT_EXPORT] == 0 && bytes[AT_EXPORT + 1] == 0 &&
	       bytes[AT_FLAGS] == FLAGS_OWN && bytes[AT_LENGTH] == HANDLE_MOST - HEAD_BYTES;
}

bool nfs4_FSALToFhandle(bool allocate, struct handle *handle, const void *object, void *export)
{
	uint64_t mac;

	if (!ganesha_make_handle(allocate, handle, object, export))
		return false;
	if (is_pseudo(handle))
		return true;
	if (handle->length + MAC_BYTES > HANDLE_MOST) {
		// No file system that ganesha exports has such long handles. The client gets an error.
		if (allocate) {
			free(handle->bytes);
			*handle = (struct handle){ 0 };
		}
		return false;
	}
	handle->bytes[AT_FLAGS] |= FLAG_SIGNED;
	handle->bytes[AT_LENGTH] += MAC_BYTES;
	mac = sign(keys[0], handle->bytes, handle->length);
	memcpy(handle->bytes + handle->length, &mac, MAC_BYTES);
	handle->length += MAC_BYTES;
	return true;
}

// is_signed tells whether one of the keys made the MAC at the handle's end. Whole words are
// compared, so that the time it takes tells nothing about where they differ.
static bool is_signed(const struct handle *handle)
{
	uint32_t length = handle->length - MAC_BYTES;
	uint64_t mac;
	bool good = false;

	if (handle->length < HEAD_BYTES + MAC_BYTES || handle->length != (uint32_t)HEAD_BYTES + handle->bytes[AT_LENGTH] ||
	    (handle->bytes[AT_FLAGS] & FLAG_SIGNED) == 0)
		return false;
	memcpy(&mac, handle->bytes + length, MAC_BYTES);
	for (int i = 0; i < keys_known; i++)
		good |= sign(keys[i], handle->bytes, length) == mac;
	return good;
}

int nfs4_op_putfh(struct arguments *arguments, struct compound *compound, struct result *result)
{
	struct handle wire = arguments->handle;
	uint8_t bare[HANDLE_MOST];
	int answer;

	look_at_grace();

	if (wire.bytes == NULL || wire.length < HEAD_BYTES || wire.length > HANDLE_MOST)
		goto forged;
	if (is_pseudo(&wire))
		return ganesha_take_handle(arguments, compound, result);
	if (!is_signed(&wire))
		goto forged;
	memcpy(bare, wire.bytes, wire.length - MAC_BYTES);
	bare[AT_FLAGS] &= (uint8_t)~FLAG_SIGNED;
	bare[AT_LENGTH] -= MAC_BYTES;
	arguments->handle = (struct handle){ wire.length - MAC_BYTES, bare };
	answer = ganesha_take_handle(arguments, compound, result);
	arguments->handle = wire;
	// GETFH and the attribute filehandle answer with the current handle: the one that the client has.
	if (result->status == STATUS_OK) {
		memcpy(compound->current.bytes, wire.bytes, wire.length);
		compound->current.length = wire.length;
	}
	return answer;
forged:
	result->operation = OP_PUTFH;
	result->status = STATUS_BADHANDLE;
	return RESULT_ERROR;
}

// Namespace servers refer clients to data servers; data servers refer nobody. Ganesha takes a directory for a referral by its mode
// (sticky, and nobody may search it), which every user can set, and goes where an extended attribute says.
bool fsal_common_is_referral(void *object, void *attributes, bool cache)
{
	(void)object;
	(void)attributes;
	(void)cache;
	return false;
}

// Ganesha loads its FSALs with RTLD_DEEPBIND: they would find libganesha_nfsd.so's functions before ours.
void *dlopen(const char *path, int flags)
{
	static load_library *real;

	if (real == NULL)
		real = (load_library *)dlsym(RTLD_NEXT, "dlopen");
	if (path != NULL && strstr(path, "/libfsal") != NULL)
		flags &= ~RTLD_DEEPBIND;
	// That would find librados' function for records before ours (records.c).
	if (path != NULL && strstr(path, "libganesha_rados_recov") != NULL)
		flags &= ~RTLD_DEEPBIND;
	if (path != NULL && strstr(path, "/libfsalceph") != NULL) {
		void *fsal = real(path, flags);

		if (fsal != NULL) {
			prepare_cephfs(fsal);
			prepare_mounts(fsal);
		}
		return fsal;
	}
	// Nothing after the call: names without a path (libganesha_rados_recov.so) are searched in the RUNPATH of whom it returns to, and
	// that must be ganesha.
	return real(path, flags);
}
