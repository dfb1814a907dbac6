/* SPDX-License-Identifier: Apache-2.0 */
/*
 * flight.c - streams of one process by their CUDA priority (GPUSEG_EXEC_STREAMS=priority).
 *
 * A GPU lets a stream of higher priority go first between thread blocks, but not before what was queued already. So
 * while work of a higher stream is outstanding, launches on lower ones wait at their entry, and lower streams never
 * have more than `flight_ns` of work in flight: when a batch of that length is launched, the next launch waits until it
 * is done. How long a kernel takes is learned by function, from batch to batch; an unknown one makes up a batch.
 *
 * A stream that works for a task (gpuseg_stream()) has that task's priority, and goes before all that have none.
 *
 * Off by default: a program may rely on its streams running side by side, as NCCL does.
 *
 * Where the daemon can only hold launches, the same bound holds for all work of a best-effort process (`bound_ns`), so
 * that a real-time task finds the GPU free soon after the launches are held. While no such task is open it is longer.
 */
#include "costs.h"
#include "flight.h"
#include "gpu.h"
#include "inject.h"
#include "kernels.h"
#include "streams.h"

#define COST_LEAST_NS NS_PER_US
#define RATIO_MOST 4

static int top_priority; /* of all streams seen */

bool flight_applies(const struct stream *s)
{
	return s->context->gpu->flight.bound_ns > 0 || (inject.settings.flight_ns > 0 && top_priority < s->priority);
}

void flight_note_priority(struct stream *s, int priority)
{
	s->priority = priority;
	s->priority_known = true;
	if (priority < top_priority)
		top_priority = priority;
}

void flight_set_top(int priority)
{
	top_priority = priority;
}

void flight_launched(struct stream *s, uintptr_t function, int percent, int64_t at_ns)
{
	struct gpu *gpu = s->context->gpu;

	if (gpu->flight.ns == 0) {
		gpu->flight.batch.begin_ns = at_ns;
		gpu->flight.batch.relaxed = flight_room_ns(gpu) > flight_limit_ns();
		gpu->flight.batch.count = 0;
		gpu->flight.batch.kernels = gpu->flight.batch.percent = 0;
		gpu->flight.batch.opaque = false;
	}
	if (percent >= 0) {
		gpu->flight.batch.kernels++;
		gpu->flight.batch.percent += (unsigned int)percent;
	}
	gpu->flight.batch.opaque |= percent == PERCENT_UNKNOWN;
	if (gpu->flight.batch.count < BATCH_MAX)
		gpu->flight.batch.functions[gpu->flight.batch.count++] = function;
	gpu->flight.ns += cost_of(function)->ns;
}

void flight_forget(struct gpu *gpu)
{
	gpu->flight.ns = 0;
	gpu->flight.batch.count = 0;
}

int64_t flight_room_ns(const struct gpu *gpu)
{
	return inject.settings.flight_ns > 0 ? inject.settings.flight_ns : gpu->flight.bound_ns;
}

void flight_bound(struct gpu *gpu, int64_t bound_ns)
{
	gpu->flight.bound_ns = bound_ns;
}

void flight_unbound(struct gpu *gpu)
{
	inject.settings.flight_ns = 0;
	inject.settings.bound_ns = 0;
	gpu->flight.bound_ns = 0;
}

/* All is done: what did the batch take, compared with what it was thought to take? */
void flight_landed(struct gpu *gpu, int64_t at_ns)
{
	static uint32_t landings;
	const int64_t took_ns = at_ns - gpu->flight.batch.begin_ns, thought_ns = gpu->flight.ns;
	int64_t longest_ns = 0;

	if (thought_ns <= 0)
		return;
	landings++;
	for (unsigned int i = 0; i < gpu->flight.batch.count; i++) {
		struct cost *c = cost_of(gpu->flight.batch.functions[i]);
		int64_t ns;

		if (c->landing == landings)
			continue; /* launched more than once: corrected already */
		c->landing = landings;
		ns = took_ns >= RATIO_MOST * thought_ns	  ? c->ns * RATIO_MOST
		     : took_ns <= thought_ns / RATIO_MOST ? c->ns / RATIO_MOST
							  : c->ns * took_ns / thought_ns;

		ns = (c->ns + ns) / 2;
		c->ns = ns < COST_LEAST_NS ? COST_LEAST_NS : ns > NS_PER_S ? NS_PER_S : ns;
		if (c->ns > longest_ns)
			longest_ns = c->ns;
	}
	if (!gpu->flight.batch.relaxed) /* else it has kernels of all kinds */
		kernels_landed(gpu, &gpu->flight.batch, took_ns, longest_ns);
	flight_forget(gpu);
}
