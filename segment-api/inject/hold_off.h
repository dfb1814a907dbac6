/* SPDX-License-Identifier: Apache-2.0 */
/* hold_off.h - for how long a segment stays open when its work is done. All with inject.lock held. */
#ifndef GPUSEG_INJECT_HOLD_OFF_H
#define GPUSEG_INJECT_HOLD_OFF_H

#include <stdint.h>

#include "settings.h"

struct gpu;

/* Pauses of the program between the end of its work and the next launch. One in each GPU; hold_off.c alone uses it. */
struct pauses {
	int64_t hold_off_ns; /* 0 = nothing learned yet */
	int64_t latest_ns;   /* begin of the latest one that was counted */
	unsigned int seen;
	unsigned int count[HOLD_OFF_STEPS + 1]; /* those that end before the hold-off of that step; last: later */
	int64_t sum_ns[HOLD_OFF_STEPS + 1];
};

/* A launch comes and finds no work: learn from the pause before it. */
void hold_off_learn(struct gpu *gpu, int64_t at_ns);
/* Since when nothing has happened on the GPU. */
int64_t quiet_since_ns(const struct gpu *gpu);
/* For how long after that the segment stays open. */
int64_t hold_off_ns(const struct gpu *gpu);

#endif /* GPUSEG_INJECT_HOLD_OFF_H */
