/* SPDX-License-Identifier: Apache-2.0 */
/*
 * measure.h - the periodic work and its times.
 *
 *   due --(late)--> awake - begin, launch - the GPU -> done          then sleep until the next time that is due
 *
 * The response counts from the time at which the work was due, so what the CPU loses is in it. A time that passes
 * while the work before is not done is skipped and counted; the response of that shows why.
 */
#ifndef GPUSEG_LATENCY_MEASURE_H
#define GPUSEG_LATENCY_MEASURE_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "bench/histogram.h"
#include "common/base.h"
#include "gpuseg.h"
#include "latency/gpu.h"

/* Set by SIGINT and SIGTERM. */
extern volatile int stopping;

enum { BREAK_NEVER = 0 };

struct times {
	struct histogram histogram;
	int64_t min_ns, last_ns, sum_ns;
};

struct measurement {
	const char *key;       /* in JSON and files: "alone" */
	char title[64];	       /* for people */
	struct times response; /* from due to done */
	struct times late;     /* of that, until the CPU was awake */
	/*
	 * In a space: from awake to done. Samples in which another thread had the CPU meanwhile, or it was away for
	 * more than 50 us between two looks at the GPU, are only counted: that is no slowdown by what runs on the GPU.
	 */
	struct times execution;
	uint64_t cpu_taken;
	struct times in_flight; /* in a space: of all loads, see loads.h */
	uint64_t loads_cpu_taken;
	uint64_t skipped;
	int64_t took_ns;
	bool broke;			     /* the last sample was longer than --break */
	int64_t break_after_ns, break_at_ns; /* since the begin of this measurement; of CLOCK_MONOTONIC */
	double load_rates[16];
	uint64_t touches; /* with a task: how often the GPU was made to switch to this process ahead of a begin */
};

struct plan {
	struct work work;
	int64_t period_ns, duration_ns, break_ns;
	bool space; /* keep the times of execution, too */
	bool live;  /* a line on stderr that follows */
};

/* Measures until the duration is over, a sample is too long, or `stopping`. task NULL: without marks. 0 or -1. */
int measure(struct gpu *gpu, const struct plan *plan, gpuseg_client *client, gpuseg_task *task, struct measurement *m);

/* How often the kernel has given this thread's CPU to another thread. */
long cpu_takings(void);

/* Adds one. */
void times_take(struct times *t, int64_t ns);

/* Adds all of another. */
void times_merge(struct times *into, const struct times *from);

/* In microseconds, so short that many fit into a line of 80 columns. */
static inline const char *figure(int64_t ns, char text[24])
{
	snprintf(text, 24, ns < 1000 * NS_PER_US ? "%.1f" : "%.0f", (double)ns / 1e3);
	return text;
}

static inline int64_t times_mean(const struct times *t)
{
	return t->histogram.count ? t->sum_ns / (int64_t)t->histogram.count : 0;
}

#endif /* GPUSEG_LATENCY_MEASURE_H */
