/* SPDX-License-Identifier: Apache-2.0 */
/* settings.h - what the environment says. */
#ifndef GPUSEG_INJECT_SETTINGS_H
#define GPUSEG_INJECT_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>
#include "../src/say.h"
#include "gpuseg_abi.h"
#include "platform.h"

enum calls_mode {
	CALLS_AUTO, /* are followed by the preloaded wrappers if they are there, else by CUPTI */
	CALLS_BY_CUPTI,
	CALLS_CHECKED /* by the wrappers, while CUPTI watches whether any come another way */
};

enum segments_mode {
	SEGMENTS_AUTO,	 /* from the first launch while nothing is outstanding until all is done */
	SEGMENTS_GRAPH,	 /* as auto, but only launches of graphs begin one */
	SEGMENTS_PROCESS /* from the first launch to the end of the process */
};

struct settings {
	char name[GPUSEG_NAME_BYTES];
	uint32_t priority; /* 0 = best effort */
	uint32_t weight;   /* 0 = unchanged */
	uint32_t reserve;  /* percent of the GPU for itself; 0 = none */
	bool waits;	   /* for the grant, at each begin */
	int64_t period_ns;
	int64_t deadline_ns;
	int64_t budget_ns;
	int64_t hold_off_ns;	  /* the least */
	int64_t hold_off_most_ns; /* the same, unless it is learned */
	int64_t wait_ns;	  /* longest wait at one launch */
	int64_t slice_ns;	  /* best effort: longest segment; 0 = no limit, -1 = as the daemon's mechanism needs */
	int64_t flight_ns;	  /* most work in flight on streams of lower priority; 0 = streams are not told apart */
	int64_t in_flight_ns;	  /* what flight_ns becomes when they are */
	int64_t bound_ns;     /* best effort, where launches are all that can be held: most work in flight; 0 = any */
	bool cuda_priorities; /* they are by the priority that CUDA knows */
	enum segments_mode mode;
	enum calls_mode calls;
	bool touch; /* real time: have the GPU switch to the program before expected begins */
	bool verbose;
};

#define HOLD_OFF_LEAST_NS (200 * NS_PER_US)
#define HOLD_OFF_STEPS 4 /* each is twice the one before */
#define HOLD_OFF_MOST_NS (HOLD_OFF_LEAST_NS << (HOLD_OFF_STEPS - 1))
#define WAIT_DEFAULT_NS (10 * NS_PER_S)
#define WAIT_LEAST_NS NS_PER_MS
#define SLICE_GATE_NS (500 * NS_PER_US)
#define SLICE_BY_MECHANISM (-1)
#define RESERVE_MAX 100
/* Where exec put the program, if the daemon keeps a part of the GPU free. */
#define EXEC_INSIDE_ENV "GPUSEG_EXEC_INSIDE"
#define EXEC_PLACE "place"     /* best effort, in a place */
#define EXEC_LONG "long"       /* real time, on all but the reserve */
#define EXEC_RESERVE "reserve" /* real time, with a part for itself */
#define FLIGHT_DEFAULT_NS (500 * NS_PER_US)

/* Read the environment. False: a variable is wrong, and a line has said which. */
bool settings_read(struct settings *settings);

/* "200us", "5ms", "1s", "250ns", "0" to nanoseconds. False if it is none of these or beyond an hour. */
bool duration_read(const char *text, int64_t *ns);

/* "on" or "off". False if it is neither. */
bool touch_read(const char *text, bool *touch);

#endif /* GPUSEG_INJECT_SETTINGS_H */
