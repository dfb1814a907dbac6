/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpuseg_cuda.h - segments around the work of a CUDA stream. Header only; needs the CUDA runtime and libgpuseg.
 *
 *   struct gpuseg_cuda segment;
 *   gpuseg_cuda_open(&segment, task, GPUSEG_CUDA_BLOCK | GPUSEG_CUDA_TOUCH);
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
 *
 * Touches (GPUSEG_CUDA_TOUCH). After others had the GPU, the first kernel of a segment waits until the GPU has switched
 * to this context: 0.07 to 0.1 ms on H100 and H200. Where the daemon expects the begin (a period, a learned begin, a
 * hint), that can be over before it. A thread waits for what the daemon says (gpuseg_expected()), and has the GPU set
 * four bytes on a stream of its own, twice for each begin: a kernel of some microseconds that waits for no other
 * stream. None is launched while a segment is begun, but for one whose launch has started just before, nor before the
 * touch before is done. If CUDA fails, touches end, and nothing else does. The thread inherits the scheduling policy of
 * the caller, all signals are blocked in it.
 *
 * - Begin and end by the functions of this header alone: it does not see gpuseg_begin() and its kin, nor gpuseg_end().
 * - The structure stays where it is until gpuseg_cuda_close(), which comes before gpuseg_task_close() and
 *   gpuseg_disconnect(). Not in a forked child.
 * - Open and close call cudaMalloc() and cudaFree(): no other thread may capture a stream in global mode meanwhile, and
 *   close waits for the device.
 * - For the primary context of the device, as the CUDA runtime uses it.
 * - Needs POSIX: -std=gnu11, or _POSIX_C_SOURCE; else open says -ENOTSUP. And -pthread, with glibc before 2.34.
 */
#ifndef GPUSEG_CUDA_H
#define GPUSEG_CUDA_H

#include <cuda_runtime_api.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>

#include "gpuseg.h"

