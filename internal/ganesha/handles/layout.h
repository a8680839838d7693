// SPDX-License-Identifier: Apache-2.0
// What handles.c and owners.c know of ganesha's memory: these few fields and no more. layout.c compares
// each with ganesha's own headers when the image is built.
#ifndef HOWDAH_LAYOUT_H
#define HOWDAH_LAYOUT_H

#include <endian.h>
#include <stdint.h>

enum {
	HANDLE_MOST = 128, // NFS4_FHSIZE
	OP_PUTFH = 22,
	STATUS_OK = 0,
	STATUS_BADHANDLE = 10001,
	STATUS_DELAY = 10008,
	RESULT_ERROR = 2, // NFS_REQ_ERROR
};

// The bytes of a handle on the wire: one of version, one of flags, two of the export's id in network
// order, one with the length of what follows, and that: the file system's part.
enum {
	AT_FLAGS = 1,
	AT_EXPORT = 2,
	AT_LENGTH = 4,
	HEAD_BYTES = 5,
	FLAG_SIGNED = 2, // Ours; ganesha gives it no meaning.
	FLAGS_OWN = BYTE_ORDER == BIG_ENDIAN ? 0x40 : 0, // FH_FSAL_BIG_ENDIAN: all that ganesha sets without pNFS.
};

// nfs_fh4
struct handle {
	uint32_t length;
	uint8_t *bytes;
};

// struct nfs_argop4, of PUTFH
struct arguments {
	uint32_t operation;
	struct handle handle __attribute__((aligned(8)));
};

// struct nfs_resop4, of PUTFH
struct result {
	uint32_t operation;
	uint32_t status __attribute__((aligned(8)));
};

// fattr4
struct attributes {
	uint32_t mask[4]; // bitmap4: a length and three words.
	uint32_t length;
	char *bytes;
};

// compound_data_t: its beginning
struct compound {
	struct handle current;
};

#endif
