/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu.h - an NVIDIA GPU through the driver's own library, which is opened at run time: building needs no CUDA.
 *
 * Functions that can fail print one line and return a negative value. One GPU and one context per process.
 *
 * Source of the declarations: NVIDIA's public documentation of the CUDA driver API.
 */
#ifndef GPUSEG_LATENCY_GPU_H
#define GPUSEG_LATENCY_GPU_H

#include <stddef.h>
#include <stdint.h>

typedef int CUresult; /* 0 = success */
typedef int CUdevice;
typedef unsigned long long CUdeviceptr;
typedef struct CUctx_st *CUcontext;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;
typedef struct CUgraph_st *CUgraph;
typedef struct CUgraphExec_st *CUgraphExec;

enum {
	CUDA_SUCCESS = 0,
	CUDA_ERROR_NO_DEVICE = 100,
	CUDA_ERROR_NOT_READY = 600,
	CU_CTX_SCHED_BLOCKING_SYNC = 4,
	CU_STREAM_NON_BLOCKING = 1,
	CU_STREAM_CAPTURE_MODE_THREAD_LOCAL = 1,
	CU_MEMHOSTALLOC_PORTABLE = 1,
	CU_MEMHOSTALLOC_DEVICEMAP = 2,
	CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT = 16,
	CU_DEVICE_ATTRIBUTE_MPS_ENABLED = 133
};

#define CUDA_FUNCTIONS(X)                                                                                              \
	X(cuInit, (unsigned int flags))                                                                                \
	X(cuDriverGetVersion, (int *version))                                                                          \
	X(cuGetErrorString, (CUresult result, const char **text))                                                      \
	X(cuDeviceGet, (CUdevice * device, int ordinal))                                                               \
	X(cuDeviceGetCount, (int *count))                                                                              \
	X(cuDeviceGetName, (char *name, int size, CUdevice device))                                                    \
	X(cuDeviceGetAttribute, (int *value, int attribute, CUdevice device))                                          \
	X(cuDeviceGetPCIBusId, (char *text, int size, CUdevice device))                                                \
	X(cuCtxCreate_v2, (CUcontext * context, unsigned int flags, CUdevice device))                                  \
	X(cuCtxDestroy_v2, (CUcontext context))                                                                        \
	X(cuCtxSetCurrent, (CUcontext context))                                                                        \
	X(cuModuleLoadData, (CUmodule * module, const void *image))                                                    \
	X(cuModuleGetFunction, (CUfunction * function, CUmodule module, const char *name))                             \
	X(cuStreamCreate, (CUstream * stream, unsigned int flags))                                                     \
	X(cuStreamQuery, (CUstream stream))                                                                            \
	X(cuStreamSynchronize, (CUstream stream))                                                                      \
	X(cuLaunchKernel,                                                                                              \
	  (CUfunction f, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx, unsigned int by,          \
	   unsigned int bz, unsigned int shared, CUstream stream, void **parameters, void **extra))                    \
	X(cuEventCreate, (CUevent * event, unsigned int flags))                                                        \
	X(cuEventRecord, (CUevent event, CUstream stream))                                                             \
	X(cuEventElapsedTime, (float *ms, CUevent from, CUevent to))                                                   \
	X(cuMemAlloc_v2, (CUdeviceptr * address, size_t bytes))                                                        \
	X(cuMemHostAlloc, (void **address, size_t bytes, unsigned int flags))                                          \
	X(cuMemHostGetDevicePointer_v2, (CUdeviceptr * device, void *host, unsigned int flags))                        \
	X(cuMemcpyHtoDAsync_v2, (CUdeviceptr to, const void *from, size_t bytes, CUstream stream))                     \
	X(cuMemcpyDtoHAsync_v2, (void *to, CUdeviceptr from, size_t bytes, CUstream stream))

/* Only where a graph is launched: from driver 470 on. */
#define CUDA_GRAPH_FUNCTIONS(X)                                                                                        \
	X(cuStreamBeginCapture_v2, (CUstream stream, int mode))                                                        \
	X(cuStreamEndCapture, (CUstream stream, CUgraph * graph))                                                      \
	X(cuGraphInstantiateWithFlags, (CUgraphExec * executable, CUgraph graph, unsigned long long flags))            \
	X(cuGraphLaunch, (CUgraphExec executable, CUstream stream))

struct cuda {
#define X(name, parameters) CUresult(*name) parameters;
	CUDA_FUNCTIONS(X)
	CUDA_GRAPH_FUNCTIONS(X)
#undef X
};

enum work_kind {
	WORK_KERNEL, /* does `rounds` of arithmetic in every thread, then writes a number that the host sees */
	WORK_READ,   /* reads 64 bytes in every thread in a round, from more memory than caches hold, then as above */
	WORK_COPY,   /* of `bytes` from pinned memory of the host to the GPU, as a camera's frame */
	WORK_GRAPH   /* a CUDA graph of `kernels` one after the other, which only write a number */
};

struct work {
	enum work_kind kind;
	unsigned int blocks, threads;
	uint64_t rounds; /* 0: the kernel only writes the number */
	size_t bytes;
	uint32_t kernels;
};

struct gpu {
	struct cuda cuda;
	CUdevice device;
	CUcontext context;
	CUfunction kernel, reader;
	CUstream stream;
	volatile uint32_t *word; /* in host memory; W: the GPU, the number of the latest kernel that is done */
	CUdeviceptr device_word;
	uint32_t launched; /* number of the latest kernel */
	void *frame;	   /* of a copy: its bytes here, and their place there */
	CUdeviceptr device_frame;
	CUdeviceptr memory; /* that WORK_READ reads */
	CUgraphExec graph;
	unsigned int multiprocessors;
	int index; /* as the daemon counts: in the order of the PCI bus */
	char name[100];
	char driver[32]; /* "580.159.04", or the version of the API that it offers */
};

/* Opens the library and finds the device. 0, or after one line -ENODEV: no driver or no GPU, or -1. */
int gpu_find(struct gpu *gpu, int ordinal);

/* A context, the kernel and a stream. */
int gpu_open(struct gpu *gpu, unsigned int context_flags);

void gpu_close(struct gpu *gpu);

/* One line about a call that failed. Returns -1, or 0 where the result is success. */
int gpu_check(const struct gpu *gpu, CUresult result, const char *call);

/* What a copy, a graph or a kernel that reads needs; nothing for one that computes. Once, before it is launched. */
int gpu_prepare(struct gpu *gpu, const struct work *work);

/* Puts the work into the GPU's stream. Numbers are given by `launched`; a graph's begin again with each launch. */
int gpu_launch(struct gpu *gpu, const struct work *work);

/* The same on another stream, with the number 0 at another place: changes nothing that others see. */
int gpu_launch_apart(struct gpu *gpu, CUstream stream);

/* 1: the stream has work, 0: all of it is done, -1: the GPU failed. */
int gpu_busy(struct gpu *gpu);

/* How many of the kernels launched are not done. */
static inline uint32_t gpu_in_flight(const struct gpu *gpu)
{
	return gpu->launched - *gpu->word;
}

/* Launches one kernel and waits for it. Its time in ns, or -1. */
int64_t gpu_run(struct gpu *gpu, const struct work *work);

/* Sets the rounds so that the kernel takes this long on the GPU as it is now. */
int gpu_calibrate(struct gpu *gpu, struct work *work, int64_t target_ns);

#endif /* GPUSEG_LATENCY_GPU_H */
