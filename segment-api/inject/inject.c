/* SPDX-License-Identifier: Apache-2.0 */
/* inject.c - the state that all parts share, and its lock. */
#include "inject.h"

#define LOCK_SPIN 50

struct inject inject;

int inject_lock_init(const pthread_mutexattr_t *attr)
{
	return pthread_mutex_init(&inject.lock, attr);
}

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
