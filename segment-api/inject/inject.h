/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inject.h - what all parts of libgpuseg-inject.so share. Each idea has a header and a .c file of its own.
 *
 *   a thread of the program                    the library's own thread ("gpuseg-inject")
 *   ------------------------------------       -----------------------------------------------
 *   cuLaunchKernel ... entry: note the         connects, opens tasks
 *     stream, begin a segment if none is       writes a marker after the work of a stream that
 *     open (may wait, with a limit)              has been silent, looks whether it is done
 *   ... exit: number the launch                ends the segment when all work is done
 *   cuStreamSynchronize ... exit: what was
 *     numbered before is done
 *
 * All state is guarded by one mutex (inject_lock), which is held for some tens of nanoseconds and never while the
 * driver or the daemon is called, except for gpuseg_end(). A second mutex (device_lock) is held by the library's own
 * thread around its calls of the driver, and by a thread of the program at the entry of calls after which a handle is
 * no longer valid. Order: device_lock, then inject_lock.
 *
 * Every wait has a limit. When it is reached the program runs on without being managed, and one line says so.
 */
#ifndef GPUSEG_INJECT_H
#define GPUSEG_INJECT_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "gpuseg.h"
#include "platform.h"
#include "settings.h"

struct inject {
	struct settings settings;
	uint32_t active;  /* atomic: 1 = calls are followed. Written with release, read with acquire */
	uint32_t by_hand; /* atomic: the program marks its segments itself */
	uint32_t ranked;  /* atomic: it has given a stream a task, so launches are followed even then */

	pthread_mutex_t lock; /* guards the state of all parts; inherits priority */
	gpuseg_client *client;
};

extern struct inject inject;

void inject_lock(void);
void inject_unlock(void);
int inject_lock_init(const pthread_mutexattr_t *attr);

/* Does the program mark its segments itself, with nothing else to be done for it? */
static inline bool nothing_to_do(void)
{
	return __atomic_load_n(&inject.by_hand, __ATOMIC_ACQUIRE) && !__atomic_load_n(&inject.ranked, __ATOMIC_ACQUIRE);
}

static inline bool is_active(void)
{
	return __atomic_load_n(&inject.active, __ATOMIC_ACQUIRE);
}

#endif /* GPUSEG_INJECT_H */
