/* SPDX-License-Identifier: Apache-2.0 */
/* segments.h - begin a segment at the first launch, end it when all work is done. All with inject.lock held. */
#ifndef GPUSEG_INJECT_SEGMENTS_H
#define GPUSEG_INJECT_SEGMENTS_H

#include <stdbool.h>
#include <stdint.h>

struct gpu;

enum segment_state { SEGMENT_NONE_OPEN, SEGMENT_BEGINNING, SEGMENT_OPEN };

/* The segment of a GPU. segments.c writes it; others read its state. */
struct segment_of_gpu {
	enum segment_state state;
	bool marked;   /* gpuseg_begin() of the open segment succeeded, so it is to be ended */
	bool draining; /* the slice is used up: launches wait until the work in flight is done */
	int64_t opened_ns;
	int64_t worked_ns;	/* how long streams had work, until gpu->idle_ns */
	uint64_t count;		/* begun so far */
	const void *connection; /* to the daemon with which it began */
	/* Segments of limited length: how many launches are taken to make up one, and how many it has. */
	unsigned int slice_launches;
	unsigned int launched;
};

/*
 * Begin a segment if none is open. May release the lock and wait. True: one is open, and the caller may count its
 * launch before it releases the lock. `graph`: a graph is being launched.
 */
bool segment_enter(struct gpu *gpu, bool graph);
/* A stream has work while none had; all work is done. */
void segment_busy(struct gpu *gpu, int64_t at_ns);
void segment_idle(struct gpu *gpu, int64_t at_ns);
/* End the segment of every GPU that was idle for the hold-off. Returns when to look again; INT64_MAX = never. */
int64_t segments_look(int64_t at_ns);
/* End the open segments of all GPUs, whatever runs. */
void segments_end(void);

#endif /* GPUSEG_INJECT_SEGMENTS_H */
