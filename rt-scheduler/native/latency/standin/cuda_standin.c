/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A libcuda.so.1 for tests of gpuseg-latency without a GPU. A stream carries out kernels one after the other, in
 * computed time: one nanosecond a round and thread block of one multiprocessor. A call that looks delivers what is
 * over. Among clients of MPS a limit leaves less multiprocessors. Never measured with.
 *
 * GPUSEG_STANDIN_SLOW=KIND=PERCENT,...: kernels of a client of MPS take so many percent of their time while a load of
 * the kind is another one. Else nothing is shared between processes, so loads disturb no process.
 *
 * GPUSEG_STANDIN_FAIL=NAME lets that call fail; cuInit then says that there is no device.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bench/pace.h"
#include "common/base.h"
#include "latency/gpu.h"
#include "latency/loads.h"

#define STANDIN __attribute__((visibility("default")))

enum { OUT_OF_MEMORY = 2, INVALID_VALUE = 1, QUEUE = 4096, MULTIPROCESSORS = 4, NODES = QUEUE, WHOLE = 100 };

struct CUctx_st {
	int unused;
};

/* Kernels one after the other. The same serves as the executable graph. */
struct CUgraph_st {
	struct {
		int64_t takes_ns;
		uint32_t *word;
		uint32_t number;
	} nodes[NODES];
	uint32_t count;
};

struct CUstream_st {
	struct {
		int64_t done_ns;
		uint32_t *word;
		uint32_t number;
	} queue[QUEUE];
	uint64_t put, taken;
	int64_t busy_until_ns;
	CUgraph captures; /* NULL: launches are carried out */
};

struct CUevent_st {
	int64_t at_ns;
};

/* clang-format off */
#define X(name, parameters) STANDIN CUresult name parameters;
CUDA_FUNCTIONS(X)
CUDA_GRAPH_FUNCTIONS(X)
#undef X
/* clang-format on */

/* Zeroed; not on the heap, since a driver's memory is not either. */
static void *room(size_t bytes)
{
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return memory == MAP_FAILED ? NULL : memory;
}

static bool fails(const char *call)
{
	const char *named = getenv("GPUSEG_STANDIN_FAIL");

	return named && strcmp(named, call) == 0;
}

static const char *given(const char *variable)
{
	const char *value = getenv(variable);

	return value ? value : "-";
}

/* Where a file "control" is in the directory that names MPS, this process is a client: notes it in "clients" there. */
static bool join_mps(void)
{
	const char *directory = getenv("CUDA_MPS_PIPE_DIRECTORY");
	char path[4096];
	FILE *file;

	snprintf(path, sizeof(path), "%s/control", directory ? directory : "/nonexistent");
	if (fails("mps") || access(path, F_OK) != 0)
		return false;
	snprintf(path, sizeof(path), "%s/clients", directory);
	file = fopen(path, "ae");
	if (!file)
		return false;
	fprintf(file, "%s %s %s\n", program_name, given("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"),
		given("CUDA_MPS_CLIENT_PRIORITY"));
	fclose(file);
	return true;
}

static bool of_mps, of_load;

/* A lock that the loads of a kind hold as long as they live, in the directory of MPS. -1: there is none. */
static int open_lock(const char *kind)
{
	char path[4096];

	snprintf(path, sizeof(path), "%s/load-%s", given("CUDA_MPS_PIPE_DIRECTORY"), kind);
	return open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
}

/* A load says so to the others: its arguments are LOAD_ARGUMENT KIND ... */
static bool join_loads(void)
{
	char arguments[256] = "";
	FILE *file = fopen("/proc/self/cmdline", "re");
	const char *argument, *kind;

	if (!file)
		return false;
	if (fread(arguments, 1, sizeof(arguments) - 1, file) == 0)
		arguments[0] = '\0';
	fclose(file);
	argument = arguments + strlen(arguments) + 1;
	kind = argument + strlen(argument) + 1;
	return strcmp(argument, LOAD_ARGUMENT) == 0 && flock(open_lock(kind), LOCK_SH) == 0;
}

static bool is_loaded(const char *kind)
{
	const int fd = open_lock(kind);
	const bool locked = fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) != 0;

	if (fd >= 0)
		close(fd);
	return locked;
}

/* What kernels of this process take now, percent of their time. */
static int64_t slow_percent(void)
{
	const char *p = getenv("GPUSEG_STANDIN_SLOW");
	int64_t most = WHOLE;

	while (of_mps && !of_load && p && *p) {
		char kind[32], *end;
		const size_t length = strcspn(p, "=");

		snprintf(kind, sizeof(kind), "%.*s", (int)(length < sizeof(kind) ? length : sizeof(kind) - 1), p);
		const int64_t percent = strtoll(p + length + (p[length] == '='), &end, 10);

		if (percent > most && is_loaded(kind))
			most = percent;
		p = end + (*end == ',');
	}
	return most;
}

