/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device.c - calls of the driver, one at a time. A driver that does not return in time ends the following of calls.
 */
#include "device.h"
#include "inject.h"
#include "segments.h"
#include "settings.h"
#include "threads.h"

#define DEVICE_LOCK_NS NS_PER_S
#define DEVICE_LOCK_STEP_NS (50 * NS_PER_US)

static pthread_mutex_t lock; /* inherits priority */

int device_init(const pthread_mutexattr_t *attr)
{
	return pthread_mutex_init(&lock, attr);
}

bool device_try_lock(void)
{
	return pthread_mutex_trylock(&lock) == 0;
}

bool device_lock(void)
{
	const int64_t until_ns = now_ns() + DEVICE_LOCK_NS;

	while (!device_try_lock()) {
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
	pthread_mutex_unlock(&lock);
}

void deactivate(void)
{
	if (!__atomic_exchange_n(&inject.active, 0, __ATOMIC_ACQ_REL))
		return;
	inject_lock();
	segments_end();
	thread_wake();
	inject_unlock();
}
