// SPDX-License-Identifier: Apache-2.0
// chown to numbers, for nfs-ganesha as Debian packages it.
//
// A client sets an owner as decimal digits, and ganesha reads on for a NUL behind them (9.14: name2id in idmapper.c copies one
// byte more than there are). Where XDR pads there is one; behind a number of 4 or 8 digits at the end of the attributes is
// whatever was in that memory: chown to 2000 was refused with NFS4ERR_BADOWNER, which Linux tells as EINVAL, or not, as chance
// had it; with a digit there it would have been another's number. This function stands in front of the one that
// reads the attributes of SETATTR, CREATE and OPEN, and gives it a copy that ends.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "layout.h"

typedef int read_attributes(void *to, struct attributes *from, void *compound);

__attribute__((visibility("default"))) read_attributes nfs4_Fattr_To_FSAL_attr;

int nfs4_Fattr_To_FSAL_attr(void *to, struct attributes *from, void *compound)
{
	static read_attributes *ganeshas;
	struct attributes ended = *from;
	int answer;

	if (ganeshas == NULL)
		ganeshas = (read_attributes *)dlsym(RTLD_NEXT, "nfs4_Fattr_To_FSAL_attr");
	if (from->bytes == NULL)
		return ganeshas(to, from, compound);
	ended.bytes = calloc(1, (size_t)from->length + 1);
	if (ended.bytes == NULL)
		return STATUS_DELAY;
	memcpy(ended.bytes, from->bytes, from->length);
	answer = ganeshas(to, &ended, compound);
	free(ended.bytes);
	return answer;
}