/* The multiprocessors that this process may use. */
static unsigned int allowed(void)
{
	const char *percent = of_mps ? getenv("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE") : NULL;
	const int number = MULTIPROCESSORS * (percent ? (int)strtol(percent, NULL, 10) : WHOLE) / WHOLE;

	return number > 1 ? (unsigned int)number : 1;
}

static unsigned int multiprocessors;

CUresult cuInit(unsigned int flags)
{
	of_mps = join_mps();
	of_load = of_mps && join_loads();
	multiprocessors = allowed();
	return fails("cuInit") ? CUDA_ERROR_NO_DEVICE : flags ? INVALID_VALUE : CUDA_SUCCESS;
}

CUresult cuDriverGetVersion(int *version)
{
	*version = 13000;
	return CUDA_SUCCESS;
}

CUresult cuGetErrorString(CUresult result, const char **text)
{
	*text = result == CUDA_ERROR_NO_DEVICE ? "no CUDA-capable device is detected"
		: result == OUT_OF_MEMORY      ? "out of memory"
					       : "invalid argument";
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int *count)
{
	*count = 2;
	return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
	*device = ordinal;
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char *name, int size, CUdevice device)
{
	snprintf(name, (size_t)size, "stand-in \"<%d>\", no GPU", device);
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetAttribute(int *value, int attribute, CUdevice device)
{
	(void)device;
	*value = attribute == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT ? MULTIPROCESSORS
		 : attribute == CU_DEVICE_ATTRIBUTE_MPS_ENABLED	       ? of_mps
								       : 0;
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetPCIBusId(char *text, int size, CUdevice device)
{
	snprintf(text, (size_t)size, "0000:%02x:00.0", 0x1b + device);
	return CUDA_SUCCESS;
}

CUresult cuCtxCreate_v2(CUcontext *context, unsigned int flags, CUdevice device)
{
	(void)flags;
	(void)device;
	*context = fails("cuCtxCreate") ? NULL : room(sizeof(**context));
	return *context ? CUDA_SUCCESS : OUT_OF_MEMORY;
}

CUresult cuCtxDestroy_v2(CUcontext context)
{
	munmap(context, sizeof(*context));
	return CUDA_SUCCESS;
}

CUresult cuCtxSetCurrent(CUcontext context)
{
	return context ? CUDA_SUCCESS : INVALID_VALUE;
}

CUresult cuModuleLoadData(CUmodule *module, const void *image)
{
	*module = (CUmodule)(uintptr_t)image;
	return strstr(image, ".target sm_50") ? CUDA_SUCCESS : INVALID_VALUE;
}

CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name)
{
	*function = (CUfunction)strstr((const char *)module, name);
	return *function ? CUDA_SUCCESS : INVALID_VALUE;
}

CUresult cuStreamCreate(CUstream *stream, unsigned int flags)
{
	*stream = flags == CU_STREAM_NON_BLOCKING ? room(sizeof(**stream)) : NULL;
	return *stream ? CUDA_SUCCESS : INVALID_VALUE;
}

CUresult cuStreamQuery(CUstream s)
{
	const int64_t at_ns = now_ns();

	if (fails("cuStreamQuery"))
		return INVALID_VALUE;
	for (; s->taken < s->put && s->queue[s->taken % QUEUE].done_ns <= at_ns; s->taken++)
		*s->queue[s->taken % QUEUE].word = s->queue[s->taken % QUEUE].number;
	return s->taken == s->put && s->busy_until_ns <= at_ns ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

CUresult cuStreamSynchronize(CUstream stream)
{
	CUresult result;

	while ((result = cuStreamQuery(stream)) == CUDA_ERROR_NOT_READY)
		sleep_until(now_ns() + NS_PER_US * 100, NULL);
	return result;
}

static CUresult put(CUstream s, int64_t takes_ns, uint32_t *word, uint32_t number)
{
	const int64_t at_ns = now_ns();

	if (s->put - s->taken == QUEUE)
		return INVALID_VALUE;
	s->busy_until_ns = (s->busy_until_ns > at_ns ? s->busy_until_ns : at_ns) + takes_ns;
	s->queue[s->put % QUEUE].done_ns = s->busy_until_ns;
	s->queue[s->put % QUEUE].word = word;
	s->queue[s->put % QUEUE].number = number;
	s->put++;
	return CUDA_SUCCESS;
}

CUresult cuLaunchKernel(CUfunction f, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx,
			unsigned int by, unsigned int bz, unsigned int shared, CUstream s, void **parameters,
			void **extra)
{
	CUgraph graph = s->captures;
	int64_t takes_ns;
	uint64_t rounds;
	uint32_t number;
	void *word;

	if (!f || !gx || gy != 1 || gz != 1 || !bx || by != 1 || bz != 1 || shared || extra)
		return INVALID_VALUE;
	memcpy(&word, parameters[0], sizeof(word));
	memcpy(&rounds, parameters[1], sizeof(rounds));
	memcpy(&number, parameters[2], sizeof(number));
	takes_ns = (int64_t)(rounds * ((gx + multiprocessors - 1) / multiprocessors)) * slow_percent() / WHOLE;
	if (!graph)
		return put(s, takes_ns, word, number);
	if (graph->count == NODES)
		return OUT_OF_MEMORY;
	graph->nodes[graph->count].takes_ns = takes_ns;
	graph->nodes[graph->count].word = word;
	graph->nodes[graph->count++].number = number;
	return CUDA_SUCCESS;
}

CUresult cuStreamBeginCapture_v2(CUstream s, int mode)
{
	if (s->captures || mode != CU_STREAM_CAPTURE_MODE_THREAD_LOCAL)
		return INVALID_VALUE;
	s->captures = room(sizeof(*s->captures));
	return s->captures ? CUDA_SUCCESS : OUT_OF_MEMORY;
}

CUresult cuStreamEndCapture(CUstream s, CUgraph *graph)
{
	*graph = s->captures;
	s->captures = NULL;
	return *graph ? CUDA_SUCCESS : INVALID_VALUE;
}

CUresult cuGraphInstantiateWithFlags(CUgraphExec *executable, CUgraph graph, unsigned long long flags)
{
	*executable = fails("cuGraphInstantiateWithFlags") ? NULL : (CUgraphExec)graph;
	return *executable && !flags ? CUDA_SUCCESS : OUT_OF_MEMORY;
}

/* GPUSEG_STANDIN_FAIL=graph: the last kernel is left out, and nothing says so. */
CUresult cuGraphLaunch(CUgraphExec executable, CUstream s)
{
	const struct CUgraph_st *graph = (const struct CUgraph_st *)executable;
	CUresult result = CUDA_SUCCESS;

	for (uint32_t i = 0; i + fails("graph") < graph->count && result == CUDA_SUCCESS; i++)
		result = put(s, graph->nodes[i].takes_ns, graph->nodes[i].word, graph->nodes[i].number);
	return result;
}

CUresult cuEventCreate(CUevent *event, unsigned int flags)
{
	*event = flags ? NULL : room(sizeof(**event));
	return *event ? CUDA_SUCCESS : OUT_OF_MEMORY;
}

CUresult cuEventRecord(CUevent event, CUstream s)
{
	const int64_t at_ns = now_ns();

	event->at_ns = s->busy_until_ns > at_ns ? s->busy_until_ns : at_ns;
	return CUDA_SUCCESS;
}

CUresult cuEventElapsedTime(float *ms, CUevent from, CUevent to)
{
	*ms = (float)(to->at_ns - from->at_ns) / (float)NS_PER_MS;
	return to->at_ns <= now_ns() ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

CUresult cuMemAlloc_v2(CUdeviceptr *address, size_t bytes)
{
	*address = fails("cuMemAlloc") ? 0 : (CUdeviceptr)(uintptr_t)room(bytes);
	return *address ? CUDA_SUCCESS : OUT_OF_MEMORY;
}

CUresult cuMemHostAlloc(void **address, size_t bytes, unsigned int flags)
{
	(void)flags;
	*address = room(bytes);
	return *address ? CUDA_SUCCESS : OUT_OF_MEMORY;
}

CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *device, void *host, unsigned int flags)
{
	*device = (CUdeviceptr)(uintptr_t)host;
	return flags ? INVALID_VALUE : CUDA_SUCCESS;
}

/* Of a copy only the time is kept: ten bytes a nanosecond. */
static CUresult copy(size_t bytes, CUstream s)
{
	const int64_t at_ns = now_ns();

	s->busy_until_ns = (s->busy_until_ns > at_ns ? s->busy_until_ns : at_ns) + (int64_t)(bytes / 10);
	return CUDA_SUCCESS;
}

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t bytes, CUstream stream)
{
	return to && from ? copy(bytes, stream) : INVALID_VALUE;
}

CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t bytes, CUstream stream)
{
	return to && from ? copy(bytes, stream) : INVALID_VALUE;
}
