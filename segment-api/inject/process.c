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
#include "inject.h"

#define DEVICE_LOCK_NS NS_PER_S
#define DEVICE_LOCK_STEP_NS (50 * NS_PER_US)
#define LOCK_SPIN 50

struct inject inject;

/* As in append.c: a contended mutex that inherits priority is passed on by the kernel, which takes long. */
void inject_lock(void)
{
	for (int i = 0; i < LOCK_SPIN; i++) {
		if (likely(pthread_mutex_trylock(&inject.lock) == 0))
			return;
		cpu_relax();
	}
	pthread_mutex_lock(&inject.lock);
}

void inject_unlock(void)
{
	pthread_mutex_unlock(&inject.lock);
}

bool device_lock(void)
{
	const int64_t until_ns = now_ns() + DEVICE_LOCK_NS;

	while (pthread_mutex_trylock(&inject.device_lock) != 0) {
		if (now_ns() - until_ns >= 0) {
			say("a call of the driver takes longer than a second; runs unmanaged from here on");
			deactivate();
			return false;
		}
		sleep_ns(DEVICE_LOCK_STEP_NS);
	}
	return true;
}

void device_unlock(void)
{
	pthread_mutex_unlock(&inject.device_lock);
}

static void end_segments(void)
{
	for (size_t i = 0; i < GPUS_MAX && inject.gpus[i].index >= 0; i++)
		segment_end(&inject.gpus[i]);
}

void deactivate(void)
{
	if (!__atomic_exchange_n(&inject.active, 0, __ATOMIC_ACQ_REL))
		return;
	inject_lock();
	end_segments();
	thread_wake();
	inject_unlock();
}

/*
 * libgpuseg calls this when the program registers a task of its own: its marks win. Not declared in a header, because
 * it is found by name.
 */
GPUSEG_API void gpuseg_inject_by_hand(void);

void gpuseg_inject_by_hand(void)
{
	const bool active = __atomic_load_n(&inject.active, __ATOMIC_ACQUIRE);

	if (__atomic_exchange_n(&inject.by_hand, 1, __ATOMIC_ACQ_REL) || !active)
		return;
	if (inject.settings.verbose)
		say("the program marks its segments itself; no automatic ones");
	inject_lock();
	end_segments();
	inject_unlock();
}

/* gpuseg_stream() of libgpuseg calls this, found by name as well. -ENOTSUP: launches are not followed. */
GPUSEG_API int gpuseg_inject_stream(uintptr_t stream, int rank);

int gpuseg_inject_stream(uintptr_t stream, int rank)
{
	int result;

	if (!__atomic_load_n(&inject.active, __ATOMIC_ACQUIRE))
		return -ENOTSUP;
	inject_lock();
	result = thread_start() ? flight_set_rank(stream, rank) : -ENOTSUP;
	if (result == 0)
		__atomic_store_n(&inject.ranked, 1, __ATOMIC_RELEASE);
	inject_unlock();
	return result;
}

/* In place of the one in by_hand.c: the tasks that this library opens are no marks of the program. */
void tell_injection(void)
{
}

/* No call of the program can return an error of ours, so this says it. */
void tell_disowned(void)
{
	static uint32_t said;

	if (!__atomic_exchange_n(&said, 1, __ATOMIC_RELAXED))
		say("the program has closed descriptors that it did not open; connects again (said once)");
}

/* A child has none of the parent's threads, and CUDA does not work there. What it inherits must not hold anything. */
static void in_forked_child(void)
{
	gpuseg_client *client = inject.client;

	__atomic_store_n(&inject.active, 0, __ATOMIC_RELEASE);
	inject.thread_runs = false;
	inject.client = NULL;
	/* Closes the copies of its descriptors, no more, if the library knows that this is a child. */
	if (client && !gpuseg_is_managed(client))
		gpuseg_disconnect(client);
}

static void say_what_was(void)
{
	inject_lock();
	for (size_t i = 0; i < GPUS_MAX && inject.gpus[i].index >= 0; i++) {
		const struct gpu *gpu = &inject.gpus[i];

		say("GPU %d: %llu segments, %llu launches, hold-off %lld us", gpu->index,
		    (unsigned long long)gpu->segments, (unsigned long long)inject.launches,
		    (long long)(hold_off_ns(gpu) / NS_PER_US));
		if (gpu->touch_runs)
			say("GPU %d: %llu touches before expected begins", gpu->index,
			    (unsigned long long)gpu->touches);
	}
	inject_unlock();
}

static void at_process_exit(void)
{
	cupti_say_what_passed_by();
	if (!__atomic_load_n(&inject.active, __ATOMIC_ACQUIRE))
		return;
	deactivate();
	wrappers_stop();
	if (inject.settings.verbose)
		say_what_was();
	thread_stop(); /* before the driver is taken down */
}

static bool init_locks(void)
{
	pthread_mutexattr_t attr;
	int ret = pthread_mutexattr_init(&attr);

	if (ret == 0) {
		pthread_mutexattr_setprotocol(&attr, PTHREAD_PRIO_INHERIT);
		ret = pthread_mutex_init(&inject.lock, &attr);
		if (ret == 0)
			ret = pthread_mutex_init(&inject.device_lock, &attr);
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
	for (size_t i = 0; i < GPUS_MAX; i++)
		inject.gpus[i].index = -1;
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
