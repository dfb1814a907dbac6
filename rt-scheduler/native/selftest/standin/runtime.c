/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libcuda.so.1, and with RUNTIME_HIP libamdhip64.so, on the stand-in of a driver (runtime.h), whose library is
 * preloaded: as much of them as gpuseg-selftest uses. A kernel takes ITERATION_NS for each of its iterations, and is
 * queued. Faults: runtime_fault.h.
 */
#define _GNU_SOURCE
#include "runtime.h"
#include "runtime_fault.h"

#define EXPORT __attribute__((visibility("default")))
#define ITERATION_NS 6u
#define NOT_FOUND 500
#define FOREVER_NS (UINT64_C(3600) * 1000000000u)

static char context; /* and its only stream */
static uint64_t launched;

#ifdef RUNTIME_HIP

#define API(cuda, hip) hip
#define POINTER void *

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

EXPORT int RETAIN(void **given, int device);
EXPORT int RETAIN(void **given, int device)
{
	const int error = fault("context");

	(void)device;
	*given = &context;
	return error ? error : runtime_context(strcmp(fault_effect, "close") == 0);
}

EXPORT int SET(void *given);
EXPORT int SET(void *given)
{
	return given == &context ? 0 : RUNTIME_UNKNOWN;
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
	*memory = calloc(1, size);
	return *memory ? fault("alloc") : RUNTIME_UNKNOWN;
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
	return *module ? fault("module") : RUNTIME_UNKNOWN;
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
	*stream = &context;
	return 0;
}

EXPORT int LAUNCH(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
		  unsigned shared, void *stream, void **parameters, void **extra);
EXPORT int LAUNCH(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
		  unsigned shared, void *stream, void **parameters, void **extra)
{
	struct runtime_kernel kernel = {.iterations = *(uint32_t *)parameters[1],
					.counter = *(uint64_t *)parameters[0],
					.number = launched + 1};
	const int error = fault("launch");

	(void)function, (void)gx, (void)gy, (void)gz, (void)bx, (void)by, (void)bz;
	(void)shared, (void)stream, (void)extra;
	if (error)
		return error;
	kernel.duration_ns = (uint64_t)ITERATION_NS * kernel.iterations;
	if (fault_effect[0] && (long)launched >= fault_argument) {
		if (strcmp(fault_effect, "exit") == 0)
			_exit(9);
		if (strcmp(fault_effect, "none") == 0)
			return 0;
		if (strcmp(fault_effect, "stuck") == 0)
			kernel.duration_ns = FOREVER_NS;
	}
	launched++;
	return runtime_launch(&kernel);
}
