/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hold_off.c - for how long a segment stays open when its work is done.
 *
 * A job often pauses: it looks at a result, the interpreter collects its garbage. A segment that ends there lets
 * lower work back to the GPU for a moment, and the next launch has to get rid of it again. A segment that stays open
 * keeps the GPU idle. So each pause costs either its length, or the hold-off and one change of contexts. The hold-off
 * learned is the one with which the latest pauses would have cost the least: long enough for pauses within jobs, if
 * there are any, and as short as it can be where there are only those between jobs.
 */
#include "gpu.h"
#include "hold_off.h"
#include "inject.h"
#include "settings.h"

#define CHANGE_NS (1500 * NS_PER_US) /* others enabled and disabled again, on an H200 */
#define PAUSES_LEAST 8
#define PAUSES_MOST 64 /* then half of them are forgotten */

static int64_t step_ns(unsigned int step)
{
	return HOLD_OFF_LEAST_NS << step;
}

int64_t quiet_since_ns(const struct gpu *gpu)
{
	return gpu->idle_ns > gpu->launch_ns ? gpu->idle_ns : gpu->launch_ns;
}

int64_t hold_off_ns(const struct gpu *gpu)
{
	return gpu->pauses.hold_off_ns ? gpu->pauses.hold_off_ns : inject.settings.hold_off_ns;
}

static int64_t cost_ns(const struct pauses *p, unsigned int step)
{
	int64_t ns = 0;

	for (unsigned int i = 0; i <= HOLD_OFF_STEPS; i++)
		ns += i <= step ? p->sum_ns[i] : (int64_t)p->count[i] * (step_ns(step) + CHANGE_NS);
	return ns;
}

static unsigned int cheapest(const struct pauses *p)
{
	unsigned int best = 0;

	for (unsigned int step = 1; step < HOLD_OFF_STEPS; step++) {
		if (cost_ns(p, step) < cost_ns(p, best))
			best = step;
	}
	return best;
}

static void forget_half(struct pauses *p)
{
	p->seen /= 2;
	for (unsigned int i = 0; i <= HOLD_OFF_STEPS; i++) {
		p->sum_ns[i] /= 2;
		p->count[i] /= 2;
	}
}

void hold_off_learn(struct gpu *gpu, int64_t at_ns)
{
	const int64_t since_ns = quiet_since_ns(gpu), pause_ns = at_ns - since_ns;
	struct pauses *p = &gpu->pauses;
	unsigned int step = 0;

	/* Shorter ones end no segment. */
	if (!gpu->idle_ns || since_ns == p->latest_ns || pause_ns <= HOLD_OFF_LEAST_NS)
		return;
	p->latest_ns = since_ns;
	while (step < HOLD_OFF_STEPS && pause_ns > step_ns(step))
		step++;
	p->count[step]++;
	p->sum_ns[step] += pause_ns;
	if (++p->seen >= PAUSES_LEAST)
		p->hold_off_ns = step_ns(cheapest(p));
	if (p->seen >= PAUSES_MOST)
		forget_half(p);
}
