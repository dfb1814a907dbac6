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
 * that a real-time task finds the GPU free soon after the launches are held.
 */
#include <errno.h>

#include "inject.h"

#define RANK_FIRST (-100) /* of priority 1: beyond any that CUDA has */
#define SPIN_NS (50 * NS_PER_US)
#define STEP_NS (20 * NS_PER_US)
#define COST_LEAST_NS NS_PER_US
#define RATIO_MOST 4

int64_t flight_limit_ns(void)
{
	return inject.settings.flight_ns > 0 ? inject.settings.flight_ns : inject.settings.bound_ns;
}

struct cost *cost_of(uintptr_t function)
{
	struct cost *c = &inject.costs[((uint64_t)function * 0x9e3779b97f4a7c15u) >> 54];

	if (c->function != function)
		*c = (struct cost){.function = function, .ns = flight_limit_ns()};
	return c;
}

/* Is there work on a stream of this GPU that goes before `priority`? Lower numbers do. */
static bool higher_busy(const struct gpu *gpu, int priority)
{
	for (size_t w = 0; w < STREAMS_MAX / 64; w++) {
		for (uint64_t bits = inject.to_look_at[w]; bits; bits &= bits - 1) {
			const struct stream *s = &inject.streams[w * 64 + (size_t)__builtin_ctzll(bits)];

			if (s->uid && s->context->gpu == gpu && s->priority < priority && stream_busy(s))
				return true;
		}
	}
	return false;
}

/* Streams of this GPU whose work is to be known to be done soon. Lock held, released meanwhile. */
static void ask(const struct gpu *gpu)
{
	struct stream *chosen[STREAM_WAYS];
	size_t count = 0;

	for (size_t w = 0; w < STREAMS_MAX / 64; w++) {
		for (uint64_t bits = inject.to_look_at[w]; bits; bits &= bits - 1) {
			struct stream *s = &inject.streams[w * 64 + (size_t)__builtin_ctzll(bits)];

			if (s->uid && s->context->gpu == gpu && !s->marker && !s->entered && !s->gone &&
			    s->last > s->done && count < STREAM_WAYS)
				chosen[count++] = s;
		}
	}
	if (!count)
		return;
	inject_unlock();
	if (pthread_mutex_trylock(&inject.device_lock) == 0) { /* else another thread is asking */
		for (size_t i = 0; i < count; i++)
			marker_write(chosen[i]);
		device_unlock();
	}
	inject_lock();
}

static bool may_launch(const struct gpu *gpu, const struct stream *s)
{
	if (inject.settings.flight_ns > 0 && higher_busy(gpu, s->priority))
		return false;
	return gpu->flight_ns == 0 || gpu->flight_ns < flight_limit_ns();
}

bool flight_applies(const struct stream *s)
{
	return s->context->gpu->bound_ns > 0 || (inject.settings.flight_ns > 0 && inject.top_priority < s->priority);
}

void flight_note_priority(struct stream *s, int priority)
{
	s->priority = priority;
	s->priority_known = true;
	if (priority < inject.top_priority)
		inject.top_priority = priority;
}

bool flight_rank(uintptr_t handle, int *priority)
{
	for (unsigned int i = 0; i < inject.rank_count; i++) {
		if (inject.ranks[i].handle == handle) {
			*priority = inject.ranks[i].priority;
			return true;
		}
	}
	return false;
}

/* The priorities of streams are looked up anew at their next launch; those with work keep their place until then. */
static void ranks_changed(uintptr_t handle)
{
	int top = 0;

	for (size_t i = 0; i < STREAMS_MAX; i++) {
		struct stream *s = &inject.streams[i];
		int priority = 0;

		if (s->uid && s->handle == handle) {
			s->priority_known = flight_rank(handle, &priority);
			s->priority = priority;
		}
		if (s->uid && s->priority < top)
			top = s->priority;
	}
	for (unsigned int i = 0; i < inject.rank_count; i++) {
		if (inject.ranks[i].priority < top)
			top = inject.ranks[i].priority;
	}
	inject.top_priority = top;
}

