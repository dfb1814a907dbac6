/* SPDX-License-Identifier: Apache-2.0 */
/* check.cuh - CUDA programs of the benches: an error of the runtime ends the program, and says which call it was. */
#ifndef GPUSEG_BENCH_CHECK_CUH
#define GPUSEG_BENCH_CHECK_CUH

#include <cuda_runtime.h>
#include <stdio.h>
#include <stdlib.h>

#define CHECK(call)                                                                                                    \
	do {                                                                                                           \
		const cudaError_t error_ = (call);                                                                     \
		if (error_ != cudaSuccess) {                                                                           \
			fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(error_));                                \
			exit(1);                                                                                       \
		}                                                                                                      \
	} while (0)

#endif /* GPUSEG_BENCH_CHECK_CUH */
