/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The measured work: arithmetic of a set length on every multiprocessor. Each result depends only on the thread and the
 * length, so the check notices a preempted kernel that lost or repeated work.
 */
#ifndef GPUSEG_GPU_WORK_CUH
#define GPUSEG_GPU_WORK_CUH

#include "bench_page.h"

#include <cuda_runtime.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define CHECK(call)                                                                                                    \
	do {                                                                                                           \
		cudaError_t error_ = (call);                                                                           \
		if (error_ != cudaSuccess) {                                                                           \
			fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(error_));                                \
			exit(1);                                                                                       \
		}                                                                                                      \
	} while (0)

static inline int64_t now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* How long the last kernel took, for its first thread; its cycles divided by its ns are the clock that it ran at. */
struct gpu_work_time {
	int64_t cycles;
	int64_t ns;
	volatile int64_t done; /* not 0: the kernel has ended, if blocks are counted */
};

#ifdef __CUDACC__
__device__ static inline int64_t device_ns(void)
{
	int64_t ns;
	asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
	return ns;
}

/*
 * The first thread also writes how long it took, in cycles of its multiprocessor and in ns. `left`, if it is not NULL,
 * counts blocks, and the last one tells the host that the kernel has ended.
 */
__global__ void work(float *out, long n, struct gpu_work_time *time, unsigned *left)
{
	const bool first = time && blockIdx.x == 0 && threadIdx.x == 0;
	const int64_t from_cycles = first ? clock64() : 0, from_ns = first ? device_ns() : 0;
	float a = threadIdx.x * 1e-3f, b = 1.0001f;
	for (long i = 0; i < n; i++)
		a = fmaf(a, b, 1e-7f);
	out[blockIdx.x * blockDim.x + threadIdx.x] = a;
	if (first) {
		time->cycles = clock64() - from_cycles;
		time->ns = device_ns() - from_ns;
	}
	if (!left)
		return;
	__syncthreads();
	if (threadIdx.x == 0) {
		__threadfence_system();
		if (atomicInc(left, gridDim.x - 1) == gridDim.x - 1)
			time->done = 1;
	}
}
#endif

struct gpu_work {
	float *device; /* `slots` outputs, one after the other */
	float *host;
	float *reference;	    /* results of one block */
	struct gpu_work_time *time; /* memory of the host that the GPU writes; NULL: not told */
	unsigned *left;		    /* blocks that have not ended; NULL: not counted */
	int blocks;
	int threads;
	int slots;
	long n;
};

static inline size_t gpu_work_bytes(const struct gpu_work *w)
{
	return (size_t)w->blocks * w->threads * sizeof(float);
}

/* Makes GPU `index`, in the order of the PCI bus, the only visible one; -1 = leave the environment as it is. Call it
 * before the first CUDA call. */
static inline void gpu_work_choose(int index)
{
	char text[16];

	if (index < 0)
		return;
	snprintf(text, sizeof(text), "%d", index);
	setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID", 1);
	setenv("CUDA_VISIBLE_DEVICES", text, 1);
}

/* `slots`: number of kernels whose results are kept and checked together. */
static inline void gpu_work_open(struct gpu_work *w, int slots)
{
	cudaDeviceProp prop;
	CHECK(cudaGetDeviceProperties(&prop, 0));
	w->blocks = prop.multiProcessorCount * 8;
	w->threads = 256;
	w->slots = slots;
	size_t bytes = gpu_work_bytes(w) * slots;
	CHECK(cudaMalloc(&w->device, bytes));
	w->host = (float *)malloc(bytes);
	w->reference = (float *)malloc(w->threads * sizeof(float));
	w->time = NULL;
	w->left = NULL;
#ifdef __CUDACC__
	CHECK(cudaHostAlloc(&w->time, sizeof(*w->time), cudaHostAllocMapped));
	memset(w->time, 0, sizeof(*w->time));
#endif
}

/* From now on the host is told when a kernel has ended (gpu_work_watch). */
static inline void gpu_work_count(struct gpu_work *w)
{
#ifdef __CUDACC__
	CHECK(cudaMalloc(&w->left, sizeof(*w->left)));
	CHECK(cudaMemset(w->left, 0, sizeof(*w->left)));
#else
	(void)w;
#endif
}

