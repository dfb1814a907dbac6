/* SPDX-License-Identifier: Apache-2.0 */
/*
 * driver_api.h - the little of CUDA's driver API and of CUPTI that the injected library uses, declared by ourselves so
 * that building it needs no CUDA.
 *
 * Source: NVIDIA's public documentation of the CUDA driver API and of CUPTI 13.0. Layouts are those of 64-bit Linux.
 * Tested: H200, driver 580.159.04 (CUDA 13.0), PyTorch 2.11, 2026-11. Not tested: aarch64, older drivers.
 */
#ifndef GPUSEG_INJECT_DRIVER_API_H
#define GPUSEG_INJECT_DRIVER_API_H

#include <stddef.h>
#include <stdint.h>

typedef int CUresult; /* 0 = success */
typedef int CUdevice;
typedef struct CUctx_st *CUcontext;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;
typedef struct CUfunc_st *CUfunction;
typedef unsigned long long CUdeviceptr;

#define CUDA_SUCCESS 0
#define CUDA_ERROR_NOT_READY 600

/* Handles that name no object: the default stream of the context and that of the calling thread. */
#define STREAM_LEGACY ((uintptr_t)1)
#define STREAM_PER_THREAD ((uintptr_t)2)

#define CAPTURE_STATUS_NONE 0
#define CAPTURE_MODE_RELAXED 2
#define MEMHOSTREGISTER_DEVICEMAP 2u

/* Functions of libcuda, found by name. */
struct driver {
	CUresult (*cuDriverGetVersion)(int *version); /* major * 1000 + minor * 10 */
	CUresult (*cuCtxGetDevice)(CUdevice *device);
	CUresult (*cuDeviceGetPCIBusId)(char *text, int size, CUdevice device); /* "0000:1b:00.0" */
	CUresult (*cuCtxPushCurrent_v2)(CUcontext context);
	CUresult (*cuCtxPopCurrent_v2)(CUcontext *context);
	CUresult (*cuMemHostRegister_v2)(void *memory, size_t size, unsigned int flags);
	CUresult (*cuMemHostUnregister)(void *memory);
	CUresult (*cuMemHostGetDevicePointer_v2)(CUdeviceptr *device, void *memory, unsigned int flags);
	CUresult (*cuStreamWriteValue32_v2)(CUstream stream, CUdeviceptr address, uint32_t value, unsigned int flags);
	CUresult (*cuStreamQuery)(CUstream stream);
	CUresult (*cuStreamIsCapturing)(CUstream stream, int *status);
	CUresult (*cuStreamGetPriority)(CUstream stream, int *priority);
	CUresult (*cuThreadExchangeStreamCaptureMode)(int *mode);
};

/* The same, but the library does without them. */
struct occupancy {
	CUresult (*cuDeviceGetAttribute)(int *value, int attribute, CUdevice device);
	CUresult (*cuOccupancyMaxActiveBlocksPerMultiprocessor)(int *blocks, CUfunction function, int threads,
								size_t shared);
};

/* The same, but without them calls are not followed by wrappers. */
struct identity {
	CUresult (*cuCtxGetCurrent)(CUcontext *context);
	CUresult (*cuCtxGetId)(CUcontext context, unsigned long long *id); /* never used again in the process */
};

/* For touches; the library does without them, too. */
#define STREAM_NON_BLOCKING 1u

struct touching {
	CUresult (*cuStreamCreate)(CUstream *stream, unsigned int flags);
	CUresult (*cuMemsetD32Async)(CUdeviceptr address, unsigned int value, size_t words, CUstream stream);
};

/* ---- CUPTI's callback interface ---- */

#define CUPTI_SUCCESS 0
#define CUPTI_ERROR_MULTIPLE_SUBSCRIBERS 39
#define CUPTI_DOMAIN_DRIVER_API 1
#define CUPTI_SITE_ENTER 0
#define CUPTI_SITE_EXIT 1

struct cupti_call {
	int site;
	const char *function_name;
	const void *parameters; /* block of the function's parameters, naturally aligned */
	const CUresult *result; /* at the exit */
	const char *symbol_name;
	CUcontext context;     /* current one of the thread, or NULL */
	uint32_t context_uid;  /* never used again in the process */
	uint64_t *correlation; /* one word of ours for each call, kept from entry to exit */
	uint32_t correlation_id;
};
_Static_assert(offsetof(struct cupti_call, context) == 40 && offsetof(struct cupti_call, correlation) == 56,
	       "layout of CUpti_CallbackData");

typedef void (*cupti_callback)(void *user, uint32_t domain, uint32_t id, const void *data);

struct cupti {
	int (*cuptiGetVersion)(uint32_t *version);
	int (*cuptiSubscribe)(void **subscriber, cupti_callback callback, void *user);
	int (*cuptiUnsubscribe)(void *subscriber);
	int (*cuptiEnableCallback)(uint32_t enable, void *subscriber, uint32_t domain, uint32_t id);
	int (*cuptiGetCallbackName)(uint32_t domain, uint32_t id, const char **name);
};

#endif /* GPUSEG_INJECT_DRIVER_API_H */
