/* SPDX-License-Identifier: Apache-2.0 */
/* costs.h - how long a kernel or a graph takes. All with inject.lock held. */
#ifndef GPUSEG_INJECT_COSTS_H
#define GPUSEG_INJECT_COSTS_H

#include <stdint.h>

/* How long a kernel or a graph takes, and how many blocks of it the GPU can hold at a time. */
struct cost {
	uintptr_t function;
	int64_t ns;
	uint32_t room;	  /* 0 = not asked yet */
	uint32_t landing; /* the batch that corrected it last */
};

/* The most work that may be in flight. */
int64_t flight_limit_ns(void);
/* What is known of a function; new ones are thought to take as long as the limit. */
struct cost *cost_of(uintptr_t function);

#endif /* GPUSEG_INJECT_COSTS_H */
