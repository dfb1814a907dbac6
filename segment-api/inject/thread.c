/* SPDX-License-Identifier: Apache-2.0 */
/* thread.c - the library's own thread: connects, opens tasks, sees to it that segments end. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>

#include "../src/internal.h"
#include "inject.h"

#define STACK_BYTES (512 * 1024) /* the driver's functions run on it */
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
	result = gpuseg_connect(&attr, &client);
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

	for (size_t i = 0; i < GPUS_MAX && inject.gpus[i].index >= 0; i++) {
		struct gpu *gpu = &inject.gpus[i];
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
	if (gpu->draining)
		return 0;
	/* Where launches are held, others wait for the end of what is in flight, or learn from it. */
	if (inject.settings.priority == 0 && gpu->bound_ns == 0 && inject.settings.hold_off_ns < SILENT_BEST_EFFORT_NS)
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
		for (uint64_t bits = inject.to_look_at[w]; bits; bits &= bits - 1) {
			struct stream *s = &inject.streams[w * 64 + (size_t)__builtin_ctzll(bits)];
			int64_t when_ns;

			if (s->marker || s->entered || s->owner) {
				const int64_t since_ns = s->marker ? s->marker_ns : s->launch_ns;

				when_ns = at_ns + poll_ns(s->context->gpu, at_ns - since_ns);
			} else {
				when_ns = s->launch_ns + silence_ns(s->context->gpu);
				if (at_ns - when_ns >= 0) {
					if (!s->gone && !inject.capture_count && !stream_awaited(s, at_ns) &&
					    count < ASK_MAX)
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

/* A capture whose end was not seen. Its stream is asked, which is allowed at any time. device_lock held. */
static void check_captures(void)
{
	inject_lock();
	for (unsigned int i = 0; i < inject.capture_count; i++) {
		const uintptr_t handle = inject.captures[i];
		int status = CAPTURE_STATUS_NONE;
		CUresult result;

		inject_unlock();
		result = inject.driver.cuStreamIsCapturing((CUstream)handle, &status); /* NOLINT: a handle */
		inject_lock();
		if (result == CUDA_SUCCESS && status == CAPTURE_STATUS_NONE && i < inject.capture_count &&
		    inject.captures[i] == handle)
			inject.captures[i--] = inject.captures[--inject.capture_count];
	}
	inject_unlock();
}

static bool wants_page(void)
{
	for (size_t i = 0; i < CONTEXTS_MAX; i++) {
		if (inject.contexts[i].uid && !inject.contexts[i].page_tried && !inject.capture_count)
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

	if (!__atomic_load_n(&inject.active, __ATOMIC_ACQUIRE) || nothing_to_do())
		return INT64_MAX;
	open_tasks();
	markers_look();
	at_ns = now_ns();
	count = choose(chosen, at_ns, &wait_ns);
	check = inject.capture_count && at_ns - captures_checked_ns > LOOK_NS;
	if (count || check || wants_page()) {
		inject_unlock();
		if (device_lock()) {
			for (size_t i = 0; i < count; i++)
				marker_write(chosen[i]);
			for (size_t i = 0; i < CONTEXTS_MAX; i++)
				marker_page(&inject.contexts[i]);
			if (check) {
				captures_checked_ns = at_ns;
				check_captures();
			}
			device_unlock();
		}
		inject_lock();
		at_ns = now_ns();
	}
	next_ns = segments_look(at_ns);
	if (next_ns > wait_ns)
		next_ns = wait_ns;
	if (inject.capture_count && at_ns + LOOK_NS < next_ns)
		next_ns = at_ns + LOOK_NS;
	return next_ns;
}

static void *run(void *arg)
{
	int mode = CAPTURE_MODE_RELAXED;

	(void)arg;
	calls_are_our_own();
	prctl(PR_SET_NAME, "gpuseg-inject");
	prctl(PR_SET_TIMERSLACK, 1000UL);
	/* This thread's calls must not spoil a capture of another thread. */
	inject.driver.cuThreadExchangeStreamCaptureMode(&mode);
	inject_lock();
	while (!__atomic_load_n(&inject.stop, __ATOMIC_ACQUIRE)) {
		const uint32_t seen = __atomic_load_n(&inject.thread_word, __ATOMIC_ACQUIRE);
		const int64_t next_ns = turn();

		inject.thread_sleeps = 1;
		inject_unlock();
		futex_wait(&inject.thread_word, seen, next_ns);
		inject_lock();
		inject.thread_sleeps = 0;
	}
	inject_unlock();
	__atomic_store_n(&inject.stopped, 1, __ATOMIC_RELEASE);
	futex_wake_all(&inject.stopped);
	return NULL;
}

void thread_wake(void)
{
	__atomic_fetch_add(&inject.thread_word, 1, __ATOMIC_RELEASE);
	if (inject.thread_sleeps)
		futex_wake_all(&inject.thread_word);
}

int thread_of_our_own(void *(*function)(void *), void *arg)
{
	const struct sched_param normal = {0};
	sigset_t all, before;
	pthread_attr_t attr;
	pthread_t thread;
	int ret = pthread_attr_init(&attr);

	if (ret)
		return ret;
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	pthread_attr_setinheritsched(&attr, PTHREAD_EXPLICIT_SCHED);
	pthread_attr_setschedpolicy(&attr, SCHED_OTHER);
	pthread_attr_setschedparam(&attr, &normal);
	pthread_attr_setstacksize(&attr, STACK_BYTES);
	/* Signal handlers of the program must not run on a thread that it does not know. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	ret = pthread_create(&thread, &attr, function, arg);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	return ret;
}

bool thread_start(void)
{
	int ret;

	if (inject.thread_runs)
		return true;
	ret = thread_of_our_own(run, NULL);
	inject.thread_runs = ret == 0;
	if (ret)
		say("no thread can be started (%s); runs unmanaged", strerror(ret));
	return inject.thread_runs;
}

void thread_stop(void)
{
	const int64_t until_ns = now_ns() + NS_PER_S;

	if (!inject.thread_runs)
		return;
	__atomic_store_n(&inject.stop, 1, __ATOMIC_RELEASE);
	while (!__atomic_load_n(&inject.stopped, __ATOMIC_ACQUIRE) && now_ns() - until_ns < 0) {
		__atomic_fetch_add(&inject.thread_word, 1, __ATOMIC_RELEASE);
		futex_wake_all(&inject.thread_word);
		futex_wait(&inject.stopped, 0, now_ns() + 10 * NS_PER_MS);
	}
	touch_stop(until_ns);
}
