/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loads.h - processes that keep the GPU busy beside the measured one: ordinary programs that do not know gpuseg.
 *
 * Each is this program, executed anew, since a child of a process that has used CUDA must not use it. They end with it.
 */
#ifndef GPUSEG_LATENCY_LOADS_H
#define GPUSEG_LATENCY_LOADS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "latency/measure.h"

enum { LOADS_MAX = 16 };

#define LOAD_KINDS "products, reads, copies, launches, contexts"
#define LOAD_ARGUMENT "--load-process" /* of the child: KIND GPU DESCRIPTOR */
#define PRODUCTS_NS (20 * NS_PER_MS)
#define BOUNDED_NS NS_PER_MS /* the same in a space */
#define PRODUCTS_BLOCKS 8    /* on each multiprocessor */
#define PRODUCTS_THREADS 256

/* How loads work. Kernels were calibrated on the whole GPU, outside of MPS. */
struct load_order {
	uint64_t product_rounds, read_rounds; /* of a kernel of PRODUCTS_NS, or BOUNDED_NS */
	unsigned int multiprocessors;
	/*
	 * As best effort in a space, which may have one kernel queued, or some us of them: one kernel, a copy each
	 * way or LAUNCHES_BOUNDED launches at a time. What it launches does not depend on its own limit.
	 */
	bool bounded;
};

/*
 * Shared. W: the parent writes `order` before the child starts, and `measured`; the child the rest.
 *
 * in_flight: how long the GPU had what a bounded load gave it at a time, from before the first launch to the end of
 * all, by the GPU's own clock (events). Whenever the load is told to launch no more, the GPU has done what it was given
 * within the longest of these. What was given while the CPU was taken from the load is only counted: the GPU had to
 * wait for it.
 */
struct load_page {
	struct load_order order;
	uint32_t measured; /* relaxed: 1 = keep these times */
	struct times in_flight;
	uint64_t cpu_taken;
	uint64_t done;	/* relaxed: kernels, copies, launches or contexts so far */
	uint32_t ready; /* release: 1 = it has begun */
};

struct load {
	const struct load_kind *kind;
	pid_t pid;
	struct load_page *page;
	uint64_t done_before; /* when the measurement began */
};

/* The kind of this name, NULL: there is none. */
const struct load_kind *load_kind_named(const char *name);
const char *load_name(const struct load *load);
/* What it counts: "kernels of 20 ms". */
const char *load_unit(const struct load *load);

/* Starts all and waits until each works. 0, or -1 after one line. */
int loads_start(struct load loads[], int count, int ordinal, const struct load_order *order);

/* Whether the times in flight are kept from now on. */
void loads_measure(struct load loads[], int count, bool measured);

/* Ends those that were started; does not wait for what they have given to the GPU longer than some seconds. */
void loads_stop(struct load loads[], int count);

/* 0 if all are still there, -1 after one line. */
int loads_check(struct load loads[], int count);

uint64_t load_done(const struct load *load);

/* main() of the child, after LOAD_ARGUMENT. */
int load_main(int argc, char **argv);

#endif /* GPUSEG_LATENCY_LOADS_H */
