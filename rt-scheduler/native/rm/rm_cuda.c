/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libcuda.so.1 for programs that load CUDA's driver API by name, on the RM stand-in (libgpuseg-rm-fake.so is preloaded,
 * too): as much of it as gpuseg-selftest uses. A kernel takes ITERATION_NS for each of its iterations, and is queued.
 * Faults: ../selftest/standin/runtime_fault.h.
 */
#define _GNU_SOURCE
#include "rm_context.h"

#include "../selftest/standin/runtime_fault.h"
#include "../selftest/spin.h"

#include <fcntl.h>
#include <stdint.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
#define ITERATION_NS 6u
#define UNKNOWN 999
#define FOREVER_NS (UINT64_C(3600) * 1000000000u)

static struct context context;
static uint64_t launched;

EXPORT int cuInit(unsigned flags);
EXPORT int cuInit(unsigned flags)
{
	(void)flags;
	return fault("init");
}

EXPORT int cuDeviceGetCount(int *count);
EXPORT int cuDeviceGetCount(int *count)
{
	*count = 1;
	return fault("count");
}

EXPORT int cuDeviceGet(int *device, int ordinal);
EXPORT int cuDeviceGet(int *device, int ordinal)
{
	*device = ordinal;
	return 0;
}

EXPORT int cuDeviceGetName(char *name, int size, int device);
EXPORT int cuDeviceGetName(char *name, int size, int device)
{
	(void)device;
	snprintf(name, (size_t)size, "stand-in");
	return 0;
}

EXPORT int cuDevicePrimaryCtxRetain(void **ctx, int device);
EXPORT int cuDevicePrimaryCtxRetain(void **ctx, int device)
{
	const int error = fault("context");
	int fd;

	(void)device;
	if (error)
		return error;
	fd = open("/dev/nvidiactl", O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return UNKNOWN;
	context = make_context(fd, visible_gpu());
	*ctx = &context;
	return 0;
}

EXPORT int cuCtxSetCurrent(void *ctx);
EXPORT int cuCtxSetCurrent(void *ctx)
{
	return ctx == &context ? 0 : UNKNOWN;
}

EXPORT int cuMemHostRegister_v2(void *memory, size_t size, unsigned flags);
EXPORT int cuMemHostRegister_v2(void *memory, size_t size, unsigned flags)
{
	(void)memory;
	(void)size;
	(void)flags;
	return fault("register");
}

EXPORT int cuMemHostAlloc(void **memory, size_t size, unsigned flags);
EXPORT int cuMemHostAlloc(void **memory, size_t size, unsigned flags)
{
	(void)flags;
	*memory = calloc(1, size);
	return *memory ? fault("alloc") : UNKNOWN;
}

EXPORT int cuMemHostGetDevicePointer_v2(uint64_t *pointer, void *memory, unsigned flags);
EXPORT int cuMemHostGetDevicePointer_v2(uint64_t *pointer, void *memory, unsigned flags)
{
	(void)flags;
	*pointer = (uint64_t)(uintptr_t)memory;
	return 0;
}

EXPORT int cuModuleLoadData(void **module, const void *image);
EXPORT int cuModuleLoadData(void **module, const void *image)
{
	*module = (void *)(uintptr_t)image;
	return fault("module");
}

EXPORT int cuModuleGetFunction(void **function, void *module, const char *name);
EXPORT int cuModuleGetFunction(void **function, void *module, const char *name)
{
	*function = module;
	return strstr(module, name) ? 0 : 500;
}

EXPORT int cuStreamCreate(void **stream, unsigned flags);
EXPORT int cuStreamCreate(void **stream, unsigned flags)
{
	(void)flags;
	*stream = &context;
	return 0;
}

EXPORT int cuLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
			  unsigned shared, void *stream, void **parameters, void **extra);
EXPORT int cuLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
			  unsigned shared, void *stream, void **parameters, void **extra)
{
	const int error = fault("launch");
	struct rm_wire_work w = {.client = context.client,
				 .channel = context.channel,
				 .duration_ns = (uint64_t)ITERATION_NS * *(uint32_t *)parameters[1],
				 .seed = spin_result(*(uint32_t *)parameters[1]),
				 .pid = getpid(),
				 .counter = *(uint64_t *)parameters[0],
				 .value = launched + 1};

	(void)function, (void)gx, (void)gy, (void)gz, (void)bx, (void)by, (void)bz;
	(void)shared, (void)stream, (void)extra;
	if (error)
		return error;
	if (fault_effect[0] && (long)launched >= fault_argument) {
		if (strcmp(fault_effect, "exit") == 0)
			_exit(9);
		if (strcmp(fault_effect, "none") == 0)
			return 0;
		if (strcmp(fault_effect, "stuck") == 0)
			w.duration_ns = FOREVER_NS;
	}
	launched++;
	if (ioctl(context.fd, _IOC(_IOC_READ | _IOC_WRITE, 'F', RM_WIRE_ESC_WORK, sizeof(w)), &w) != 0 || w.status != 0)
		return UNKNOWN;
	return 0;
}
