/* SPDX-License-Identifier: Apache-2.0 */
#include "latencies.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int latencies_create(struct latencies *latencies, size_t capacity)
{
	*latencies = (struct latencies){.ns = malloc(capacity * sizeof(int64_t)), .capacity = capacity};
	if (!latencies->ns)
		return -ENOMEM;
	memset(latencies->ns, 0xff,
	       capacity * sizeof(int64_t)); /* not 0, or the compiler would turn it into calloc() */
	return 0;
}

void latencies_destroy(struct latencies *latencies)
{
	free(latencies->ns);
	*latencies = (struct latencies){0};
}

static int ascending(const void *a, const void *b)
{
	const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

void latencies_sort(struct latencies *latencies)
{
	qsort(latencies->ns, latencies->count, sizeof(int64_t), ascending);
}

int64_t latencies_at(const struct latencies *latencies, unsigned per_mille)
{
	const size_t rank = (latencies->count * per_mille + 999) / 1000;

	return latencies->ns[rank ? rank - 1 : 0];
}

double latencies_mean(const struct latencies *latencies)
{
	double sum = 0;

	for (size_t i = 0; i < latencies->count; i++)
		sum += (double)latencies->ns[i];
	return sum / (double)latencies->count;
}
