/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libcuda.so.1 on the stand-in of nvgpu, and with RUNTIME_HIP libamdhip64.so on that of KFD (its library is preloaded):
 * as much of them as gpuseg-selftest uses. A kernel takes ITERATION_NS for each of its iterations. Faults:
 * runtime_fault.h.
 */
#define _GNU_SOURCE
#include "gpu.h"
#include "runtime_fault.h"

#include <pthread.h>
#include <sys/ioctl.h>

#include "selftest/spin.h"
#ifndef RUNTIME_HIP
#include "tegra/gpuseg_tegra.h"
#include "tegra/tegra_state.h"
#endif

#define EXPORT __attribute__((visibility("default")))
#define ITERATION_NS 6u
#define UNKNOWN 999
#define NOT_FOUND 500
#define FOREVER_NS (UINT64_C(3600) * 1000000000u)

static struct gpu_group *group;
static uint64_t launched, counter;

static int join(uint32_t id, uint64_t slice_us)
{
	struct gpu *gpu = gpu_map();
	const int lock = gpu_lock();

	group = gpu_find(gpu, 0, 0);
	if (group) {
		group->id = id;
		group->slice_us = group->programmed_us = slice_us;
		group->pid = getpid();
	}
	gpu_unlock(lock);
	return group ? 0 : UNKNOWN;
}

static void launch(uint32_t iterations, uint64_t duration_ns)
{
	const uint64_t head = group->head;

	while (head - __atomic_load_n(&group->tail, __ATOMIC_ACQUIRE) >= GPU_KERNELS)
		gpu_sleep(1);
	group->counter = counter;
	group->kernels[head % GPU_KERNELS] = (struct gpu_kernel){gpu_now_ns(), duration_ns, spin_result(iterations)};
	__atomic_store_n(&group->head, head + 1, __ATOMIC_RELEASE);
	launched++;
}

static int launch_or_fail(uint32_t iterations)
{
	const int error = fault("launch");
	uint64_t duration_ns = (uint64_t)ITERATION_NS * iterations;

	if (error)
		return error;
	if (fault_effect[0] && (long)launched >= fault_argument) {
		if (strcmp(fault_effect, "exit") == 0)
			_exit(9);
		if (strcmp(fault_effect, "none") == 0)
			return 0;
		if (strcmp(fault_effect, "stuck") == 0)
			duration_ns = FOREVER_NS;
	}
	launch(iterations, duration_ns);
	return 0;
}

static int host_alloc(void **memory, size_t size)
{
	*memory = calloc(1, size);
	return *memory ? fault("alloc") : UNKNOWN;
}

#ifdef RUNTIME_HIP

#define API(cuda, hip) hip
#define POINTER void *
#define CREATE_QUEUE_BYTES 88
#define TOPOLOGY "sys/class/kfd/kfd/topology/nodes/1/gpu_id"

/* What ends holds by itself is noticed by who asks. */
extern int gpuseg_amd_off(void) __attribute__((weak));

static void *ask(void *nothing)
{
	for (;;) {
		gpuseg_amd_off();
		gpu_sleep(2);
	}
	return nothing;
}

/* As AMD's runtime does for a stream: a ring, and a queue that is active. */
static int make_context(void)
{
	unsigned char argument[CREATE_QUEUE_BYTES] = {0};
	const uint32_t size = 4096, percentage = 100, type = 2;
	const uint64_t ring = 0x7f0000000000u;
	const int kfd = open("/dev/kfd", O_RDWR | O_CLOEXEC);
	char path[256];
	pthread_t thread;
	uint32_t gpu_id;
	FILE *file;

	snprintf(path, sizeof(path), "%s/" TOPOLOGY, getenv("GPUSEG_AMD_STANDIN"));
	file = fopen(path, "re");
	if (kfd < 0 || !file || fscanf(file, "%u", &gpu_id) != 1 || !gpuseg_amd_off)
		return UNKNOWN;
	fclose(file);
	memcpy(argument, &ring, sizeof(ring));
	memcpy(argument + 32, &size, sizeof(size));
	memcpy(argument + 36, &gpu_id, sizeof(gpu_id));
	memcpy(argument + 40, &type, sizeof(type));
	memcpy(argument + 44, &percentage, sizeof(percentage));
	if (join(0, 0) != 0 || ioctl(kfd, _IOC(_IOC_READ | _IOC_WRITE, 'K', 2, sizeof(argument)), argument) != 0)
		return UNKNOWN;
	return pthread_create(&thread, NULL, ask, NULL);
}

EXPORT int hiprtcCreateProgram(void **program, const char *source, const char *name, int count,
			       const char *const *headers, const char *const *names);
EXPORT int hiprtcCreateProgram(void **program, const char *source, const char *name, int count,
			       const char *const *headers, const char *const *names)
{
	(void)name, (void)count, (void)headers, (void)names;
	*program = (void *)(uintptr_t)source;
	return 0;
}

EXPORT int hiprtcCompileProgram(void *program, int count, const char *const *options);
EXPORT int hiprtcCompileProgram(void *program, int count, const char *const *options)
{
	(void)program, (void)count, (void)options;
	return fault("compile");
}