#ifdef __cplusplus
extern "C" {
#endif

enum gpuseg_cuda_flag {
	GPUSEG_CUDA_SPIN = 0,	      /* poll until the stream is done: shortest response, keeps one CPU busy */
	GPUSEG_CUDA_BLOCK = 1 << 0,   /* sleep until the stream is done: takes some tens of microseconds longer */
	GPUSEG_CUDA_MEASURE = 1 << 1, /* report how long the stream worked; needs gpuseg_cuda_begin_on() */
	GPUSEG_CUDA_TOUCH = 1 << 2    /* have the GPU switch to this context before begins that are expected */
};

#define GPUSEG_CUDA_FLAGS (GPUSEG_CUDA_BLOCK | GPUSEG_CUDA_MEASURE | GPUSEG_CUDA_TOUCH)
#define GPUSEG_CUDA_LOOK_NS 20000000ll /* how often the thread that touches looks whether it is to end */

struct gpuseg_cuda {
	gpuseg_task *task;
	cudaEvent_t first; /* GPUSEG_CUDA_MEASURE only */
	cudaEvent_t last;
	cudaError_t error; /* of the last call that returned -EIO */
	unsigned int flags;
	/* GPUSEG_CUDA_TOUCH only. Atomic: what the task's thread and the one that touches both use. */
	pthread_t thread;
	int device;
	cudaStream_t stream;
	void *touched;	      /* four bytes on the GPU */
	unsigned int runs;    /* 1 = the thread was started */
	unsigned int begun;   /* atomic: 1 = a segment is */
	unsigned int stop;    /* atomic */
	unsigned int touches; /* atomic: so far */
};

static inline int gpuseg_cuda_failed(struct gpuseg_cuda *s, cudaError_t error)
{
	s->error = error;
	return -EIO;
}

/* ---- touches ---- */

#ifdef SIG_SETMASK /* the compiler was asked for POSIX */

/* Touch, unless a segment is begun or the touch before is not done. */
static inline cudaError_t gpuseg_cuda_touch(struct gpuseg_cuda *s)
{
	cudaError_t error;

	if (__atomic_load_n(&s->begun, __ATOMIC_ACQUIRE))
		return cudaSuccess;
	error = cudaStreamQuery(s->stream);
	if (error == cudaErrorNotReady)
		return cudaSuccess;
	if (error == cudaSuccess)
		error = cudaMemsetAsync(s->touched, 0, sizeof(uint32_t), s->stream);
	if (error == cudaSuccess)
		__atomic_fetch_add(&s->touches, 1, __ATOMIC_RELAXED);
	return error;
}

static inline void *gpuseg_cuda_toucher(void *argument)
{
	struct gpuseg_cuda *s = (struct gpuseg_cuda *)argument;
	enum cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
	cudaError_t error = cudaSetDevice(s->device);
	uint32_t seen = 0;

	/* This thread's calls must not spoil a capture of another thread. */
	if (error == cudaSuccess)
		error = cudaThreadExchangeStreamCaptureMode(&mode);
	while (error == cudaSuccess && !__atomic_load_n(&s->stop, __ATOMIC_ACQUIRE)) {
		const int result = gpuseg_expected(s->task, &seen, GPUSEG_CUDA_LOOK_NS);

		if (result == 0)
			error = gpuseg_cuda_touch(s);
		else if (result != -ETIMEDOUT)
			break;
	}
	return NULL;
}

static inline void gpuseg_cuda_stop_touching(struct gpuseg_cuda *s)
{
	__atomic_store_n(&s->stop, 1, __ATOMIC_RELEASE);
	if (s->runs)
		pthread_join(s->thread, NULL);
	s->runs = 0;
	if (s->touched)
		cudaFree(s->touched);
	if (s->stream)
		cudaStreamDestroy(s->stream);
	s->touched = NULL;
	s->stream = NULL;
}

/* The first touch is made here: with it the driver loads the kernel. */
static inline int gpuseg_cuda_start_touching(struct gpuseg_cuda *s)
{
	cudaError_t error = cudaGetDevice(&s->device);
	sigset_t all, before;
	int result;

	if (error == cudaSuccess)
		error = cudaStreamCreateWithFlags(&s->stream, cudaStreamNonBlocking);
	if (error == cudaSuccess)
		error = cudaMalloc(&s->touched, sizeof(uint32_t));
	if (error == cudaSuccess)
		error = cudaMemsetAsync(s->touched, 0, sizeof(uint32_t), s->stream);
	if (error == cudaSuccess)
		error = cudaStreamSynchronize(s->stream);
	if (error != cudaSuccess)
		return gpuseg_cuda_failed(s, error);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	result = -pthread_create(&s->thread, NULL, gpuseg_cuda_toucher, s);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	s->runs = result == 0;
	return result;
}

#else

static inline void gpuseg_cuda_stop_touching(struct gpuseg_cuda *s)
{
	(void)s;
}

static inline int gpuseg_cuda_start_touching(struct gpuseg_cuda *s)
{
	(void)s;
	return -ENOTSUP;
}

#endif

/* How often the GPU was touched so far. Any thread. */
static inline unsigned int gpuseg_cuda_touches(const struct gpuseg_cuda *s)
{
	return __atomic_load_n(&s->touches, __ATOMIC_RELAXED);
}

/* ---- segments ---- */

/*
 * Free what gpuseg_cuda_open() made. With GPUSEG_CUDA_TOUCH it waits for the thread, 20 ms at most, longer only while
 * the library asks the daemon for something (5 s at most), and for the device.
 */
static inline void gpuseg_cuda_close(struct gpuseg_cuda *s)
{
	gpuseg_cuda_stop_touching(s);
	if (s->first)
		cudaEventDestroy(s->first);
	if (s->last)
		cudaEventDestroy(s->last);
	s->first = NULL;
	s->last = NULL;
}

/*
 * Create the events, and with GPUSEG_CUDA_TOUCH a stream and a thread. The caller keeps owning `task`. 0, -EIO, -EINVAL
 * (unknown flag), -ENOTSUP, or why the thread could not be started. After a failure there is nothing to close.
 */
static inline int gpuseg_cuda_open(struct gpuseg_cuda *s, gpuseg_task *task, unsigned int flags)
{
	const unsigned int events = ((flags & GPUSEG_CUDA_BLOCK) ? cudaEventBlockingSync : 0u) |
				    ((flags & GPUSEG_CUDA_MEASURE) ? 0u : cudaEventDisableTiming);
	cudaError_t error;
	int result = 0;

	memset(s, 0, sizeof(*s));
	s->task = task;
	s->error = cudaSuccess;
	s->flags = flags;
	if (flags & ~(unsigned int)GPUSEG_CUDA_FLAGS)
		return -EINVAL;
	error = cudaEventCreateWithFlags(&s->last, events);
	if (error == cudaSuccess && (flags & GPUSEG_CUDA_MEASURE))
		error = cudaEventCreateWithFlags(&s->first, events);
	if (error != cudaSuccess)
		result = gpuseg_cuda_failed(s, error);
	else if (flags & GPUSEG_CUDA_TOUCH)
		result = gpuseg_cuda_start_touching(s);
	if (result < 0)
		gpuseg_cuda_close(s);
	return result;
}

/* Begin the segment. Returns what gpuseg_begin() returns. */
static inline int gpuseg_cuda_begin(struct gpuseg_cuda *s)
{
	int result;

	__atomic_store_n(&s->begun, 1, __ATOMIC_RELEASE);
	result = gpuseg_begin(s->task);
	if (result < 0 && result != -EALREADY) /* one is begun */
		__atomic_store_n(&s->begun, 0, __ATOMIC_RELEASE);
	return result;
}

/*
 * End the segment; the caller has waited for its work. device_ns: for how long the GPU worked, 0 = unknown. Results as
 * gpuseg_end_measured().
 */
static inline int gpuseg_cuda_end_done(struct gpuseg_cuda *s, int64_t device_ns)
{
	const int result = gpuseg_end_measured(s->task, device_ns);

	__atomic_store_n(&s->begun, 0, __ATOMIC_RELEASE);
	return result;
}

/* As gpuseg_cuda_begin(), and record in `stream` where the work starts (GPUSEG_CUDA_MEASURE). */
static inline int gpuseg_cuda_begin_on(struct gpuseg_cuda *s, cudaStream_t stream)
{
	const int result = gpuseg_cuda_begin(s);
	cudaError_t error;

	if (result < 0 || !s->first)
		return result;
	error = cudaEventRecord(s->first, stream);
	if (error == cudaSuccess)
		return result;
	gpuseg_cuda_end_done(s, 0);
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
	result = gpuseg_cuda_end_done(s, error == cudaSuccess && s->first ? (int64_t)(ms * 1e6f) : 0);
	return error == cudaSuccess ? result : gpuseg_cuda_failed(s, error);
}

#ifdef __cplusplus
}
#endif

#endif /* GPUSEG_CUDA_H */
