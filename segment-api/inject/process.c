/* SPDX-License-Identifier: Apache-2.0 */
/*
 * process.c - libgpuseg-inject.so: programs as they are, as tasks of the scheduler.
 *
 * The CUDA driver loads this library when CUDA_INJECTION64_PATH names it, and calls InitializeInjection() in cuInit().
 * It follows calls of the driver, through wrappers that were preloaded, else through CUPTI. It changes no argument, no
 * result and no order of calls. If anything that it needs is missing, the program runs as it would without, and one
 * line says why.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../src/internal.h"
#include "by_cupti.h"
#include "by_wrapper.h"
#include "cupti.h"
#include "device.h"
#include "driver.h"
#include "ranks.h"
#include "gpu.h"
#include "hold_off.h"
#include "inject.h"
#include "segments.h"
#include "settings.h"
#include "streams.h"
#include "thread.h"
#include "threads.h"
#include "touch.h"
#include "wrap/wrap.h"

static void tell_used(void)
{
	const struct wrap *wrap = wrappers();

	if (wrap)
		wrap->used();
}

/*
 * libgpuseg calls this when the program registers a task of its own: its marks win. Not declared in a header, because
 * it is found by name.
 */
GPUSEG_API void gpuseg_inject_by_hand(void);

void gpuseg_inject_by_hand(void)
{
	const bool active = is_active();

	tell_used();
	if (__atomic_exchange_n(&inject.by_hand, 1, __ATOMIC_ACQ_REL) || !active)
		return;
	if (inject.settings.verbose)
		say("the program marks its segments itself; no automatic ones");
	inject_lock();
	segments_end();
	inject_unlock();
}

/* gpuseg_stream() of libgpuseg calls this, found by name as well. -ENOTSUP: launches are not followed. */
GPUSEG_API int gpuseg_inject_stream(uintptr_t stream, int rank);

int gpuseg_inject_stream(uintptr_t stream, int rank)
{
	int result;

	if (!is_active())
		return -ENOTSUP;
	inject_lock();
	result = thread_start() ? rank_set(stream, rank) : -ENOTSUP;
	if (result == 0)
		__atomic_store_n(&inject.ranked, 1, __ATOMIC_RELEASE);
	inject_unlock();
	return result;
}

/* A child has none of the parent's threads, and CUDA does not work there. What it inherits must not hold anything. */
static void in_forked_child(void)
{
	gpuseg_client *client = inject.client;

	__atomic_store_n(&inject.active, 0, __ATOMIC_RELEASE);
	thread_forked();
	inject.client = NULL;
	/* Closes the copies of its descriptors, no more, if the library knows that this is a child. */
	if (client && !gpuseg_is_managed(client))
		gpuseg_disconnect(client);
}

static void say_what_was(void)
{
	inject_lock();
	for (size_t i = 0; i < GPUS_MAX && gpus[i].index >= 0; i++) {
		const struct gpu *gpu = &gpus[i];

		say("GPU %d: %llu segments, %llu launches, hold-off %lld us", gpu->index,
		    (unsigned long long)gpu->segment.count, (unsigned long long)tracked.launches,
		    (long long)(hold_off_ns(gpu) / NS_PER_US));
		touch_say(gpu);
	}
	inject_unlock();
}

/* Waits at most a second. */
static void stop_threads(void)
{
	const int64_t until_ns = now_ns() + NS_PER_S;

	if (thread_stop(until_ns))
		touch_stop(until_ns);
}

static void at_process_exit(void)
{
	cupti_say_what_passed_by();
	if (!is_active())
		return;
	deactivate();
	wrappers_stop();
	if (inject.settings.verbose)
		say_what_was();
	stop_threads(); /* before the driver is taken down */
}

static bool init_locks(void)
{
	pthread_mutexattr_t attr;
	int ret = pthread_mutexattr_init(&attr);

	if (ret == 0) {
		pthread_mutexattr_setprotocol(&attr, PTHREAD_PRIO_INHERIT);
		ret = inject_lock_init(&attr);
		if (ret == 0)
			ret = device_init(&attr);
		pthread_mutexattr_destroy(&attr);
	}
	if (ret)
		say("priority-inheritance mutex: %s; runs unmanaged", strerror(ret));
	return ret == 0;
}

static bool follow(void)
{
	const bool checked = inject.settings.calls == CALLS_CHECKED;
	const char *why = NULL;

	if (inject.settings.calls != CALLS_BY_CUPTI) {
		if (wrappers_follow(&why))
			return !checked || (cupti_load() && cupti_watch());
		if (checked)
			say("%s; calls are followed by CUPTI, and nothing is checked", why ? why : "no wrappers");
		else if (why && inject.settings.verbose)
			say("%s; calls are followed by CUPTI", why);
	}
	return cupti_load() && cupti_follow();
}

GPUSEG_API int InitializeInjection(void);

/* 1 in any case: the program is to start. The driver calls it once. */
int InitializeInjection(void)
{
	static uint32_t called;

	if (__atomic_exchange_n(&called, 1, __ATOMIC_ACQ_REL))
		return 1;
	tell_used();
	gpus_init();
	thread_does(thread_run);
	if (!settings_read(&inject.settings) || !init_locks() || !driver_load())
		return 1;
	if (pthread_atfork(NULL, NULL, in_forked_child) != 0 || atexit(at_process_exit) != 0) {
		say("out of memory; runs unmanaged");
		return 1;
	}
	if (follow())
		__atomic_store_n(&inject.active, 1, __ATOMIC_RELEASE);
	return 1;
}
