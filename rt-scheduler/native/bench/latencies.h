/* SPDX-License-Identifier: Apache-2.0 */
/* latencies.h - latencies of one measurement: stored unchanged in pre-faulted memory, sorted afterwards. */
#ifndef GPUSEG_BENCH_LATENCIES_H
#define GPUSEG_BENCH_LATENCIES_H

#include <stddef.h>
#include <stdint.h>

struct latencies {
	int64_t *ns;
	size_t capacity;
	size_t count;
};

int latencies_create(struct latencies *latencies, size_t capacity); /* 0 or -ENOMEM; every page is touched */
void latencies_destroy(struct latencies *latencies);

static inline void latencies_add(struct latencies *latencies, int64_t ns)
{
	if (latencies->count < latencies->capacity)
		latencies->ns[latencies->count++] = ns;
}

void latencies_sort(struct latencies *latencies);
/* Nearest rank of the sorted values; per_mille 500 is the median, 1000 the largest. */
int64_t latencies_at(const struct latencies *latencies, unsigned per_mille);
double latencies_mean(const struct latencies *latencies);

#endif /* GPUSEG_BENCH_LATENCIES_H */
