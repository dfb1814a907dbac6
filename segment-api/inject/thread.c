/* SPDX-License-Identifier: Apache-2.0 */
/* thread.c - the library's own thread: connects, opens tasks, sees to it that segments end. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>

#include "../src/internal.h"
#include "calls.h"
#include "captures.h"
#include "device.h"
#include "driver.h"
#include "gpu.h"
#include "held.h"
#include "hold_off.h"
#include "inject.h"
#include "markers.h"
#include "segments.h"
#include "settings.h"
#include "streams.h"
#include "thread.h"
#include "threads.h"
#include "touch.h"

#define SILENT_LEAST_NS (50 * NS_PER_US)
#define SILENT_BEST_EFFORT_NS NS_PER_MS /* its segments are long, and their end is less urgent than the processor */
#define POLL_LEAST_NS (25 * NS_PER_US)
#define POLL_MOST_NS (500 * NS_PER_US)
#define POLL_MOST_LEAST_NS (100 * NS_PER_US) /* with a short hold-off */
#define LOOK_NS (100 * NS_PER_MS)	     /* while a segment is open */
#define ASK_MAX 32			     /* streams for which the driver is called in one turn */

/* ---- the daemon ---- */

/* Once. The thread waits at most some seconds for the daemon; no other thread does. */
static void connect_once(void)
{
	struct gpuseg_connect_attr attr = GPUSEG_CONNECT_ATTR_INIT;
	char name[GPUSEG_NAME_BYTES];
	gpuseg_client *client;
	bool gates;
	int result;

	snprintf(name, sizeof(name), "exec:%.58s", program_invocation_short_name);
	attr.name = name;
	attr.flags = GPUSEG_CONNECT_FAIL_IF_LOST;	/* segments.c has an answer of its own */
	result = gpuseg_connect_shared(&attr, &client); /* the program may have one, or want one later */
	if (result < 0) {
		say("%s; runs unmanaged", gpuseg_last_message(NULL));
		return;
	}
	if (!gpuseg_is_managed(client)) {
		say("GPUSEG_UNMANAGED is set or the daemon is gone; runs unmanaged");
		gpuseg_disconnect(client);
		return;
	}
	gates = client_gates(client);
	inject_lock();
	/* Begins are all that a gate can hold, so there a segment must end soon. */
	if (inject.settings.slice_ns == SLICE_BY_MECHANISM)
		inject.settings.slice_ns = inject.settings.priority == 0 && gates ? SLICE_GATE_NS : 0;
	inject.client = client;
	inject_unlock();
}

static gpuseg_task *open_task(const struct gpu *gpu)
{
	const struct settings *settings = &inject.settings;
	struct gpuseg_task_attr attr = GPUSEG_TASK_ATTR_INIT;
	gpuseg_task *task;

	if (!inject.client)
		return NULL;
	attr.name = settings->name;
	attr.priority = settings->priority;
	attr.gpu = (uint32_t)gpu->index;
	attr.period_ns = settings->period_ns;
	attr.deadline_ns = settings->deadline_ns;
	/* The daemon counts from begin to end, and the GPU stays reserved for the hold-off. */
	attr.budget_ns = settings->budget_ns ? settings->budget_ns + settings->hold_off_most_ns : 0;
	attr.weight = settings->weight;
	attr.reserve = settings->reserve;
	attr.flags = settings->waits ? GPUSEG_TASK_ALWAYS_WAIT : 0;
	attr.timeout_ns = settings->wait_ns;
	attr.on_timeout = GPUSEG_ON_TIMEOUT_PROCEED;
	if (gpuseg_task_open(inject.client, &attr, &task) < 0) {
		say("%s; runs unmanaged", gpuseg_last_message(inject.client));
		return NULL;
	}
	if (settings->verbose && settings->priority)
		say("task \"%s\" on GPU %d, priority %u", settings->name, gpu->index, settings->priority);
	else if (settings->verbose)
		say("task \"%s\" on GPU %d, best effort", settings->name, gpu->index);
	return task;
}

static void open_tasks(void)
{
	static bool connected;

	for (size_t i = 0; i < GPUS_MAX && gpus[i].index >= 0; i++) {
		struct gpu *gpu = &gpus[i];
		gpuseg_task *task;

		if (gpu->task_state != TASK_WANTED)
			continue;
		inject_unlock();
		if (!connected)
			connect_once();
		connected = true;
		task = open_task(gpu);
		if (!inject.client)
			deactivate(); /* for good: there is nobody to ask */
		inject_lock();
		gpu->task = task;
		gpu->task_state = task ? TASK_READY : TASK_REFUSED;
		if (task)
			touch_start(gpu);
		gpu_changed(gpu);
	}
}

/* ---- streams ---- */

