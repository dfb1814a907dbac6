/* SPDX-License-Identifier: Apache-2.0 */
/*
 * standin.h - stand-ins for libcuda.so.1 and libcupti.so.13, for tests without a GPU: as much of the driver API as
 * libgpuseg-inject.so and the test programs use, with the driver's injection interface and CUPTI's callbacks.
 *
 * A stream is a thread that carries out what was launched, in order. A kernel works for some microseconds, then
 * computes *p = *p * 31 + k, so that the result tells whether every kernel ran, once, and in order. Streams run at the
 * same time, so each needs a word of its own: a word that changes while a kernel runs is a violation.
 *
 * What the driver would punish is counted as a violation: a write or query on a stream that is being captured, a query
 * of the default stream during a capture, a handle that is no longer valid, a call from a child of the process. So is
 * a touch during a capture, or on a stream that the program made, or that waits for the default stream.
 */
#ifndef STANDIN_H
#define STANDIN_H

#include <stdint.h>

#include "../../inject/driver_api.h"

#define STANDIN __attribute__((visibility("default")))

#define STANDIN_CALLS                                                                                                  \
	X(cuLaunchKernel)                                                                                              \
	X(cuLaunchKernel_ptsz)                                                                                         \
	X(cuLaunchKernelEx)                                                                                            \
	X(cuLaunchCooperativeKernel)                                                                                   \
	X(cuGraphLaunch)                                                                                               \
	X(cuMemcpyAsync)                                                                                               \
	X(cuMemcpyDtoH_v2)                                                                                             \
	X(cuMemsetD8Async)                                                                                             \
	X(cuCtxSynchronize)                                                                                            \
	X(cuStreamSynchronize)                                                                                         \
	X(cuStreamSynchronize_ptsz)                                                                                    \
	X(cuStreamQuery)                                                                                               \
	X(cuEventRecord)                                                                                               \
	X(cuEventSynchronize)                                                                                          \
	X(cuEventQuery)                                                                                                \
	X(cuEventDestroy_v2)                                                                                           \
	X(cuStreamBeginCapture_v2)                                                                                     \
	X(cuStreamEndCapture)                                                                                          \
	X(cuStreamDestroy_v2)                                                                                          \
	X(cuStreamCreateWithPriority)                                                                                  \
	X(cuCtxDestroy_v2)

enum standin_call {
	CALL_NONE = 0,
#define X(name) CALL_##name,
	STANDIN_CALLS
#undef X
		CALL_END
};

typedef struct CUgraph_st *CUgraph;
typedef struct CUgraphExec_st *CUgraphExec;

struct standin_config { /* CUlaunchConfig */
	unsigned int dimensions[6];
	unsigned int shared;
	CUstream stream;
	void *attributes;
	unsigned int attribute_count;
};

/* The driver API, as the tests call it. */
STANDIN CUresult cuInit(unsigned int flags);
STANDIN CUresult cuDriverGetVersion(int *version);
STANDIN CUresult cuGetProcAddress(const char *symbol, void **function, int version, uint64_t flags);
STANDIN CUresult cuGetProcAddress_v2(const char *symbol, void **function, int version, uint64_t flags, void *status);
STANDIN CUresult cuCtxCreate_v2(CUcontext *context, unsigned int flags, CUdevice device);
STANDIN CUresult cuCtxDestroy_v2(CUcontext context);
STANDIN CUresult cuCtxPushCurrent_v2(CUcontext context);
STANDIN CUresult cuCtxPopCurrent_v2(CUcontext *context);
STANDIN CUresult cuCtxGetCurrent(CUcontext *context);
STANDIN CUresult cuCtxGetId(CUcontext context, unsigned long long *id);
STANDIN CUresult cuCtxGetDevice(CUdevice *device);
STANDIN CUresult cuDeviceGetPCIBusId(char *text, int size, CUdevice device);
STANDIN CUresult cuDeviceGetAttribute(int *value, int attribute, CUdevice device);
STANDIN CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, CUfunction function, int threads,
							     size_t shared);
