/* SPDX-License-Identifier: Apache-2.0 */
/*
 * co_run.c - small kernels of lower streams beside the work of the highest stream of the same process (--co-run).
 *
 * A job is the time in which the highest streams have work, from the first launch until all is known to be done. Some
 * jobs run alone, beside the others launches of small kernels on lower streams may go ahead. The slowdown is measured
 * on the jobs themselves, and kept by an account in ns, as the daemon does between processes (CoRunBudget.java): each
 * job pays in `percent` of what a job takes alone, each job beside which something was launched pays out what it took
 * longer. Below zero nothing is launched beside a job. So at any time
 *
 *   sum over jobs beside (took - alone) <= percent of the sum over all jobs (alone) + the largest single excess
 *
 * Two jobs in a row that exceed the budget end it for 64 jobs, and for twice as long each further time. Until four jobs
 * in a row were within the budget, only every fourth job is tried.
 */
#include "co_run.h"

#define ALONE_FIRST 8
#define ROUND 32
#define ALONE_EACH_ROUND 2
#define TRIAL_EVERY 4
#define STRIKES 2
#define PASSES 4
#define HOLD_FIRST 64
#define HOLD_LAST (1u << 16)
#define CREDIT_JOBS 50

bool co_run_begin(struct co_run *c)
{
	const uint64_t in_round = c->job % ROUND;

	return c->alone_count >= ALONE_FIRST && in_round >= ALONE_EACH_ROUND && c->credit_ns >= 0 &&
	       c->job >= c->held_until && (c->passes >= PASSES || in_round % TRIAL_EVERY == TRIAL_EVERY - 1);
}

/* The median of the last jobs alone. */
static void took_alone(struct co_run *c, int64_t took_ns)
{
	int64_t sorted[CO_RUN_ALONE_KEPT];

	c->alone[c->alone_at] = took_ns;
	c->alone_at = (c->alone_at + 1) % CO_RUN_ALONE_KEPT;
	if (c->alone_count < CO_RUN_ALONE_KEPT)
		c->alone_count++;
	for (unsigned int i = 0; i < c->alone_count; i++) {
		unsigned int at = i;

		for (; at > 0 && sorted[at - 1] > c->alone[i]; at--)
			sorted[at] = sorted[at - 1];
		sorted[at] = c->alone[i];
	}
	c->alone_ns = sorted[c->alone_count / 2];
}

static void judge(struct co_run *c, bool over)
{
	if (!over) {
		c->strikes = 0;
		if (c->passes < PASSES)
			c->passes++;
		return;
	}
	if (++c->strikes < STRIKES)
		return;
	if (!c->hold_jobs)
		c->hold_jobs = HOLD_FIRST;
	c->strikes = STRIKES - 1; /* one more trial, then it ends again */
	c->passes = 0;
	c->held_until = c->job + c->hold_jobs;
	if (c->hold_jobs < HOLD_LAST)
		c->hold_jobs *= 2;
	c->unfit++;
}

void co_run_end(struct co_run *c, unsigned int percent, int64_t took_ns, bool beside)
{
	int64_t allowed_ns, excess_ns;

	c->job++;
	if (!beside)
		took_alone(c, took_ns);
	else
		c->jobs_beside++;
	allowed_ns = c->alone_ns / 100 * percent + c->alone_ns % 100 * percent / 100;
	excess_ns = beside ? took_ns - c->alone_ns : 0;
	c->credit_ns += allowed_ns - excess_ns;
	if (c->credit_ns > CREDIT_JOBS * allowed_ns)
		c->credit_ns = CREDIT_JOBS * allowed_ns;
	if (beside)
		judge(c, excess_ns > allowed_ns);
}
