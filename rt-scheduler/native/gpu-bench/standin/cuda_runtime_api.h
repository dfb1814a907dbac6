/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stand-in of the CUDA runtime for machines without a GPU: the functions that the programs of this directory and
 * gpuseg_cuda.h call, on a context of the RM stand-in (../../rm). Memory is host memory, and one iteration of the
 * kernel takes one nanosecond. One thread, and one stream that kernels run on. For tests of the bench only: its times
 * say nothing about a GPU.
 */
#ifndef GPUSEG_CUDA_STANDIN_H
#define GPUSEG_CUDA_STANDIN_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef int cudaError_t;
typedef struct cuda_standin_stream *cudaStream_t;
typedef struct cuda_standin_event *cudaEvent_t;

#define cudaSuccess 0
#define cudaEventBlockingSync 1u
#define cudaEventDisableTiming 2u
#define cudaDeviceScheduleSpin 1u
#define cudaErrorNotReady 600
#define cudaMemcpyDeviceToHost 2
#define cudaStreamNonBlocking 1u

enum cudaStreamCaptureMode { cudaStreamCaptureModeRelaxed = 2 };

struct cudaDeviceProp {
	int multiProcessorCount;
};

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *properties, int device);
cudaError_t cudaSetDeviceFlags(unsigned int flags);
cudaError_t cuda_standin_malloc(void **memory, size_t bytes);
cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, int kind);
cudaError_t cudaMemsetAsync(void *memory, int value, size_t bytes, cudaStream_t stream);
cudaError_t cudaDeviceSynchronize(void);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
/* A stream of its own, which another thread may use. What is done there takes no GPU time. */
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned int flags);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamQuery(cudaStream_t stream);
cudaError_t cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode *mode);
cudaError_t cudaGetDevice(int *device);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaFree(void *memory);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned int flags);
cudaError_t cudaEventDestroy(cudaEvent_t event);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream);
cudaError_t cudaEventSynchronize(cudaEvent_t event);
cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t from, cudaEvent_t to);
const char *cudaGetErrorString(cudaError_t error);

/* The context of the next kernel: the first, or a second one on the same GPU or on the next. */
cudaError_t cuda_standin_use(int second, int next_gpu);

/* The kernel: after `n` ns of GPU time each element of `out` depends only on n and its index. */
void cuda_standin_launch(float *out, size_t count, int threads, long n, cudaStream_t stream);

#ifdef __cplusplus
}

static inline cudaError_t cudaMalloc(float **memory, size_t bytes)
{
	return cuda_standin_malloc((void **)memory, bytes);
}

static inline cudaError_t cudaMalloc(void **memory, size_t bytes)
{
	return cuda_standin_malloc(memory, bytes);
}
#endif

#endif