STANDIN CUresult cuCtxSynchronize(void);
STANDIN CUresult cuStreamCreateWithPriority(CUstream *stream, unsigned int flags, int priority);
STANDIN CUresult cuStreamCreate(CUstream *stream, unsigned int flags);
STANDIN CUresult cuStreamGetPriority(CUstream stream, int *priority);
STANDIN CUresult cuStreamDestroy_v2(CUstream stream);
STANDIN CUresult cuStreamSynchronize(CUstream stream);
STANDIN CUresult cuStreamSynchronize_ptsz(CUstream stream);
STANDIN CUresult cuStreamQuery(CUstream stream);
STANDIN CUresult cuStreamIsCapturing(CUstream stream, int *status);
STANDIN CUresult cuStreamBeginCapture_v2(CUstream stream, int mode);
STANDIN CUresult cuStreamEndCapture(CUstream stream, CUgraph *graph);
STANDIN CUresult cuThreadExchangeStreamCaptureMode(int *mode);
STANDIN CUresult cuStreamWriteValue32_v2(CUstream stream, CUdeviceptr address, uint32_t value, unsigned int flags);
STANDIN CUresult cuGraphInstantiateWithFlags(CUgraphExec *exec, CUgraph graph, unsigned long long flags);
STANDIN CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream);
STANDIN CUresult cuLaunchKernel(CUfunction f, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx,
				unsigned int by, unsigned int bz, unsigned int shared, CUstream stream,
				void **parameters, void **extra);
STANDIN CUresult cuLaunchKernel_ptsz(CUfunction f, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx,
				     unsigned int by, unsigned int bz, unsigned int shared, CUstream stream,
				     void **parameters, void **extra);
STANDIN CUresult cuLaunchCooperativeKernel(CUfunction f, unsigned int gx, unsigned int gy, unsigned int gz,
					   unsigned int bx, unsigned int by, unsigned int bz, unsigned int shared,
					   CUstream stream, void **parameters);
STANDIN CUresult cuLaunchKernelEx(const struct standin_config *config, CUfunction f, void **parameters, void **extra);
STANDIN CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream);
STANDIN CUresult cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t bytes);
STANDIN CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t bytes, CUstream stream);
STANDIN CUresult cuMemsetD32Async(CUdeviceptr to, unsigned int value, size_t words, CUstream stream);
STANDIN CUresult cuEventCreate(CUevent *event, unsigned int flags);
STANDIN CUresult cuEventRecord(CUevent event, CUstream stream);
STANDIN CUresult cuEventSynchronize(CUevent event);
STANDIN CUresult cuEventQuery(CUevent event);
STANDIN CUresult cuEventDestroy_v2(CUevent event);
STANDIN CUresult cuMemHostRegister_v2(void *memory, size_t size, unsigned int flags);
STANDIN CUresult cuMemHostUnregister(void *memory);
STANDIN CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *device, void *memory, unsigned int flags);

/* Of the stand-in alone. A kernel of this length; parameters: uint64_t *p, uint64_t k. */
STANDIN CUfunction standin_kernel(long us);
/* A launch that no wrapper of the program's calls can see. */
STANDIN CUresult standin_launch(long us, CUstream stream, void **parameters);
STANDIN unsigned int standin_violations(void);
/* How many markers were written, by the streams. */
STANDIN unsigned int standin_markers(void);
/* How often a stream was asked. */
STANDIN unsigned int standin_queries(void);
/* How many touches there were: memsets of words, which no program here asks for. */
STANDIN unsigned int standin_touches(void);

/* For the stand-in of CUPTI. */
typedef void (*standin_tracer)(enum standin_call call, struct cupti_call *data);
STANDIN void standin_trace(standin_tracer tracer);
STANDIN const char *standin_call_name(uint32_t id);

#endif /* STANDIN_H */