/* The clock of a multiprocessor during the last kernel, MHz; 0 = not told. Call it when the kernel has ended. */
static inline int64_t gpu_work_mhz(const struct gpu_work *w)
{
	return w->time && w->time->ns > 0 ? w->time->cycles * 1000 / w->time->ns : 0;
}

static inline void gpu_work_launch(struct gpu_work *w, cudaStream_t s, int slot)
{
	float *out = w->device + (size_t)slot * w->blocks * w->threads;
#ifdef __CUDACC__
	if (w->left)
		w->time->done = 0;
	work<<<w->blocks, w->threads, 0, s>>>(out, w->n, w->time, w->left);
#else
	cuda_standin_launch(out, (size_t)w->blocks * w->threads, w->threads, w->n, s);
#endif
}

/*
 * One block without iterations: the GPU switches to this context. Its result is that of no job; the next job writes it
 * anew. It is not waited for: where others have the GPU it is done milliseconds later, and what follows must not be
 * late.
 */
static inline void gpu_work_touch(struct gpu_work *w)
{
#ifdef __CUDACC__
	work<<<1, w->threads>>>(w->device, 0, NULL, NULL);
#else
	cuda_standin_launch(w->device, (size_t)w->threads, w->threads, 0, 0);
#endif
}

#define GPU_WORK_GAP_NS 20000		/* a thread that looks all the time does so every 100 ns */
#define GPU_WORK_LIMIT_NS 20000000000ll /* nothing that is measured takes as long */

/*
 * Looks until the kernel has ended, by memory that the GPU writes, and tells for how long this thread's CPU was away
 * meanwhile: the sum of all gaps of more than 20 us between two looks, ns. Needs gpu_work_count. The stand-in waits
 * without looking.
 */
static inline int64_t gpu_work_watch(const struct gpu_work *w)
{
	int64_t away = 0;
#ifdef __CUDACC__
	const int64_t from = now_ns();
	for (int64_t before = from, at; !w->time->done; before = at) {
		at = now_ns();
		if (at - before > GPU_WORK_GAP_NS)
			away += at - before;
		if (at - from > GPU_WORK_LIMIT_NS) {
			CHECK(cudaStreamQuery(0));
			fprintf(stderr, "a kernel does not end\n");
			exit(1);
		}
	}
#else
	(void)w;
	CHECK(cudaStreamSynchronize(0));
#endif
	return away;
}

/* ns per loop iteration at the current clocks; minimum of five runs. */
static inline double gpu_work_calibrate(struct gpu_work *w)
{
	double best = 1e18;
	w->n = 1000000;
	for (int i = 0; i < 6; i++) {
		int64_t t = now_ns();
		gpu_work_launch(w, 0, 0);
		CHECK(cudaDeviceSynchronize());
		double per = (double)(now_ns() - t) / w->n;
		if (i && per < best)
			best = per;
	}
	return best;
}

/* Call it when the length is final: the reference is the first block of an undisturbed run. */
static inline void gpu_work_reference(struct gpu_work *w)
{
	gpu_work_launch(w, 0, 0);
	CHECK(cudaDeviceSynchronize());
	CHECK(cudaMemcpy(w->reference, w->device, w->threads * sizeof(float), cudaMemcpyDeviceToHost));
}

static inline void gpu_work_poison(struct gpu_work *w, cudaStream_t s)
{
	CHECK(cudaMemsetAsync(w->device, 0xff, gpu_work_bytes(w) * w->slots, s));
}

/* Number of wrong elements of the last run, over all slots. */
static inline long gpu_work_wrong(struct gpu_work *w)
{
	long wrong = 0;
	CHECK(cudaMemcpy(w->host, w->device, gpu_work_bytes(w) * w->slots, cudaMemcpyDeviceToHost));
	for (int i = 0; i < w->slots * w->blocks * w->threads; i++)
		wrong += memcmp(&w->host[i], &w->reference[i % w->threads], sizeof(float)) != 0;
	return wrong;
}

#endif
