/* SPDX-License-Identifier: Apache-2.0 */
/* What the child's kernel computes: a word, stepped as a linear congruential generator. */
#ifndef GPUSEG_SELFTEST_SPIN_H
#define GPUSEG_SELFTEST_SPIN_H

#include <stdint.h>

#define SPIN_FIRST 12345u
#define SPIN_FACTOR 1664525u
#define SPIN_ADDEND 1013904223u

/* After so many iterations; by squaring, because there are millions. */
static inline uint32_t spin_result(uint64_t iterations)
{
	uint32_t factor = SPIN_FACTOR, addend = SPIN_ADDEND, x = SPIN_FIRST;

	for (; iterations > 0; iterations >>= 1) {
		if (iterations & 1)
			x = x * factor + addend;
		addend *= factor + 1;
		factor *= factor;
	}
	return x;
}

#endif
