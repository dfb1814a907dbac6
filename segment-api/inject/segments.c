/* SPDX-License-Identifier: Apache-2.0 */
/* segments.c - begin a segment at the first launch, end it when all work is done. */
#include <errno.h>
#include <string.h>

#include "../src/internal.h"
#include "flight.h"
#include "gpu.h"
#include "held.h"
#include "hold_off.h"
#include "inject.h"
#include "kernels.h"
#include "segments.h"
#include "settings.h"
#include "threads.h"

#define WAIT_STEP_NS (100 * NS_PER_MS)
#define DRAIN_STEP_NS (20 * NS_PER_US)
#define TRIED_AGAIN_NS NS_PER_S
#define SLICE_LAUNCHES_FIRST 8
#define SLICE_LAUNCHES_MOST 4096

/* Say each kind of failure once. The thread's latest message is about it: the program has no way to ask for that. */
static void say_once(int result, const struct gpu *gpu)
{
	const char *why = gpuseg_last_message(inject.client);

	static uint64_t said; /* inject.lock */
	const unsigned int bit = (unsigned int)-result & 63;

	if (said & UINT64_C(1) << bit)
		return;
	said |= UINT64_C(1) << bit;
	say("GPU %d: %s; this segment runs unmanaged (said once)", gpu->index, *why ? why : gpuseg_strerror(result));
}

/* Wait for a change of the GPU's state, at most until `until_ns`. Lock released meanwhile. False: too late, or off. */
static bool wait_for_change(struct gpu *gpu, int64_t until_ns)
{
	const uint32_t seen = gpu->generation;
	const int64_t at_ns = now_ns();

	if (at_ns - until_ns >= 0)
		return false;
	gpu->waiters++;
	inject_unlock();
	futex_wait(&gpu->generation, seen, until_ns - at_ns > WAIT_STEP_NS ? at_ns + WAIT_STEP_NS : until_ns);
	inject_lock();
	gpu->waiters--;
	return is_active();
}

/* Have the library's thread open the task. Lock held; releases it meanwhile. True: there is one. */
static bool task_ready(struct gpu *gpu)
{
	const int64_t until_ns = now_ns() + inject.settings.wait_ns;

	while (gpu->task_state != TASK_READY) {
		if (gpu->task_state == TASK_REFUSED)
			return false;
		if (gpu->task_state == TASK_UNKNOWN) {
			if (!thread_start()) {
				gpu->task_state = TASK_REFUSED;
				return false;
			}
			gpu->task_state = TASK_WANTED;
		}
		thread_wake();
		if (!wait_for_change(gpu, until_ns)) {
			if (is_active())
				gpu_give_up(gpu, "the daemon did not register the task");
			return false;
		}
	}
	return true;
}

/* Begin it. Lock held; released meanwhile. */
static void begin(struct gpu *gpu)
{
	int result = -EINVAL;
	bool tried = false;

	gpu->segment.state = SEGMENT_BEGINNING;
	if (gpu->unmanaged_until_ns - now_ns() <= 0 && task_ready(gpu)) {
		gpuseg_task *task = gpu->task;

		tried = true;
		gpu->segment.connection = task_connection(task);
		inject_unlock();
		result = gpuseg_begin(task); /* waits at most settings.wait_ns */
		inject_lock();
	}
	gpu->segment.marked = tried && result >= 0;
	gpu->segment.count += gpu->segment.marked;
	if (tried && result == GPUSEG_PROCEEDED)
		gpu_give_up(gpu, "no grant came");
	else if (tried && result < 0)
		say_once(result, gpu);
	gpu->segment.opened_ns = now_ns();
	if (gpu->busy > 0) /* it goes on with the work of the one before */
		gpu->busy_ns = gpu->segment.opened_ns;
	gpu->segment.worked_ns = 0;
	gpu->segment.launched = 0;
	gpu->segment.state = SEGMENT_OPEN;
	flight_bound(gpu, held_bound(gpu));
	gpu_changed(gpu);
	thread_wake_later(); /* at the exit of the launch, when the GPU has its work */
}

/* The slice of a best-effort segment is used up: let its work drain, so that others may have the GPU. */
static void drain(struct gpu *gpu, int64_t until_ns)
{
	while (gpu->segment.state == SEGMENT_OPEN && gpu->segment.draining) {
		if (now_ns() - until_ns >= 0 || !is_active()) {
			gpu->segment.draining = false; /* a kernel of its own length: nothing to be gained by waiting */
			gpu->segment.opened_ns = now_ns();
			return;
		}
		inject_unlock();
		sleep_ns(DRAIN_STEP_NS);
		inject_lock();
	}
}

static unsigned int slice_launches(struct gpu *gpu)
{
	if (!gpu->segment.slice_launches)
		gpu->segment.slice_launches = SLICE_LAUNCHES_FIRST;
	return gpu->segment.slice_launches;
}

/* The queue of a GPU holds far more than a slice. So launches are counted, and what they took decides how many. */
static void learn(struct gpu *gpu, int64_t at_ns)
{
	const int64_t took_ns = at_ns - gpu->segment.opened_ns, slice_ns = inject.settings.slice_ns;
	const unsigned int before = slice_launches(gpu);
	int64_t launches;

	if (took_ns <= 0 || !gpu->segment.launched)
		return;
	launches = (int64_t)gpu->segment.launched * slice_ns / took_ns;
	if (launches > 2 * (int64_t)before)
		launches = 2 * (int64_t)before;
	if (launches < before / 2)
		launches = before / 2;
	gpu->segment.slice_launches = launches < 1		       ? 1
				      : launches > SLICE_LAUNCHES_MOST ? SLICE_LAUNCHES_MOST
								       : (unsigned int)launches;
}

