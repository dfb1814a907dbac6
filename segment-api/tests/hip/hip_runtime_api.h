/* SPDX-License-Identifier: Apache-2.0 */
/* Those functions of the HIP runtime that gpuseg_hip.h uses, with the same names and types; test_hip.c defines them. */
#ifndef TEST_HIP_RUNTIME_API_H
#define TEST_HIP_RUNTIME_API_H

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
	hipSuccess = 0,
	hipErrorOutOfMemory = 2,
	hipErrorNotReady = 600,
	hipErrorLaunchFailure = 719
} hipError_t;
typedef struct fake_stream *hipStream_t;
typedef struct fake_event *hipEvent_t;

#define hipEventDefault 0x0
#define hipEventBlockingSync 0x1
#define hipEventDisableTiming 0x2

hipError_t hipEventCreateWithFlags(hipEvent_t *event, unsigned flags);
hipError_t hipEventDestroy(hipEvent_t event);
hipError_t hipEventRecord(hipEvent_t event, hipStream_t stream);
hipError_t hipEventSynchronize(hipEvent_t event);
hipError_t hipEventQuery(hipEvent_t event);
hipError_t hipEventElapsedTime(float *ms, hipEvent_t start, hipEvent_t stop);

#ifdef __cplusplus
}
#endif

#endif