/* For how long a stream must have been silent before the driver is called for it. */
static int64_t silence_ns(const struct gpu *gpu)
{
	if (gpu->segment.draining)
		return 0;
	/* Where launches are held, others wait for the end of what is in flight, or learn from it. */
	if (inject.settings.priority == 0 && gpu->flight.bound_ns == 0 &&
	    inject.settings.hold_off_ns < SILENT_BEST_EFFORT_NS)
		return SILENT_BEST_EFFORT_NS;
	return inject.settings.hold_off_ns > SILENT_LEAST_NS ? inject.settings.hold_off_ns : SILENT_LEAST_NS;
}

/*
 * Work that has taken long is looked at less often. But the end of a real-time segment is to be noticed within the
 * hold-off, so that the segment does not last longer than that.
 */
static int64_t poll_ns(const struct gpu *gpu, int64_t since_ns)
{
	const int64_t hold_off_ns = inject.settings.hold_off_ns, ns = since_ns / 8;
	int64_t most_ns = POLL_MOST_NS;

	if (held_now(gpu))
		return POLL_LEAST_NS;
	if (inject.settings.priority > 0 && hold_off_ns > 0 && hold_off_ns < most_ns)
		most_ns = hold_off_ns < POLL_MOST_LEAST_NS ? POLL_MOST_LEAST_NS : hold_off_ns;
	return ns < POLL_LEAST_NS ? POLL_LEAST_NS : ns > most_ns ? most_ns : ns;
}

/* Which streams to call the driver for; *next_ns becomes the time of the next look if that is earlier. Lock held. */
static size_t choose(struct stream *chosen[ASK_MAX], int64_t at_ns, int64_t *next_ns)
{
	size_t count = 0;

	for (size_t w = 0; w < STREAMS_MAX / 64; w++) {
		for (uint64_t bits = tracked.to_look_at[w]; bits; bits &= bits - 1) {
			struct stream *s = &tracked.streams[w * 64 + (size_t)__builtin_ctzll(bits)];
			int64_t when_ns;

			if (s->marker || s->entered || s->owner) {
				const int64_t since_ns = s->marker ? s->marker_ns : s->launch_ns;

				when_ns = at_ns + poll_ns(s->context->gpu, at_ns - since_ns);
			} else {
				when_ns = s->launch_ns + silence_ns(s->context->gpu);
				if (at_ns - when_ns >= 0) {
					if (!s->gone && !captures_any() && !stream_awaited(s, at_ns) && count < ASK_MAX)
						chosen[count++] = s;
					when_ns = at_ns + poll_ns(s->context->gpu, at_ns - s->launch_ns);
				}
			}
			if (when_ns < *next_ns)
				*next_ns = when_ns;
		}
	}
	return count;
}

static bool wants_page(void)
{
	for (size_t i = 0; i < CONTEXTS_MAX; i++) {
		if (tracked.contexts[i].uid && !tracked.contexts[i].page_tried && !captures_any())
			return true;
	}
	return false;
}

/* One turn. Returns when to take the next one. Lock held, released meanwhile. */
static int64_t turn(void)
{
	static int64_t captures_checked_ns;
	struct stream *chosen[ASK_MAX];
	int64_t next_ns, at_ns, wait_ns = INT64_MAX;
	size_t count;
	bool check;

	if (!is_active() || nothing_to_do())
		return INT64_MAX;
	open_tasks();
	markers_look();
	at_ns = now_ns();
	count = choose(chosen, at_ns, &wait_ns);
	check = captures_any() && at_ns - captures_checked_ns > LOOK_NS;
	if (count || check || wants_page()) {
		inject_unlock();
		if (device_lock()) {
			for (size_t i = 0; i < count; i++)
				marker_write(chosen[i]);
			for (size_t i = 0; i < CONTEXTS_MAX; i++)
				marker_page(&tracked.contexts[i]);
			if (check) {
				captures_checked_ns = at_ns;
				inject_lock();
				captures_check();
				inject_unlock();
			}
			device_unlock();
		}
		inject_lock();
		at_ns = now_ns();
	}
	next_ns = segments_look(at_ns);
	if (next_ns > wait_ns)
		next_ns = wait_ns;
	if (captures_any() && at_ns + LOOK_NS < next_ns)
		next_ns = at_ns + LOOK_NS;
	return next_ns;
}

void *thread_run(void *unused)
{
	int mode = CAPTURE_MODE_RELAXED;

	(void)unused;
	calls_are_our_own();
	prctl(PR_SET_NAME, "gpuseg-inject");
	prctl(PR_SET_TIMERSLACK, 1000UL);
	/* This thread's calls must not spoil a capture of another thread. */
	driver.cuThreadExchangeStreamCaptureMode(&mode);
	inject_lock();
	while (!thread_is_to_stop()) {
		const uint32_t seen = thread_seen();

		thread_rest(seen, turn());
	}
	inject_unlock();
	thread_ended();
	return NULL;
}
