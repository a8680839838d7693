// SPDX-License-Identifier: Apache-2.0
#ifndef HOWDAH_RECORDS_H
#define HOWDAH_RECORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

static inline bool record_begins(const char *record, size_t length, const char *with)
{
	return length >= strlen(with) && memcmp(record, with, strlen(with)) == 0;
}

// A record is "ADDRESS-(LENGTH:OWNER)", maybe with more behind it, and not ended by a NUL. Those who come over loopback are the server's own.
static inline bool is_own_client(const char *record, size_t length)
{
	const char *mapped = "::ffff:";

	if (record_begins(record, length, "::1-("))
		return true;
	if (record_begins(record, length, mapped)) {
		record += strlen(mapped);
		length -= strlen(mapped);
	}
	return record_begins(record, length, "127.");
}

#endif
