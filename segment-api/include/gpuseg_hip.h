/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpuseg_hip.h - segments around the work of a HIP stream. Header only; needs the HIP runtime and libgpuseg.
 *
 *   struct gpuseg_hip segment;
 *   gpuseg_hip_open(&segment, task, GPUSEG_HIP_BLOCK);
 *   for (;;) {
 *           gpuseg_hip_begin(&segment);
 *           kernel<<<grid, block, 0, stream>>>(...);
 *           gpuseg_hip_end(&segment, stream);   // waits for the stream, then ends the segment
 *   }
 *   gpuseg_hip_close(&segment);
 *
 * Results. 0 or a positive value as gpuseg_begin(); a negative errno as the functions of gpuseg.h; -EIO if HIP failed,
 * with the HIP error in segment.error. A segment that was begun is always ended, even if HIP failed.
 *
 * Threads. A struct gpuseg_hip belongs to the thread of its task, and to the HIP device that was current when it was
 * opened.
 *
 * HIP maps streams to a few hardware queues (GPU_MAX_HW_QUEUES, default 4), so a stream is not a queue: the scheduler
 * disables all queues of a process together. A plain C compiler needs -D__HIP_PLATFORM_AMD__.
 *
 * Experimental. Compiled and run against stand-ins of the HIP functions only, never on AMD hardware.
 */
#ifndef GPUSEG_HIP_H
#define GPUSEG_HIP_H

#include <errno.h>
#include <hip/hip_runtime_api.h>

#include "gpuseg.h"

#ifdef __cplusplus
extern "C" {
#endif

enum gpuseg_hip_flag {
	GPUSEG_HIP_SPIN = 0,	    /* poll until the stream is done: shortest response, keeps one CPU busy */
	GPUSEG_HIP_BLOCK = 1 << 0,  /* sleep until the stream is done */
	GPUSEG_HIP_MEASURE = 1 << 1 /* report how long the stream worked; needs gpuseg_hip_begin_on() */
};

struct gpuseg_hip {
	gpuseg_task *task;
	hipEvent_t first; /* GPUSEG_HIP_MEASURE only */
	hipEvent_t last;
	hipError_t error; /* of the last call that returned -EIO */
	unsigned int flags;
};

static inline int gpuseg_hip_failed(struct gpuseg_hip *s, hipError_t error)
{
	s->error = error;
	return -EIO;
}

/* Create the events. The caller keeps owning `task`. 0, -EIO, or -EINVAL (unknown flag). */
static inline int gpuseg_hip_open(struct gpuseg_hip *s, gpuseg_task *task, unsigned int flags)
{
	const unsigned int events = ((flags & GPUSEG_HIP_BLOCK) ? hipEventBlockingSync : 0u) |
				    ((flags & GPUSEG_HIP_MEASURE) ? 0u : hipEventDisableTiming);
	hipError_t error;

	s->task = task;
	s->first = NULL;
	s->last = NULL;
	s->error = hipSuccess;
	s->flags = flags;
	if (flags & ~(unsigned int)(GPUSEG_HIP_BLOCK | GPUSEG_HIP_MEASURE))
		return -EINVAL;
	error = hipEventCreateWithFlags(&s->last, events);
	if (error == hipSuccess && (flags & GPUSEG_HIP_MEASURE)) {
		error = hipEventCreateWithFlags(&s->first, events);
		if (error != hipSuccess) {
			(void)hipEventDestroy(s->last);
			s->last = NULL;
		}
	}
	return error == hipSuccess ? 0 : gpuseg_hip_failed(s, error);
}

static inline void gpuseg_hip_close(struct gpuseg_hip *s)
{
	if (s->first)
		(void)hipEventDestroy(s->first);
	if (s->last)
		(void)hipEventDestroy(s->last);
	s->first = NULL;
	s->last = NULL;
}

/* Begin the segment. Returns what gpuseg_begin() returns. */
static inline int gpuseg_hip_begin(struct gpuseg_hip *s)
{
	return gpuseg_begin(s->task);
}

/* As gpuseg_hip_begin(), and record in `stream` where the work starts (GPUSEG_HIP_MEASURE). */
static inline int gpuseg_hip_begin_on(struct gpuseg_hip *s, hipStream_t stream)
{
	const int result = gpuseg_begin(s->task);
	hipError_t error;

	if (result < 0 || !s->first)
		return result;
	error = hipEventRecord(s->first, stream);
	if (error == hipSuccess)
		return result;
	gpuseg_end(s->task);
	return gpuseg_hip_failed(s, error);
}

/* Wait for the event. Polls unless GPUSEG_HIP_BLOCK is set, whatever the device's own way of waiting is. */
static inline hipError_t gpuseg_hip_wait(struct gpuseg_hip *s)
{
	hipError_t error;

	if (s->flags & GPUSEG_HIP_BLOCK)
		return hipEventSynchronize(s->last);
	do
		error = hipEventQuery(s->last);
	while (error == hipErrorNotReady);
	return error;
}

/* Wait until all work submitted to `stream` so far is done, then end the segment. Never waits for the daemon. */
static inline int gpuseg_hip_end(struct gpuseg_hip *s, hipStream_t stream)
{
	hipError_t error = hipEventRecord(s->last, stream);
	float ms = 0;
	int result;

	if (error == hipSuccess)
		error = gpuseg_hip_wait(s);
	if (error == hipSuccess && s->first)
		error = hipEventElapsedTime(&ms, s->first, s->last);
	result = gpuseg_end_measured(s->task, error == hipSuccess && s->first ? (int64_t)(ms * 1e6f) : 0);
	return error == hipSuccess ? result : gpuseg_hip_failed(s, error);
}

#ifdef __cplusplus
}
#endif

#endif /* GPUSEG_HIP_H */