/*
 * A segment may have no end, since the program always has work queued. The daemon of today knows nothing of it if it
 * came after the begin, or if the begin failed: then it begins anew.
 */
static void begin_anew(struct gpu *gpu)
{
	if (gpu->segment.state != SEGMENT_OPEN || gpu->task_state != TASK_READY)
		return;
	if (gpu->segment.marked) {
		if (likely(task_connection(gpu->task) == gpu->segment.connection))
			return;
		(void)gpuseg_end(gpu->task); /* to a daemon that is gone */
	} else {
		const int64_t at_ns = now_ns();

		if (at_ns - gpu->segment.opened_ns < TRIED_AGAIN_NS || gpu->unmanaged_until_ns - at_ns > 0)
			return;
	}
	gpu->segment.state = SEGMENT_NONE_OPEN;
	gpu->segment.marked = false;
	gpu->segment.draining = false;
}

bool segment_enter(struct gpu *gpu, bool graph)
{
	const struct settings *settings = &inject.settings;
	int64_t until_ns = 0;

	if (gpu->busy == 0 && settings->hold_off_most_ns > settings->hold_off_ns)
		hold_off_learn(gpu, now_ns());
	if (settings->mode == SEGMENTS_GRAPH && !graph && gpu->segment.state == SEGMENT_NONE_OPEN)
		return false;
	if (settings->slice_ns > 0 && gpu->segment.state == SEGMENT_OPEN) {
		if (!gpu->segment.draining && gpu->segment.launched >= slice_launches(gpu)) {
			gpu->segment.draining = true;
			thread_wake();
		}
		drain(gpu, now_ns() + settings->wait_ns);
	}
	begin_anew(gpu);
	do {
		while (gpu->segment.state != SEGMENT_OPEN) {
			if (!until_ns)
				until_ns = now_ns() + 2 * settings->wait_ns;
			if (gpu->segment.state == SEGMENT_NONE_OPEN)
				begin(gpu);
			else if (!wait_for_change(gpu, until_ns))
				return false;
		}
	} while (!held_wait(gpu));
	gpu->segment.launched++;
	return true;
}

/*
 * The end of a segment is when its work was done: the hold-off after it is no part of a job, so it counts neither for
 * response times nor as device time. For work that is not followed nothing better than now is known.
 */
static int end_marked(struct gpu *gpu)
{
	const int64_t at_ns = now_ns();

	if (gpu->untracked_until_ns - gpu->segment.opened_ns > 0)
		return gpuseg_end(gpu->task);
	if (gpu->busy > 0)
		return task_end_at(gpu->task, at_ns, gpu->segment.worked_ns + at_ns - gpu->busy_ns);
	if (gpu->segment.worked_ns == 0)
		return gpuseg_end(gpu->task); /* nothing was launched after all */
	return task_end_at(gpu->task, gpu->idle_ns, gpu->segment.worked_ns);
}

static void segment_end(struct gpu *gpu)
{
	int result;

	if (gpu->segment.state != SEGMENT_OPEN)
		return;
	if (gpu->segment.draining)
		learn(gpu, now_ns());
	if (gpu->segment.marked) {
		result = end_marked(gpu);
		if (result < 0)
			say_once(result, gpu);
	}
	gpu->segment.state = SEGMENT_NONE_OPEN;
	gpu->segment.marked = false;
	gpu->segment.draining = false;
	gpu_changed(gpu);
}

static bool may_end(const struct gpu *gpu, int64_t at_ns)
{
	return gpu->segment.state == SEGMENT_OPEN && gpu->busy == 0 && gpu->untracked_until_ns - at_ns <= 0 &&
	       (gpu->held == 0 || gpu->segment.draining) && inject.settings.mode != SEGMENTS_PROCESS;
}

void segment_busy(struct gpu *gpu, int64_t at_ns)
{
	gpu->busy_ns = at_ns;
	kernels_busy(gpu);
}

void segment_idle(struct gpu *gpu, int64_t at_ns)
{
	gpu->idle_ns = at_ns;
	kernels_idle(gpu, at_ns);
	gpu->segment.worked_ns += at_ns - gpu->busy_ns;
	if ((inject.settings.hold_off_ns == 0 || gpu->segment.draining) && may_end(gpu, at_ns))
		segment_end(gpu);
}

int64_t segments_look(int64_t at_ns)
{
	const int64_t slice_ns = inject.settings.slice_ns;
	int64_t next_ns = INT64_MAX;

	for (size_t i = 0; i < GPUS_MAX && gpus[i].index >= 0; i++) {
		struct gpu *gpu = &gpus[i];
		int64_t end_ns;

		if (gpu->segment.state != SEGMENT_OPEN)
			continue;
		if (slice_ns > 0 && gpu->busy > 0 && !gpu->segment.draining) {
			if (at_ns - gpu->segment.opened_ns >= slice_ns)
				gpu->segment.draining = true;
			else if (gpu->segment.opened_ns + slice_ns < next_ns)
				next_ns = gpu->segment.opened_ns + slice_ns;
		}
		if (gpu->busy > 0)
			continue;
		end_ns = quiet_since_ns(gpu) + hold_off_ns(gpu);
		if (gpu->untracked_until_ns > end_ns)
			end_ns = gpu->untracked_until_ns;
		if (at_ns - end_ns >= 0 || gpu->segment.draining) {
			if (may_end(gpu, at_ns))
				segment_end(gpu);
		} else if (end_ns < next_ns) {
			next_ns = end_ns;
		}
	}
	return next_ns;
}

void segments_end(void)
{
	for (size_t i = 0; i < GPUS_MAX && gpus[i].index >= 0; i++)
		segment_end(&gpus[i]);
}
