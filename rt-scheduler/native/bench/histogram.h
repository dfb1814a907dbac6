/* SPDX-License-Identifier: Apache-2.0 */
/*
 * histogram.h - counts of times in buckets of less than 0.8 % width, in memory of fixed size that processes can share.
 * One writer; readers may look meanwhile.
 *
 * Below 128 ns every value has a bucket; above, each power of two has 128.
 */
#ifndef GPUSEG_BENCH_HISTOGRAM_H
#define GPUSEG_BENCH_HISTOGRAM_H

#include <stdint.h>

enum {
	HISTOGRAM_BITS = 7,
	HISTOGRAM_SUB = 1 << HISTOGRAM_BITS,
	HISTOGRAM_BUCKETS = (65 - HISTOGRAM_BITS) * HISTOGRAM_SUB
};

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
	shift = 63 - HISTOGRAM_BITS - (unsigned)__builtin_clzll(value); /* keeps the leading bit and seven more */
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
	uint64_t *bucket = &h->buckets[histogram_bucket(ns)];

	__atomic_store_n(bucket, *bucket + 1, __ATOMIC_RELAXED);
	__atomic_store_n(&h->count, h->count + 1, __ATOMIC_RELAXED);
	if (ns > h->max_ns)
		__atomic_store_n(&h->max_ns, ns, __ATOMIC_RELAXED);
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
	const uint64_t count = __atomic_load_n(&h->count, __ATOMIC_RELAXED);
	const int64_t max_ns = __atomic_load_n(&h->max_ns, __ATOMIC_RELAXED);
	const uint64_t rank = (count * per_million + 999999) / 1000000;
	uint64_t seen = 0;

	for (unsigned i = 0; i < HISTOGRAM_BUCKETS && count; i++) {
		seen += __atomic_load_n(&h->buckets[i], __ATOMIC_RELAXED);
		if (seen >= rank)
			return histogram_value(i) < max_ns ? histogram_value(i) : max_ns;
	}
	return max_ns;
}

#endif /* GPUSEG_BENCH_HISTOGRAM_H */
