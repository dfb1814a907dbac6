/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpuseg_cuda.h - segments around the work of a CUDA stream. Header only; needs the CUDA runtime and libgpuseg.
 *
 *   struct gpuseg_cuda segment;
 *   gpuseg_cuda_open(&segment, task, GPUSEG_CUDA_BLOCK);
 *   for (;;) {
 *           gpuseg_cuda_begin(&segment);
 *           kernel<<<grid, block, 0, stream>>>(...);
 *           gpuseg_cuda_end(&segment, stream);   // waits for the stream, then ends the segment
 *   }
 *   gpuseg_cuda_close(&segment);
 *
 * Results. 0 or a positive value as gpuseg_begin(); a negative errno as the functions of gpuseg.h; -EIO if CUDA failed,
 * with the CUDA error in segment.error. A segment that was begun is always ended, even if CUDA failed.
 *
 * Threads. A struct gpuseg_cuda belongs to the thread of its task, and to the CUDA device that was current when it was
 * opened.
 */
#ifndef GPUSEG_CUDA_H
#define GPUSEG_CUDA_H

#include <cuda_runtime_api.h>
#include <errno.h>

#include "gpuseg.h"

#ifdef __cplusplus
extern "C" {
#endif

enum gpuseg_cuda_flag {
	GPUSEG_CUDA_SPIN = 0,	     /* poll until the stream is done: shortest response, keeps one CPU busy */
	GPUSEG_CUDA_BLOCK = 1 << 0,  /* sleep until the stream is done: takes some tens of microseconds longer */
	GPUSEG_CUDA_MEASURE = 1 << 1 /* report how long the stream worked; needs gpuseg_cuda_begin_on() */
};

struct gpuseg_cuda {
	gpuseg_task *task;
	cudaEvent_t first; /* GPUSEG_CUDA_MEASURE only */
	cudaEvent_t last;
	cudaError_t error; /* of the last call that returned -EIO */
	unsigned int flags;
};

static inline int gpuseg_cuda_failed(struct gpuseg_cuda *s, cudaError_t error)
{
	s->error = error;
	return -EIO;
}

/* Create the events. The caller keeps owning `task`. 0, -EIO, or -EINVAL (unknown flag). */
static inline int gpuseg_cuda_open(struct gpuseg_cuda *s, gpuseg_task *task, unsigned int flags)
{
	const unsigned int events = ((flags & GPUSEG_CUDA_BLOCK) ? cudaEventBlockingSync : 0u) |
				    ((flags & GPUSEG_CUDA_MEASURE) ? 0u : cudaEventDisableTiming);
	cudaError_t error;

	s->task = task;
	s->first = NULL;
	s->last = NULL;
	s->error = cudaSuccess;
	s->flags = flags;
	if (flags & ~(unsigned int)(GPUSEG_CUDA_BLOCK | GPUSEG_CUDA_MEASURE))
		return -EINVAL;
	error = cudaEventCreateWithFlags(&s->last, events);
	if (error == cudaSuccess && (flags & GPUSEG_CUDA_MEASURE)) {
		error = cudaEventCreateWithFlags(&s->first, events);
		if (error != cudaSuccess) {
			cudaEventDestroy(s->last);
			s->last = NULL;
		}
	}
	return error == cudaSuccess ? 0 : gpuseg_cuda_failed(s, error);
}

static inline void gpuseg_cuda_close(struct gpuseg_cuda *s)
{
	if (s->first)
		cudaEventDestroy(s->first);
	if (s->last)
		cudaEventDestroy(s->last);
	s->first = NULL;
	s->last = NULL;
}

/* Begin the segment. Returns what gpuseg_begin() returns. */
static inline int gpuseg_cuda_begin(struct gpuseg_cuda *s)
{
	return gpuseg_begin(s->task);
}

/* As gpuseg_cuda_begin(), and record in `stream` where the work starts (GPUSEG_CUDA_MEASURE). */
static inline int gpuseg_cuda_begin_on(struct gpuseg_cuda *s, cudaStream_t stream)
{
	const int result = gpuseg_begin(s->task);
	cudaError_t error;

	if (result < 0 || !s->first)
		return result;
	error = cudaEventRecord(s->first, stream);
	if (error == cudaSuccess)
		return result;
	gpuseg_end(s->task);
	return gpuseg_cuda_failed(s, error);
}

/* Wait until all work submitted to `stream` so far is done, then end the segment. Never waits for the daemon. */
static inline int gpuseg_cuda_end(struct gpuseg_cuda *s, cudaStream_t stream)
{
	cudaError_t error = cudaEventRecord(s->last, stream);
	float ms = 0;
	int result;

	if (error == cudaSuccess)
		error = cudaEventSynchronize(s->last);
	if (error == cudaSuccess && s->first)
		error = cudaEventElapsedTime(&ms, s->first, s->last);
	result = gpuseg_end_measured(s->task, error == cudaSuccess && s->first ? (int64_t)(ms * 1e6f) : 0);
	return error == cudaSuccess ? result : gpuseg_cuda_failed(s, error);
}

#ifdef __cplusplus
}
#endif

#endif /* GPUSEG_CUDA_H */
