/* SPDX-License-Identifier: Apache-2.0 */
/* SHA-256 (FIPS 180-4). The constants are the first 32 bits of the fractional parts of roots of primes: computed. */
#define _GNU_SOURCE
#include "selftest.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

struct sha {
	uint32_t state[8];
	uint32_t constants[64];
	uint8_t block[64];
	uint64_t length;
};

static uint32_t rotate(uint32_t x, unsigned n)
{
	return x >> n | x << (32 - n);
}

/* The first 32 bits behind the point of the square (cube = false) or cube root of a prime below 312. */
static uint32_t root_fraction(uint32_t prime, bool cube)
{
	unsigned __int128 x = 0;

	/* the largest x of 37 bits with x^2 <= prime << 64, or x^3 <= prime << 96: 5 bits before the point */
	for (int bit = 36; bit >= 0; bit--) {
		const unsigned __int128 y = x | (unsigned __int128)1 << bit;

		if (cube ? y * y * y <= (unsigned __int128)prime << 96 : y * y <= (unsigned __int128)prime << 64)
			x = y;
	}
	return (uint32_t)x;
}

static void start(struct sha *s)
{
	unsigned count = 0;

	*s = (struct sha){.length = 0};
	for (uint32_t n = 2; count < 64; n++) {
		bool prime = true;

		for (uint32_t d = 2; d * d <= n; d++)
			prime = prime && n % d != 0;
		if (!prime)
			continue;
		if (count < 8)
			s->state[count] = root_fraction(n, false);
		s->constants[count++] = root_fraction(n, true);
	}
}

static void mix(struct sha *s)
{
	uint32_t w[64], v[8];

	for (int i = 0; i < 16; i++)
		w[i] = (uint32_t)s->block[4 * i] << 24 | (uint32_t)s->block[4 * i + 1] << 16 |
		       (uint32_t)s->block[4 * i + 2] << 8 | s->block[4 * i + 3];
	for (int i = 16; i < 64; i++)
		w[i] = w[i - 16] + (rotate(w[i - 15], 7) ^ rotate(w[i - 15], 18) ^ w[i - 15] >> 3) + w[i - 7] +
		       (rotate(w[i - 2], 17) ^ rotate(w[i - 2], 19) ^ w[i - 2] >> 10);
	memcpy(v, s->state, sizeof(v));
	for (int i = 0; i < 64; i++) {
		const uint32_t a = v[0], e = v[4];
		const uint32_t one = v[7] + (rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)) +
				     ((e & v[5]) ^ (~e & v[6])) + s->constants[i] + w[i];
		const uint32_t two =
			(rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)) + ((a & v[1]) ^ (a & v[2]) ^ (v[1] & v[2]));

		memmove(v + 1, v, 7 * sizeof(v[0]));
		v[4] += one;
		v[0] = one + two;
	}
	for (int i = 0; i < 8; i++)
		s->state[i] += v[i];
}

static void add(struct sha *s, const uint8_t *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		s->block[s->length++ % 64] = bytes[i];
		if (s->length % 64 == 0)
			mix(s);
	}
}

int file_hash(const char *path, char digits[65])
{
	static uint8_t buffer[65536];
	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	uint8_t tail[8];
	struct sha s;
	uint64_t bits;
	ssize_t n;

	if (fd < 0)
		return -errno;
	start(&s);
	while ((n = read(fd, buffer, sizeof(buffer))) > 0)
		add(&s, buffer, (size_t)n);
	close(fd);
	if (n < 0)
		return -EIO;
	bits = s.length * 8;
	add(&s, (const uint8_t *)"\x80", 1);
	while (s.length % 64 != 56)
		add(&s, (const uint8_t *)"", 1);
	for (int i = 0; i < 8; i++)
		tail[i] = (uint8_t)(bits >> (56 - 8 * i));
	add(&s, tail, sizeof(tail));
	for (int i = 0; i < 8; i++)
		snprintf(digits + 8 * i, 9, "%08x", s.state[i]);
	return 0;
}
