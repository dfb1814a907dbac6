/* SPDX-License-Identifier: Apache-2.0 */
/* touch.h - have the GPU switch to the program before an expected begin. */
#ifndef GPUSEG_INJECT_TOUCH_H
#define GPUSEG_INJECT_TOUCH_H

#include <stdbool.h>
#include <stdint.h>
#include "driver_api.h"

struct gpu;

/* Of a GPU; touch.c alone uses it. */
struct touch {
	bool runs;		/* the thread */
	bool was_expected;	/* the daemon has expected a begin */
	const uint32_t *sleeps; /* futex that it sleeps on */
	uint64_t count;
};

/* Of a context; the same. */
struct touch_stream {
	CUstream stream; /* NULL: not created yet */
	uint32_t value;	 /* that the latest touch writes */
	bool off;	 /* a call of the driver for it failed */
};

/* The task of the GPU is open: see to its touches from here on, if they are wanted. Lock held. */
void touch_start(struct gpu *gpu);
/* Wait until its threads have ended; thread_stop() was called. */
void touch_stop(int64_t until_ns);
/* Say how many there were. Lock held. */
void touch_say(const struct gpu *gpu);

#endif /* GPUSEG_INJECT_TOUCH_H */
