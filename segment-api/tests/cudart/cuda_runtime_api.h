/* SPDX-License-Identifier: Apache-2.0 */
/* Those functions of the CUDA runtime that gpuseg_cuda.h uses, same names and types; test_cuda.c defines them. */
#ifndef TEST_CUDA_RUNTIME_API_H
#define TEST_CUDA_RUNTIME_API_H

#include <stddef.h>

typedef enum {
	cudaSuccess = 0,
	cudaErrorMemoryAllocation = 2,
	cudaErrorNotReady = 600,
	cudaErrorLaunchFailure = 719
} cudaError_t;
typedef struct fake_stream *cudaStream_t;
typedef struct fake_event *cudaEvent_t;
enum cudaStreamCaptureMode { cudaStreamCaptureModeGlobal = 0, cudaStreamCaptureModeRelaxed = 2 };

#define cudaEventBlockingSync 0x1
#define cudaEventDisableTiming 0x2
#define cudaStreamNonBlocking 0x1

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags);
cudaError_t cudaEventDestroy(cudaEvent_t event);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream);
cudaError_t cudaEventSynchronize(cudaEvent_t event);
cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t start, cudaEvent_t stop);
cudaError_t cudaGetDevice(int *device);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaMalloc(void **memory, size_t bytes);
cudaError_t cudaFree(void *memory);
cudaError_t cudaMemsetAsync(void *memory, int value, size_t bytes, cudaStream_t stream);
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaStreamQuery(cudaStream_t stream);
cudaError_t cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode *mode);

#endif
