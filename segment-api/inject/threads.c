/* SPDX-License-Identifier: Apache-2.0 */
/* threads.c - threads of the library: start, wake, stop. */
#include <signal.h>
#include <string.h>

#include "inject.h"
#include "settings.h"
#include "threads.h"

#define STACK_BYTES (512 * 1024) /* the driver's functions run on it */

struct own_thread own_thread;
static void *(*own_run)(void *unused);

void thread_does(void *(*run)(void *))
{
	own_run = run;
}

void thread_wake(void)
{
	__atomic_fetch_add(&own_thread.word, 1, __ATOMIC_RELEASE);
	if (own_thread.sleeps)
		futex_wake_all(&own_thread.word);
}

void thread_rest(uint32_t seen, int64_t until_ns)
{
	own_thread.sleeps = 1;
	inject_unlock();
	futex_wait(&own_thread.word, seen, until_ns);
	inject_lock();
	own_thread.sleeps = 0;
}

void thread_ended(void)
{
	__atomic_store_n(&own_thread.stopped, 1, __ATOMIC_RELEASE);
	futex_wake_all(&own_thread.stopped);
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

	if (own_thread.runs)
		return true;
	ret = thread_of_our_own(own_run, NULL);
	own_thread.runs = ret == 0;
	if (ret)
		say("no thread can be started (%s); runs unmanaged", strerror(ret));
	return own_thread.runs;
}

bool thread_stop(int64_t until_ns)
{
	if (!own_thread.runs)
		return false;
	__atomic_store_n(&own_thread.stop, 1, __ATOMIC_RELEASE);
	while (!__atomic_load_n(&own_thread.stopped, __ATOMIC_ACQUIRE) && now_ns() - until_ns < 0) {
		__atomic_fetch_add(&own_thread.word, 1, __ATOMIC_RELEASE);
		futex_wake_all(&own_thread.word);
		futex_wait(&own_thread.stopped, 0, now_ns() + 10 * NS_PER_MS);
	}
	return true;
}

void thread_forked(void)
{
	own_thread.runs = false;
}