int flight_set_rank(uintptr_t handle, int rank)
{
	const uintptr_t named = handle ? handle : STREAM_LEGACY;
	const int priority = rank > 0 ? RANK_FIRST - rank : 0;
	unsigned int i = 0;

	if (named == STREAM_PER_THREAD)
		return -EINVAL;
	while (i < inject.rank_count && inject.ranks[i].handle != named)
		i++;
	if (rank < 0) {
		if (i == inject.rank_count)
			return 0;
		inject.ranks[i] = inject.ranks[--inject.rank_count];
	} else {
		if (i == RANKS_MAX)
			return -ENOSPC;
		inject.ranks[i] = (struct rank){.handle = named, .priority = priority};
		if (i == inject.rank_count)
			inject.rank_count++;
		if (inject.settings.flight_ns == 0)
			inject.settings.flight_ns = inject.settings.in_flight_ns;
	}
	ranks_changed(named);
	return 0;
}

void flight_wait(struct stream *s)
{
	struct gpu *gpu = s->context->gpu;
	const uint32_t use = s->use;
	const int64_t begin_ns = now_ns();
	int64_t at_ns = begin_ns;

	s->pinned++;
	gpu->held++; /* what is in flight may end meanwhile, and the next launch is here */
	while (flight_applies(s) && !may_launch(gpu, s)) {
		if (at_ns - begin_ns >= inject.settings.wait_ns) {
			inject.settings.flight_ns = 0;
			inject.settings.bound_ns = 0;
			gpu->bound_ns = 0;
			say("a launch waited for %lld ms until there was room for it; work in flight is not bounded, "
			    "and streams are not told apart, from here on",
			    (long long)(inject.settings.wait_ns / NS_PER_MS));
			break;
		}
		if (!__atomic_load_n(&inject.active, __ATOMIC_ACQUIRE))
			break;
		ask(gpu);
		markers_look();
		inject_unlock();
		if (at_ns - begin_ns < SPIN_NS)
			cpu_relax();
		else
			sleep_ns(STEP_NS);
		inject_lock();
		at_ns = now_ns();
		if (s->use != use)
			break; /* its context was destroyed */
	}
	if (s->use == use)
		s->pinned--;
	gpu->held--;
	inject.wake_due = true; /* the library's thread did not see to the end of the segment meanwhile */
}

void flight_launched(struct stream *s, uintptr_t function, int percent, int64_t at_ns)
{
	struct gpu *gpu = s->context->gpu;

	if (gpu->flight_ns == 0) {
		gpu->batch_ns = at_ns;
		gpu->batch_count = 0;
		gpu->batch_kernels = gpu->batch_percent = 0;
		gpu->batch_opaque = false;
	}
	if (percent >= 0) {
		gpu->batch_kernels++;
		gpu->batch_percent += (unsigned int)percent;
	}
	gpu->batch_opaque |= percent == PERCENT_UNKNOWN;
	if (gpu->batch_count < BATCH_MAX)
		gpu->batch[gpu->batch_count++] = function;
	gpu->flight_ns += cost_of(function)->ns;
}

bool flight_lower_busy(const struct gpu *gpu)
{
	for (size_t w = 0; w < STREAMS_MAX / 64; w++) {
		for (uint64_t bits = inject.to_look_at[w]; bits; bits &= bits - 1) {
			const struct stream *s = &inject.streams[w * 64 + (size_t)__builtin_ctzll(bits)];

			if (s->uid && s->context->gpu == gpu && flight_applies(s) && stream_busy(s))
				return true;
		}
	}
	return false;
}

/* All is done: what did the batch take, compared with what it was thought to take? */
void flight_landed(struct gpu *gpu, int64_t at_ns)
{
	const int64_t took_ns = at_ns - gpu->batch_ns, thought_ns = gpu->flight_ns;
	int64_t longest_ns = 0;

	if (thought_ns <= 0)
		return;
	for (unsigned int i = 0; i < gpu->batch_count; i++) {
		struct cost *c = cost_of(gpu->batch[i]);
		int64_t ns = took_ns >= RATIO_MOST * thought_ns	  ? c->ns * RATIO_MOST
			     : took_ns <= thought_ns / RATIO_MOST ? c->ns / RATIO_MOST
								  : c->ns * took_ns / thought_ns;

		ns = (c->ns + ns) / 2;
		c->ns = ns < COST_LEAST_NS ? COST_LEAST_NS : ns > NS_PER_S ? NS_PER_S : ns;
		if (c->ns > longest_ns)
			longest_ns = c->ns;
	}
	kernels_landed(gpu, took_ns, longest_ns);
	gpu->flight_ns = 0;
	gpu->batch_count = 0;
}
