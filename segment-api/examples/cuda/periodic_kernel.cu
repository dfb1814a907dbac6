/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A real-time task with one kernel per period, in a GPU segment.
 *
 *   nvcc -I../../include periodic_kernel.cu ../../build/libgpuseg.a -o periodic_kernel
 *   ./periodic_kernel [PERIOD_MS [JOBS]]      with a daemon: ./gpuseg run --mechanism nvidia
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "gpuseg_cuda.h"

__global__ void scale(float *data, int n, int rounds)
{
	const int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		for (int r = 0; r < rounds; r++)
			data[i] = data[i] * 0.999f + 1e-3f;
}

int main(int argc, char **argv)
{
	const int64_t period_ns = (argc > 1 ? atoll(argv[1]) : 20) * 1000000;
	const int jobs = argc > 2 ? atoi(argv[2]) : 100;
	const int n = 1 << 20;
	struct gpuseg_task_attr attr = GPUSEG_TASK_ATTR_INIT;
	struct gpuseg_cuda segment;
	gpuseg_client *client;
	gpuseg_task *task;
	float *data;
	int result;

	if (cudaMalloc(&data, n * sizeof(float)) != cudaSuccess ||
	    cudaMemset(data, 0, n * sizeof(float)) != cudaSuccess) {
		fprintf(stderr, "no CUDA device\n");
		return 1;
	}
	result = gpuseg_connect(NULL, &client);
	if (result < 0) {
		fprintf(stderr, "%s\n", gpuseg_last_message(NULL));
		return 1;
	}
	attr.name = "periodic-kernel";
	attr.priority = 70;
	attr.period_ns = period_ns;
	result = gpuseg_task_open(client, &attr, &task);
	if (result < 0) {
		fprintf(stderr, "%s\n", gpuseg_last_message(client));
		return 1;
	}
	scale<<<n / 256, 256>>>(data, n, 1); /* CUDA loads a kernel at its first launch, which takes 20 ms and more */
	cudaDeviceSynchronize();
	gpuseg_cuda_open(&segment, task, GPUSEG_CUDA_BLOCK | GPUSEG_CUDA_TOUCH);
	int64_t worst_ns = 0;
	int64_t release_ns = gpuseg_now_ns();
	for (int i = 0; i < jobs && result >= 0; i++) {
		release_ns += period_ns;
		struct timespec until = {(time_t)(release_ns / 1000000000), (long)(release_ns % 1000000000)};
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
		gpuseg_job_release(task, release_ns);
		result = gpuseg_cuda_begin(&segment);
		if (result < 0)
			break;
		scale<<<n / 256, 256>>>(data, n, 2000);
		result = gpuseg_cuda_end(&segment, 0);
		gpuseg_job_end(task);
		const int64_t response_ns = gpuseg_now_ns() - release_ns;
		if (response_ns > worst_ns)
			worst_ns = response_ns;
	}
	if (result < 0)
		fprintf(stderr, "%s\n", result == -EIO ? cudaGetErrorString(segment.error) : gpuseg_strerror(result));
	printf("%d jobs, worst response %.3f ms\n", jobs, worst_ns / 1e6);
	gpuseg_cuda_close(&segment);
	gpuseg_disconnect(client);
	cudaFree(data);
	return result < 0;
}
