/* SPDX-License-Identifier: Apache-2.0 */
/*
 * turn.c - a launch waits for its turn, and for room: flight.c says what is in flight, and which streams give way.
 */
#include "costs.h"
#include "device.h"
#include "flight.h"
#include "gpu.h"
#include "inject.h"
#include "markers.h"
#include "settings.h"
#include "streams.h"
#include "threads.h"
#include "turn.h"

#define SPIN_NS (50 * NS_PER_US)
#define STEP_NS (20 * NS_PER_US)

/* Is there work on a stream of this GPU that goes before `priority`? Lower numbers do. */
static bool higher_busy(const struct gpu *gpu, int priority)
{
	for (size_t w = 0; w < STREAMS_MAX / 64; w++) {
		for (uint64_t bits = tracked.to_look_at[w]; bits; bits &= bits - 1) {
			const struct stream *s = &tracked.streams[w * 64 + (size_t)__builtin_ctzll(bits)];

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
		for (uint64_t bits = tracked.to_look_at[w]; bits; bits &= bits - 1) {
			struct stream *s = &tracked.streams[w * 64 + (size_t)__builtin_ctzll(bits)];

			if (s->uid && s->context->gpu == gpu && !s->marker && !s->entered && !s->gone &&
			    s->last > s->done && count < STREAM_WAYS)
				chosen[count++] = s;
		}
	}
	if (!count)
		return;
	inject_unlock();
	if (device_try_lock()) { /* else another thread is asking */
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
	return gpu->flight.ns == 0 || gpu->flight.ns < flight_room_ns(gpu);
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
			flight_unbound(gpu);
			say("a launch waited for %lld ms until there was room for it; work in flight is not bounded, "
			    "and streams are not told apart, from here on",
			    (long long)(inject.settings.wait_ns / NS_PER_MS));
			break;
		}
		if (!is_active())
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
	thread_wake_later(); /* the library's thread did not see to the end of the segment meanwhile */
}