EXPORT int hiprtcGetCodeSize(void *program, size_t *size);
EXPORT int hiprtcGetCodeSize(void *program, size_t *size)
{
	*size = strlen(program) + 1;
	return 0;
}

EXPORT int hiprtcGetCode(void *program, char *code);
EXPORT int hiprtcGetCode(void *program, char *code)
{
	strcpy(code, program);
	return 0;
}

#else

#define API(cuda, hip) cuda
#define POINTER uint64_t

static int make_context(void)
{
	const int fd = open(GPUSEG_TEGRA_TSG_DEVICE, O_RDWR | O_CLOEXEC);
	const struct tegra_tsg *tsg = fd < 0 ? MAP_FAILED : mmap(NULL, sizeof(*tsg), PROT_READ, MAP_SHARED, fd, 0);

	if (strcmp(fault_effect, "close") == 0) /* the mapping keeps the TSG */
		close(fd);
	return tsg == MAP_FAILED ? UNKNOWN : join(tsg->tsgid, tsg->timeslice_us);
}

#endif

#define INIT API(cuInit, hipInit)
#define COUNT API(cuDeviceGetCount, hipGetDeviceCount)
#define GET API(cuDeviceGet, hipDeviceGet)
#define NAME API(cuDeviceGetName, hipDeviceGetName)
#define RETAIN API(cuDevicePrimaryCtxRetain, hipDevicePrimaryCtxRetain)
#define SET API(cuCtxSetCurrent, hipCtxSetCurrent)
#define REGISTER API(cuMemHostRegister_v2, hipHostRegister)
#define ALLOC API(cuMemHostAlloc, hipHostMalloc)
#define DEVICE_POINTER API(cuMemHostGetDevicePointer_v2, hipHostGetDevicePointer)
#define LOAD API(cuModuleLoadData, hipModuleLoadData)
#define FUNCTION API(cuModuleGetFunction, hipModuleGetFunction)
#define STREAM API(cuStreamCreate, hipStreamCreateWithFlags)
#define LAUNCH API(cuLaunchKernel, hipModuleLaunchKernel)

EXPORT int INIT(unsigned flags);
EXPORT int INIT(unsigned flags)
{
	(void)flags;
	return fault("init");
}

EXPORT int COUNT(int *count);
EXPORT int COUNT(int *count)
{
	*count = 1;
	return fault("count");
}

EXPORT int GET(int *device, int ordinal);
EXPORT int GET(int *device, int ordinal)
{
	*device = ordinal;
	return 0;
}

EXPORT int NAME(char *name, int size, int device);
EXPORT int NAME(char *name, int size, int device)
{
	(void)device;
	snprintf(name, (size_t)size, "stand-in");
	return 0;
}

EXPORT int RETAIN(void **context, int device);
EXPORT int RETAIN(void **context, int device)
{
	const int error = fault("context");

	(void)device;
	*context = &group;
	return error ? error : make_context();
}

EXPORT int SET(void *context);
EXPORT int SET(void *context)
{
	return context == &group ? 0 : UNKNOWN;
}

EXPORT int REGISTER(void *memory, size_t size, unsigned flags);
EXPORT int REGISTER(void *memory, size_t size, unsigned flags)
{
	(void)memory, (void)size, (void)flags;
	return fault("register");
}

EXPORT int ALLOC(void **memory, size_t size, unsigned flags);
EXPORT int ALLOC(void **memory, size_t size, unsigned flags)
{
	(void)flags;
	return host_alloc(memory, size);
}

EXPORT int DEVICE_POINTER(POINTER *pointer, void *memory, unsigned flags);
EXPORT int DEVICE_POINTER(POINTER *pointer, void *memory, unsigned flags)
{
	(void)flags;
	*pointer = (POINTER)(uintptr_t)memory;
	return 0;
}

EXPORT int LOAD(void **module, const void *image);
EXPORT int LOAD(void **module, const void *image)
{
	*module = strdup(image); /* the caller may free what it was loaded from */
	return *module ? fault("module") : UNKNOWN;
}

EXPORT int FUNCTION(void **function, void *module, const char *name);
EXPORT int FUNCTION(void **function, void *module, const char *name)
{
	*function = module;
	return strstr(module, name) ? 0 : NOT_FOUND;
}

EXPORT int STREAM(void **stream, unsigned flags);
EXPORT int STREAM(void **stream, unsigned flags)
{
	(void)flags;
	*stream = &group;
	return 0;
}

EXPORT int LAUNCH(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
		  unsigned shared, void *stream, void **parameters, void **extra);
EXPORT int LAUNCH(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
		  unsigned shared, void *stream, void **parameters, void **extra)
{
	(void)function, (void)gx, (void)gy, (void)gz, (void)bx, (void)by, (void)bz;
	(void)shared, (void)stream, (void)extra;
	counter = *(uint64_t *)parameters[0];
	return launch_or_fail(*(uint32_t *)parameters[1]);
}
