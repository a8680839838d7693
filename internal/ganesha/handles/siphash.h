// SPDX-License-Identifier: Apache-2.0
// SipHash-2-4 with 64 bits of output (Aumasson and Bernstein, "SipHash: a fast short-input PRF", 2012).
// selftest.c holds it against the authors' test vectors.
#ifndef HOWDAH_SIPHASH_H
#define HOWDAH_SIPHASH_H

#include <endian.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { SIPHASH_KEY_BYTES = 16 };

struct siphash_key {
	uint64_t low, high;
};

static inline uint64_t siphash_word(const uint8_t *bytes)
{
	uint64_t word;

	memcpy(&word, bytes, sizeof(word));
	return le64toh(word);
}

static inline struct siphash_key siphash_key_from(const uint8_t bytes[SIPHASH_KEY_BYTES])
{
	return (struct siphash_key){ siphash_word(bytes), siphash_word(bytes + 8) };
}

static inline uint64_t siphash_turn(uint64_t word, unsigned int by)
{
	return word << by | word >> (64 - by);
}

static inline void siphash_round(uint64_t *a, uint64_t *b, uint64_t *c, uint64_t *d)
{
	*a += *b;
	*b = siphash_turn(*b, 13) ^ *a;
	*a = siphash_turn(*a, 32);
	*c += *d;
	*d = siphash_turn(*d, 16) ^ *c;
	*a += *d;
	*d = siphash_turn(*d, 21) ^ *a;
	*c += *b;
	*b = siphash_turn(*b, 17) ^ *c;
	*c = siphash_turn(*c, 32);
}

static inline uint64_t siphash(struct siphash_key key, const uint8_t *bytes, size_t length)
{
	uint64_t a = key.low ^ UINT64_C(0x736f6d6570736575);
	uint64_t b = key.high ^ UINT64_C(0x646f72616e646f6d);
	uint64_t c = key.low ^ UINT64_C(0x6c7967656e657261);
	uint64_t d = key.high ^ UINT64_C(0x7465646279746573);
	// The last word has what is left of the bytes, and the length in its highest byte.
	uint8_t last[8] = { 0 };
	size_t whole = length & ~(size_t)7;

	memcpy(last, bytes + whole, length - whole);
	last[7] = (uint8_t)length;
	for (size_t at = 0; at <= whole; at += 8) {
		uint64_t word = siphash_word(at < whole ? bytes + at : last);

		d ^= word;
		siphash_round(&a, &b, &c, &d);
		siphash_round(&a, &b, &c, &d);
		a ^= word;
	}
	c ^= 0xff;
	for (int round = 0; round < 4; round++)
		siphash_round(&a, &b, &c, &d);
	return a ^ b ^ c ^ d;
}

#endif
