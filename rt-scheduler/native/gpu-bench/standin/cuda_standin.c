/* SPDX-License-Identifier: Apache-2.0 */
/* See cuda_runtime_api.h. A kernel is launched from the caller's thread and runs in another, as on a GPU. */
#define _GNU_SOURCE
#include "cuda_runtime_api.h"

#include "../../rm/rm_context.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>

#define MULTIPROCESSORS 1
#define ERROR_UNKNOWN 999

static struct context contexts[2];
static int used; /* of contexts */
static int opened;
static int busy;
static cudaError_t failure;
static pthread_t worker;
static struct {
	float *out;
	size_t count;
	int threads;
	long n;
} job;

static cudaError_t ready(void)
{
	int fd;

	if (opened)
		return failure;
	opened = 1;
	fd = open("/dev/nvidiactl", O_RDWR | O_CLOEXEC);
	if (fd < 0)
		failure = ERROR_UNKNOWN;
	else
		contexts[0] = make_context(fd, visible_gpu());
	return failure;
}

/* If this variable is set, every seventh kernel writes no result: it tests the checks of the bench. */
#define WRONG_ENV "GPUSEG_CUDA_STANDIN_WRONG"
#define WRONG_EVERY 7

static void *run(void *arg)
{
	static int number;

	(void)arg;
	if (++number % WRONG_EVERY == 0 && getenv(WRONG_ENV))
		return NULL;
	if (kernel(&contexts[used], (double)job.n / 1e6, (uint64_t)job.n) == 1)
		for (size_t i = 0; i < job.count; i++)
			job.out[i] = (float)(job.n % 100003) + (float)(i % (size_t)job.threads) / 1024;
	else
		failure = ERROR_UNKNOWN;
	return NULL;
}

cudaError_t cudaDeviceSynchronize(void)
{
	if (busy) {
		busy = 0;
		if (pthread_join(worker, NULL) != 0)
			return ERROR_UNKNOWN;
	}
	return ready();
}

cudaError_t cuda_standin_use(int second, int next_gpu)
{
	const cudaError_t error = cudaDeviceSynchronize();

	if (error == cudaSuccess && second && contexts[1].client == 0)
		contexts[1] = add_context(contexts[0].fd, contexts[0].client, SECOND_CONTEXT,
					  visible_gpu() + (next_gpu ? 1 : 0));
	used = second;
	return error;
}

/* Of all streams but the default one, which is NULL. */
static int stream_of_its_own;

static int is_other(cudaStream_t stream)
{
	return (const void *)stream == &stream_of_its_own;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned int flags)
{
	(void)flags;
	*stream = (cudaStream_t)(void *)&stream_of_its_own;
	return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
	return is_other(stream) ? cudaSuccess : ERROR_UNKNOWN;
}

cudaError_t cudaStreamQuery(cudaStream_t stream)
{
	return is_other(stream) ? cudaSuccess : ERROR_UNKNOWN;
}

cudaError_t cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode *mode)
{
	(void)mode;
	return cudaSuccess;
}

cudaError_t cudaGetDevice(int *device)
{
	*device = 0;
	return cudaSuccess;
}

cudaError_t cudaSetDevice(int device)
{
	return device == 0 ? cudaSuccess : ERROR_UNKNOWN;
}

cudaError_t cudaFree(void *memory)
{
	free(memory);
	return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
	return is_other(stream) ? cudaSuccess : cudaDeviceSynchronize();
}

void cuda_standin_launch(float *out, size_t count, int threads, long n, cudaStream_t stream)
{
	if (cudaStreamSynchronize(stream) != cudaSuccess)
		return;
	job.out = out;
	job.count = count;
	job.threads = threads;
	job.n = n;
	busy = pthread_create(&worker, NULL, run, NULL) == 0;
	if (!busy)
		failure = ERROR_UNKNOWN;
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *properties, int device)
{
	(void)device;
	properties->multiProcessorCount = MULTIPROCESSORS;
	return ready();
}

cudaError_t cudaSetDeviceFlags(unsigned int flags)
{
	(void)flags;
	return cudaSuccess;
}

cudaError_t cuda_standin_malloc(void **memory, size_t bytes)
{
	*memory = malloc(bytes);
	return *memory ? ready() : ERROR_UNKNOWN;
}

cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, int kind)
{
	const cudaError_t error = cudaDeviceSynchronize();

	(void)kind;
	if (error == cudaSuccess)
		memcpy(to, from, bytes);
	return error;
}

cudaError_t cudaMemsetAsync(void *memory, int value, size_t bytes, cudaStream_t stream)
{
	const cudaError_t error = cudaStreamSynchronize(stream);

	if (error == cudaSuccess)
		memset(memory, value, bytes);
	return error;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned int flags)
{
	(void)flags;
	*event = NULL;
	return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
	(void)event;
	return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
	(void)event;
	(void)stream;
	return cudaSuccess;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
	(void)event;
	return cudaDeviceSynchronize();
}

cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t from, cudaEvent_t to)
{
	(void)from;
	(void)to;
	*ms = 0;
	return cudaSuccess;
}

const char *cudaGetErrorString(cudaError_t error)
{
	return error == cudaSuccess ? "no error" : "the RM stand-in does not answer, or a kernel's result was wrong";
}
