/* SPDX-License-Identifier: Apache-2.0 */
/* bench.h - samples and their quantiles. */
#ifndef BENCH_H
#define BENCH_H

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "platform.h"

static int bench_compare(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

/* Prints p50, p99, p99.9 and the largest; drops the first fifth as warm-up. Sorts in place. */
static inline void bench_report(const char *what, int64_t *ns, size_t n)
{
	size_t skip = n / 5;

	ns += skip;
	n -= skip;
	qsort(ns, n, sizeof(*ns), bench_compare);
	printf("%-44s n=%zu p50=%" PRId64 " p99=%" PRId64 " p99.9=%" PRId64 " max=%" PRId64 " ns\n", what, n, ns[n / 2],
	       ns[n * 99 / 100], ns[n * 999 / 1000], ns[n - 1]);
}

#endif /* BENCH_H */
