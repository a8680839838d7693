// SPDX-License-Identifier: Apache-2.0
// Holds siphash.h against the test vectors that its authors publish (vectors.h): inputs of 0 to 63 bytes that count up
// from 0, with the key 00 01 ... 0f. build.sh runs it; a wrong hash makes no image.
#include <stdio.h>

#include "siphash.h"
#include "vectors.h"

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
	return wrong != 0;
}
