/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loads.h - processes that keep the GPU busy beside the measured one: ordinary programs that do not know gpuseg.
 *
 * Each is this program, executed anew, since a child of a process that has used CUDA must not use it. They end with it.
 */
#ifndef GPUSEG_LATENCY_LOADS_H
#define GPUSEG_LATENCY_LOADS_H

#include <stdint.h>
#include <sys/types.h>

enum { LOADS_MAX = 16 };

#define LOAD_KINDS "products, copies, launches, contexts"
#define LOAD_ARGUMENT "--load-process" /* of the child: KIND GPU ROUNDS DESCRIPTOR */
#define PRODUCTS_NS (20 * NS_PER_MS)
#define PRODUCTS_BLOCKS 8 /* on each multiprocessor */
#define PRODUCTS_THREADS 256

/* One page, shared. W: the child. */
struct load_page {
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
int loads_start(struct load loads[], int count, int ordinal, uint64_t product_rounds);

/* Ends those that were started; does not wait for what they have given to the GPU longer than some seconds. */
void loads_stop(struct load loads[], int count);

/* 0 if all are still there, -1 after one line. */
int loads_check(struct load loads[], int count);

uint64_t load_done(const struct load *load);

/* main() of the child, after LOAD_ARGUMENT. */
int load_main(int argc, char **argv);

#endif /* GPUSEG_LATENCY_LOADS_H */
