/* SPDX-License-Identifier: Apache-2.0 */
/* flight.h - work in flight, and which streams give way. All with inject.lock held. */
#ifndef GPUSEG_INJECT_FLIGHT_H
#define GPUSEG_INJECT_FLIGHT_H

#include <stdbool.h>
#include <stdint.h>

struct gpu;
struct stream;

#define BATCH_MAX 64

/* Launches that are taken to be done together. */
struct batch {
	int64_t begin_ns; /* when its first launch came */
	unsigned int count;
	uintptr_t functions[BATCH_MAX];
	unsigned int kernels; /* whose share of the GPU is known, and the sum of these shares */
	unsigned int percent;
	bool opaque;  /* something else is in it, such as a graph */
	bool relaxed; /* it may be longer than kernels are told apart by */
};

/* Of a GPU: work on streams that give way. flight.c writes it. */
struct flight {
	int64_t ns;	  /* what it is thought to take */
	int64_t bound_ns; /* of the open segment: most work in flight on all streams; 0 = any */
	struct batch batch;
};

/* Does the stream give way to others, or is all work bounded? */
bool flight_applies(const struct stream *stream);
void flight_note_priority(struct stream *stream, int priority);
/* The highest priority of all streams seen. */
void flight_set_top(int priority);
/* A kernel, or whatever `function` stands for, is being launched on it; `percent` as of kernels_percent(). */
void flight_launched(struct stream *stream, uintptr_t function, int percent, int64_t at_ns);
/* No work on such streams is left. */
void flight_landed(struct gpu *gpu, int64_t at_ns);
/* Most work in flight, now. */
int64_t flight_room_ns(const struct gpu *gpu);
/* The open segment bounds all work in flight; 0 = any. */
void flight_bound(struct gpu *gpu, int64_t bound_ns);
/* Nothing is bounded, and streams are not told apart, from here on. */
void flight_unbound(struct gpu *gpu);
/* Its work can't be followed any more. */
void flight_forget(struct gpu *gpu);

#endif /* GPUSEG_INJECT_FLIGHT_H */
