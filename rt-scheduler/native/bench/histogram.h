/* SPDX-License-Identifier: Apache-2.0 */
/*
 * histogram.h - counts of times in buckets of at most 3 % width, in memory of fixed size that processes can share. One
 * writer.
 *
 * Below 32 ns every value has a bucket; above, each power of two has 32.
 */
#ifndef GPUSEG_BENCH_HISTOGRAM_H
#define GPUSEG_BENCH_HISTOGRAM_H

#include <stdint.h>

enum { HISTOGRAM_SUB = 32, HISTOGRAM_BUCKETS = 60 * HISTOGRAM_SUB };

struct histogram {
	uint64_t count;
	int64_t max_ns;
	uint64_t buckets[HISTOGRAM_BUCKETS];
};

static inline unsigned histogram_bucket(int64_t ns)
{
	const uint64_t value = ns > 0 ? (uint64_t)ns : 0;
	unsigned shift;

	if (value < HISTOGRAM_SUB)
		return (unsigned)value;
	shift = 63 - 5 - (unsigned)__builtin_clzll(value); /* keeps the leading bit and five more */
	return (shift + 1) * HISTOGRAM_SUB + (unsigned)(value >> shift) - HISTOGRAM_SUB;
}

/* The largest value of a bucket. */
static inline int64_t histogram_value(unsigned bucket)
{
	const unsigned shift = bucket / HISTOGRAM_SUB - 1;

	if (bucket < HISTOGRAM_SUB)
		return bucket;
	return (int64_t)(((uint64_t)(bucket % HISTOGRAM_SUB + HISTOGRAM_SUB + 1) << shift) - 1);
}

static inline void histogram_add(struct histogram *h, int64_t ns)
{
	h->buckets[histogram_bucket(ns)]++;
	h->count++;
	if (ns > h->max_ns)
		h->max_ns = ns;
}

static inline void histogram_merge(struct histogram *into, const struct histogram *from)
{
	for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++)
		into->buckets[i] += from->buckets[i];
	into->count += from->count;
	if (from->max_ns > into->max_ns)
		into->max_ns = from->max_ns;
}

/* Nearest rank; per_million 999000 is p99.9. Upper end of the bucket, at most the largest value. 0 if empty. */
static inline int64_t histogram_at(const struct histogram *h, uint64_t per_million)
{
	const uint64_t rank = (h->count * per_million + 999999) / 1000000;
	uint64_t seen = 0;

	for (unsigned i = 0; i < HISTOGRAM_BUCKETS && h->count; i++) {
		seen += h->buckets[i];
		if (seen >= rank)
			return histogram_value(i) < h->max_ns ? histogram_value(i) : h->max_ns;
	}
	return h->max_ns;
}

#endif /* GPUSEG_BENCH_HISTOGRAM_H */
