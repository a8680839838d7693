// SPDX-License-Identifier: Apache-2.0
// Holds siphash.h against the test vectors that its authors publish (vectors.h): inputs of 0 to 63 bytes that count up
// from 0, with the key 00 01 ... 0f; and records.h against records of both kinds. build.sh runs it; what is wrong makes no image.
#include <stdio.h>

#include "records.h"
#include "siphash.h"
#include "vectors.h"

static int wrong_records(void)
{
	static const struct {
		const char *record;
		bool is_own;
	} records[] = {
		{ "::ffff:127.246.49.78-(37:howdah instance manager of training-0)", true },
		{ "127.0.0.1-(3:own)", true },
		{ "::1-(3:own)", true },
		{ "::ffff:10.244.1.127-(30:Linux NFSv4.2 node1/127.0.0.1-()", false },
		{ "10.127.0.1-(5:::1-()", false },
		{ "1270::1-(3:far)", false },
		{ "::1:127.0.0.1-(3:far)", false },
		{ "::ffff:", false },
		{ "", false },
	};
	int wrong = 0;

	for (size_t i = 0; i < sizeof(records) / sizeof(records[0]); i++) {
		const char *record = records[i].record;

		// The last byte of what has to be there is missing.
		if (is_own_client(record, strlen(record)) != records[i].is_own || is_own_client(record, records[i].is_own ? 3 : 0)) {
			fprintf(stderr, "%s is taken for another's or the other way around\n", record);
			wrong++;
		}
	}
	return wrong;
}

int main(void)
{
	uint8_t key[SIPHASH_KEY_BYTES], input[SIPHASH_VECTORS];
	int wrong = 0;

	for (int i = 0; i < SIPHASH_KEY_BYTES; i++)
		key[i] = (uint8_t)i;
	for (int i = 0; i < SIPHASH_VECTORS; i++) {
		input[i] = (uint8_t)i;
		if (siphash(siphash_key_from(key), input, (size_t)i) != siphash_word(siphash_vectors[i])) {
			fprintf(stderr, "siphash of %d bytes is wrong\n", i);
			wrong++;
		}
	}
	printf("siphash: %d vectors, %d wrong\n", SIPHASH_VECTORS, wrong);
	wrong += wrong_records();
	return wrong != 0;
}
