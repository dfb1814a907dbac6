/* SPDX-License-Identifier: Apache-2.0 */
/* co_run.h - the account of co_run.c. Reads no clock, calls nothing, allocates nothing. Not thread-safe. */
#ifndef GPUSEG_CO_RUN_H
#define GPUSEG_CO_RUN_H

#include <stdbool.h>
#include <stdint.h>

#define CO_RUN_ALONE_KEPT 15

/* All zero at the beginning. */
struct co_run {
	int64_t alone[CO_RUN_ALONE_KEPT];
	unsigned int alone_at, alone_count;
	int64_t alone_ns;  /* what a job takes alone; 0 = not known yet */
	int64_t credit_ns; /* what is left of the budget */
	uint64_t job;	   /* jobs so far */
	uint64_t jobs_beside;
	unsigned int strikes, passes, hold_jobs;
	uint64_t held_until; /* job */
	uint64_t unfit;	     /* how often it was ended for a while */
};

/* A job begins. True: small kernels may be launched beside it. */
bool co_run_begin(struct co_run *account);
/* It has ended; `beside`: some were. `percent`: the budget, 1..100. */
void co_run_end(struct co_run *account, unsigned int percent, int64_t took_ns, bool beside);

#endif /* GPUSEG_CO_RUN_H */
