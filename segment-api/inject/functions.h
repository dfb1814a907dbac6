/* SPDX-License-Identifier: Apache-2.0 */
/*
 * functions.h - the functions of the driver's API that are followed, and what a call of each means.
 *
 * Source of the signatures: NVIDIA's documentation of the driver API. All arguments are integers or pointers. Forms
 * from before CUDA 4, with 32-bit pointers, are left out.
 */
#ifndef GPUSEG_INJECT_FUNCTIONS_H
#define GPUSEG_INJECT_FUNCTIONS_H

#include <stdbool.h>
#include <stdint.h>

enum function_kind {
	OTHER = 0,
	LAUNCH,	       /* work on the stream that an argument names */
	LAUNCH_KERNEL, /* the same, of the kernel that is the first argument, whose shape follows it */
	LAUNCH_GRAPH,  /* the same, of the graph that is the first argument */
	LAUNCH_EX, /* of the kernel that is the second argument; stream and shape are where the first one points to */
	COPY,	   /* work on the default stream that may outlast the call */
	COPY_BACK, /* work on the default stream that is done when the call returns */
	SYNC_CONTEXT, /* all that was launched in the current context is done */
	SYNC_NAMED,   /* the same, in the context that is the first argument */
	SYNC_STREAM,
	SYNC_EVENT,
	RECORD, /* of the event that is the first argument, in the stream that is the second */
	CAPTURE_BEGIN,
	CAPTURE_END,
	STREAM_DESTROY,
	EVENT_DESTROY,
	CONTEXT_DESTROY, /* the context that is the first argument */
	DEVICE_RESET	 /* the primary context of the device that is the first argument */
};

/*
 * F, Z or D (name, number of arguments, kind, which argument names the stream).
 * Z and D: there is a variant for per-thread default streams, whose name ends in _ptsz or _ptds.
 */
