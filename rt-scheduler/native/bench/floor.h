/* SPDX-License-Identifier: Apache-2.0 */
/* floor.h - the least latency that this machine allows: two threads exchange a word. */
#ifndef GPUSEG_BENCH_FLOOR_H
#define GPUSEG_BENCH_FLOOR_H

#include <stdbool.h>

#include "latencies.h"

struct floor_setting {
	int cpu;	 /* of the measuring thread */
	int peer_cpu;	 /* of the answering thread */
	bool futex;	 /* the measuring thread sleeps until the peer wakes it; otherwise both spin */
	int64_t pace_ns; /* pause between two rounds, spent spinning */
	size_t warmup;
};

/* Fills the array. 0, or -errno of pinning or thread creation. */
int measure_floor(const struct floor_setting *setting, struct latencies *latencies);

#endif /* GPUSEG_BENCH_FLOOR_H */