#define FOLLOWED_FUNCTIONS(F, Z, D)                                                                                    \
	F(cuInit, 1, OTHER, 0)                                                                                         \
	F(cuLaunch, 1, COPY, 0)                                                                                        \
	F(cuLaunchGrid, 3, COPY, 0)                                                                                    \
	F(cuLaunchGridAsync, 4, LAUNCH, 3)                                                                             \
	Z(cuLaunchKernel, 11, LAUNCH_KERNEL, 8)                                                                        \
	Z(cuLaunchCooperativeKernel, 10, LAUNCH_KERNEL, 8)                                                             \
	Z(cuLaunchKernelEx, 4, LAUNCH_EX, 0)                                                                           \
	Z(cuGraphLaunch, 2, LAUNCH_GRAPH, 1)                                                                           \
	Z(cuMemcpyAsync, 4, LAUNCH, 3)                                                                                 \
	Z(cuMemcpyHtoDAsync_v2, 4, LAUNCH, 3)                                                                          \
	Z(cuMemcpyDtoHAsync_v2, 4, LAUNCH, 3)                                                                          \
	Z(cuMemcpyDtoDAsync_v2, 4, LAUNCH, 3)                                                                          \
	Z(cuMemcpyHtoAAsync_v2, 5, LAUNCH, 4)                                                                          \
	Z(cuMemcpyAtoHAsync_v2, 5, LAUNCH, 4)                                                                          \
	Z(cuMemcpyPeerAsync, 6, LAUNCH, 5)                                                                             \
	Z(cuMemcpy2DAsync_v2, 2, LAUNCH, 1)                                                                            \
	Z(cuMemcpy3DAsync_v2, 2, LAUNCH, 1)                                                                            \
	Z(cuMemcpy3DPeerAsync, 2, LAUNCH, 1)                                                                           \
	Z(cuMemcpyBatchAsync, 9, LAUNCH, 8)                                                                            \
	Z(cuMemcpyBatchAsync_v2, 8, LAUNCH, 7)                                                                         \
	Z(cuMemcpy3DBatchAsync, 5, LAUNCH, 4)                                                                          \
	Z(cuMemcpy3DBatchAsync_v2, 4, LAUNCH, 3)                                                                       \
	Z(cuMemsetD8Async, 4, LAUNCH, 3)                                                                               \
	Z(cuMemsetD16Async, 4, LAUNCH, 3)                                                                              \
	Z(cuMemsetD32Async, 4, LAUNCH, 3)                                                                              \
	Z(cuMemsetD2D8Async, 6, LAUNCH, 5)                                                                             \
	Z(cuMemsetD2D16Async, 6, LAUNCH, 5)                                                                            \
	Z(cuMemsetD2D32Async, 6, LAUNCH, 5)                                                                            \
	D(cuMemcpy, 3, COPY, 0)                                                                                        \
	D(cuMemcpyPeer, 5, COPY, 0)                                                                                    \
	D(cuMemcpyHtoD_v2, 3, COPY, 0)                                                                                 \
	D(cuMemcpyDtoD_v2, 3, COPY, 0)                                                                                 \
	D(cuMemcpyDtoA_v2, 4, COPY, 0)                                                                                 \
	D(cuMemcpyAtoD_v2, 4, COPY, 0)                                                                                 \
	D(cuMemcpyHtoA_v2, 4, COPY, 0)                                                                                 \
	D(cuMemcpyAtoA_v2, 5, COPY, 0)                                                                                 \
	D(cuMemcpy2D_v2, 1, COPY, 0)                                                                                   \
	D(cuMemcpy2DUnaligned_v2, 1, COPY, 0)                                                                          \
	D(cuMemcpy3D_v2, 1, COPY, 0)                                                                                   \
	D(cuMemcpy3DPeer, 1, COPY, 0)                                                                                  \
	D(cuMemcpyDtoH_v2, 3, COPY_BACK, 0)                                                                            \
	D(cuMemcpyAtoH_v2, 4, COPY_BACK, 0)                                                                            \
	D(cuMemsetD8_v2, 3, COPY, 0)                                                                                   \
	D(cuMemsetD16_v2, 3, COPY, 0)                                                                                  \
	D(cuMemsetD32_v2, 3, COPY, 0)                                                                                  \
	D(cuMemsetD2D8_v2, 5, COPY, 0)                                                                                 \
	D(cuMemsetD2D16_v2, 5, COPY, 0)                                                                                \
	D(cuMemsetD2D32_v2, 5, COPY, 0)                                                                                \
	F(cuCtxSynchronize, 0, SYNC_CONTEXT, 0)                                                                        \
	F(cuCtxSynchronize_v2, 1, SYNC_NAMED, 0)                                                                       \
	Z(cuStreamSynchronize, 1, SYNC_STREAM, 0)                                                                      \
	Z(cuStreamQuery, 1, SYNC_STREAM, 0)                                                                            \
	F(cuEventSynchronize, 1, SYNC_EVENT, 0)                                                                        \
	F(cuEventQuery, 1, SYNC_EVENT, 0)                                                                              \
	Z(cuEventRecord, 2, RECORD, 1)                                                                                 \
	Z(cuEventRecordWithFlags, 3, RECORD, 1)                                                                        \
	F(cuEventDestroy, 1, EVENT_DESTROY, 0)                                                                         \
	F(cuEventDestroy_v2, 1, EVENT_DESTROY, 0)                                                                      \
	Z(cuStreamBeginCapture, 2, CAPTURE_BEGIN, 0)                                                                   \
	Z(cuStreamBeginCapture_v2, 2, CAPTURE_BEGIN, 0)                                                                \
	Z(cuStreamBeginCaptureToGraph, 6, CAPTURE_BEGIN, 0)                                                            \
	Z(cuStreamEndCapture, 2, CAPTURE_END, 0)                                                                       \
	F(cuStreamDestroy, 1, STREAM_DESTROY, 0)                                                                       \
	F(cuStreamDestroy_v2, 1, STREAM_DESTROY, 0)                                                                    \
	F(cuCtxDestroy, 1, CONTEXT_DESTROY, 0)                                                                         \
	F(cuCtxDestroy_v2, 1, CONTEXT_DESTROY, 0)                                                                      \
	F(cuCtxDetach, 1, CONTEXT_DESTROY, 0)                                                                          \
	F(cuDevicePrimaryCtxReset, 1, DEVICE_RESET, 0)                                                                 \
	F(cuDevicePrimaryCtxReset_v2, 1, DEVICE_RESET, 0)                                                              \
	F(cuDevicePrimaryCtxRelease, 1, DEVICE_RESET, 0)                                                               \
	F(cuDevicePrimaryCtxRelease_v2, 1, DEVICE_RESET, 0)

#define FUNCTION_ONCE(name, ...) name##_INDEX,
#define FUNCTION_PTSZ(name, ...) name##_INDEX, name##_ptsz_INDEX,
#define FUNCTION_PTDS(name, ...) name##_INDEX, name##_ptds_INDEX,
enum function_index { FOLLOWED_FUNCTIONS(FUNCTION_ONCE, FUNCTION_PTSZ, FUNCTION_PTDS) FUNCTION_COUNT };
#undef FUNCTION_ONCE
#undef FUNCTION_PTSZ
#undef FUNCTION_PTDS

struct function {
	const char *name;
	uint8_t kind;
	uint8_t stream;	 /* which argument names it */
	bool per_thread; /* handle 0 is the default stream of the thread */
};

extern const struct function functions[FUNCTION_COUNT];

#endif /* GPUSEG_INJECT_FUNCTIONS_H */
