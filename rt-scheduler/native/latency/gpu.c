/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "latency/gpu.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "bench/pace.h"
#include "common/base.h"

#define LIBRARY "libcuda.so.1"
#define GPUS_DIR "/proc/driver/nvidia/gpus"
#define WARM_NS (300 * NS_PER_MS) /* of work before a measurement of the kernel: an idle GPU has a low clock */
#define READ_BYTES ((size_t)256 << 20)
#define LONG_NS NS_PER_MS /* a kernel beside which the time of a launch is short */

enum { APART = 2 * sizeof(uint32_t), ROUNDS_FIRST = 64, TRIES = 5 };

/*
 * The work is a number of rounds, not a time: the clocks of a GPU go on while a kernel is preempted, and a kernel that
 * waited for one would end too early. A round is 32 dependent multiplications and additions. The value stays positive,
 * which the compiler cannot know, so no thread's arithmetic can be left out.
 *
 * PTX 6.0 for sm_50: every driver from 384 on compiles it for its GPU.
 */
#define FMA "fma.rn.f32 %f1, %f1, %f2, %f3;\n"
#define FMA_8 FMA FMA FMA FMA FMA FMA FMA FMA
/* The next 16 bytes of all threads, of READ_BYTES. */
#define READ                                                                                                           \
	"and.b32 %r10, %r7, 268435440;\n"                                                                              \
	"cvt.u64.u32 %d6, %r10;\n"                                                                                     \
	"add.s64 %d6, %d5, %d6;\n"                                                                                     \
	"ld.global.v4.u32 {%r11, %r12, %r13, %r14}, [%d6];\n"                                                          \
	"add.s32 %r7, %r7, %r8;\n"                                                                                     \
	"xor.b32 %r11, %r11, %r12;\n"                                                                                  \
	"xor.b32 %r13, %r13, %r14;\n"                                                                                  \
	"add.s32 %r9, %r9, %r11;\n"                                                                                    \
	"add.s32 %r9, %r9, %r13;\n"
static const char ptx[] =
	".version 6.0\n"
	".target sm_50\n"
	".address_size 64\n"
	".visible .entry gpuseg_work(.param .u64 word, .param .u64 rounds, .param .u32 number)\n"
	"{\n"
	".reg .pred %p<4>;\n"
	".reg .f32 %f<4>;\n"
	".reg .b32 %r<5>;\n"
	".reg .b64 %d<4>;\n"
	"ld.param.u64 %d1, [word];\n"
	"ld.param.u64 %d2, [rounds];\n"
	"ld.param.u32 %r1, [number];\n"
	"cvta.to.global.u64 %d3, %d1;\n"
	"mov.u32 %r2, %tid.x;\n"
	"mov.u32 %r3, %ctaid.x;\n"
	"or.b32 %r4, %r2, %r3;\n"
	"cvt.rn.f32.u32 %f1, %r2;\n"
	"mov.f32 %f2, 0f3F7FF000;\n"
	"mov.f32 %f3, 0f3A800000;\n"
	"setp.eq.u64 %p1, %d2, 0;\n"
	"@%p1 bra worked;\n"
	"again:\n" FMA_8 FMA_8 FMA_8 FMA_8 "add.s64 %d2, %d2, -1;\n"
	"setp.ne.u64 %p1, %d2, 0;\n"
	"@%p1 bra again;\n"
	"worked:\n"
	"setp.lt.f32 %p2, %f1, 0f00000000;\n"
	"@%p2 st.global.f32 [%d3+4], %f1;\n"
	"setp.ne.u32 %p3, %r4, 0;\n"
	"@%p3 bra done;\n"
	"st.global.u32 [%d3], %r1;\n"
	"done:\n"
	"ret;\n"
	"}\n"
	/* Each kernel begins 96 MiB behind the one before, so that caches hold little of what it reads. */
	".visible .entry gpuseg_read(.param .u64 word, .param .u64 rounds, .param .u32 number, "
	".param .u64 memory)\n"
	"{\n"
	".reg .pred %p<4>;\n"
	".reg .b32 %r<16>;\n"
	".reg .b64 %d<7>;\n"
	"ld.param.u64 %d1, [word];\n"
	"ld.param.u64 %d2, [rounds];\n"
	"ld.param.u32 %r1, [number];\n"
	"ld.param.u64 %d3, [memory];\n"
	"cvta.to.global.u64 %d4, %d1;\n"
	"cvta.to.global.u64 %d5, %d3;\n"
	"mov.u32 %r2, %tid.x;\n"
	"mov.u32 %r3, %ctaid.x;\n"
	"or.b32 %r4, %r2, %r3;\n"
	"mov.u32 %r5, %ntid.x;\n"
	"mov.u32 %r6, %nctaid.x;\n"
	"mad.lo.u32 %r7, %r3, %r5, %r2;\n"
	"shl.b32 %r7, %r7, 4;\n"
	"mad.lo.u32 %r7, %r1, 100663296, %r7;\n"
	"mul.lo.u32 %r8, %r5, %r6;\n"
	"shl.b32 %r8, %r8, 4;\n"
	"mov.u32 %r9, 0;\n"
	"setp.eq.u64 %p1, %d2, 0;\n"
	"@%p1 bra read;\n"
	"again:\n" READ READ READ READ "add.s64 %d2, %d2, -1;\n"
	"setp.ne.u64 %p1, %d2, 0;\n"
	"@%p1 bra again;\n"
	"read:\n"
	"setp.eq.u32 %p2, %r9, 305419896;\n" /* any number: what was read must be used */
	"@%p2 st.global.u32 [%d4+4], %r9;\n"
	"setp.ne.u32 %p3, %r4, 0;\n"
	"@%p3 bra done;\n"
	"st.global.u32 [%d4], %r1;\n"
	"done:\n"
	"ret;\n"
	"}\n";

int gpu_check(const struct gpu *gpu, CUresult result, const char *call)
{
	const char *text = NULL;

	if (result == CUDA_SUCCESS)
		return 0;
	if (gpu->cuda.cuGetErrorString(result, &text) != CUDA_SUCCESS || !text)
		text = "unknown error";
	message("%s: %s (CUDA error %d)", call, text, result);
	return -1;
}

#define CHECK_CALL(gpu, name, ...) gpu_check(gpu, (gpu)->cuda.name(__VA_ARGS__), #name)

static int load_library(struct gpu *gpu)
{
	/* Never closed: the driver has threads. */
	void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);

	if (!library) {
		message("no NVIDIA driver on this machine: %s", dlerror());
		return -ENODEV;
	}
#define X(name, parameters)                                                                                            \
	*(void **)&gpu->cuda.name = dlsym(library, #name);                                                             \
	if (!gpu->cuda.name) {                                                                                         \
		message("%s has no %s; install a driver of version 384 or later", LIBRARY, #name);                     \
		return -1;                                                                                             \
	}
	CUDA_FUNCTIONS(X)
#undef X
#define X(name, parameters) *(void **)&gpu->cuda.name = dlsym(library, #name);
	CUDA_GRAPH_FUNCTIONS(X)
#undef X
	return 0;
}

/* The third word from the end of "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.159.04  Fri ...", by its form. */
static void find_driver_version(struct gpu *gpu)
{
	FILE *file = fopen("/proc/driver/nvidia/version", "re");
	char line[256];
	int version = 0;

	gpu->cuda.cuDriverGetVersion(&version);
	snprintf(gpu->driver, sizeof(gpu->driver), "for CUDA %d.%d", version / 1000, version % 1000 / 10);
	if (!file)
		return;
	if (fgets(line, sizeof(line), file)) {
		for (const char *word = strtok(line, " \t\n"); word; word = strtok(NULL, " \t\n")) {
			if (strchr(word, '.') && strspn(word, "0123456789.") == strlen(word)) {
				snprintf(gpu->driver, sizeof(gpu->driver), "%.31s", word);
				break;
			}
		}
	}
	fclose(file);
}

/* 0 where the driver does not list its GPUs. */
static int find_index(const char *pci)
{
	const struct dirent *entry;
	DIR *dir = opendir(GPUS_DIR);
	int before = 0;

	if (!dir)
		return 0;
	while ((entry = readdir(dir)))
		if (entry->d_name[0] != '.' && strcasecmp(entry->d_name, pci) < 0)
			before++;
	closedir(dir);
	return before;
}

int gpu_find(struct gpu *gpu, int ordinal)
{
	int count = 0, multiprocessors = 0, rc;
	char pci[24] = "";

	setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID", 0); /* so that --gpu counts as nvidia-smi does */
	rc = load_library(gpu);
	if (rc != 0)
		return rc;
	rc = gpu->cuda.cuInit(0);
	if (gpu_check(gpu, rc, "cuInit") != 0)
		return rc == CUDA_ERROR_NO_DEVICE ? -ENODEV : -1;
	if (CHECK_CALL(gpu, cuDeviceGetCount, &count) != 0)
		return -1;
	if (ordinal >= count) {
		message("--gpu: there is no GPU %d; use 0 to %d", ordinal, count - 1);
		return -1;
	}
	if (CHECK_CALL(gpu, cuDeviceGet, &gpu->device, ordinal) != 0 ||
	    CHECK_CALL(gpu, cuDeviceGetName, gpu->name, (int)sizeof(gpu->name), gpu->device) != 0 ||
	    CHECK_CALL(gpu, cuDeviceGetPCIBusId, pci, (int)sizeof(pci), gpu->device) != 0 ||
	    CHECK_CALL(gpu, cuDeviceGetAttribute, &multiprocessors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT,
		       gpu->device) != 0)
		return -1;
	gpu->name[sizeof(gpu->name) - 1] = '\0';
	gpu->multiprocessors = multiprocessors > 0 ? (unsigned int)multiprocessors : 1;
	gpu->index = find_index(pci);
	find_driver_version(gpu);
	return 0;
}

int gpu_open(struct gpu *gpu, unsigned int context_flags)
{
	CUmodule module = NULL;
	void *page = NULL;

	if (CHECK_CALL(gpu, cuCtxCreate_v2, &gpu->context, context_flags, gpu->device) != 0 ||
	    CHECK_CALL(gpu, cuModuleLoadData, &module, ptx) != 0 ||
	    CHECK_CALL(gpu, cuModuleGetFunction, &gpu->kernel, module, "gpuseg_work") != 0 ||
	    CHECK_CALL(gpu, cuModuleGetFunction, &gpu->reader, module, "gpuseg_read") != 0 ||
	    CHECK_CALL(gpu, cuStreamCreate, &gpu->stream, CU_STREAM_NON_BLOCKING) != 0 ||
	    CHECK_CALL(gpu, cuMemHostAlloc, &page, 4096, CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP) != 0 ||
	    CHECK_CALL(gpu, cuMemHostGetDevicePointer_v2, &gpu->device_word, page, 0) != 0)
		return -1;
	memset(page, 0, 4096);
	gpu->word = page;
	gpu->launched = 0;
	return gpu_run(gpu, &(struct work){.blocks = 1, .threads = 32}) < 0 ? -1 : 0;
}

void gpu_close(struct gpu *gpu)
{
	if (gpu->context)
		gpu->cuda.cuCtxDestroy_v2(gpu->context);
	gpu->context = NULL;
	gpu->memory = 0; /* it went with the context */
}

static int launch(struct gpu *gpu, const struct work *work, CUstream stream, CUdeviceptr word, uint32_t number)
{
	uint64_t rounds = work->rounds;
	void *parameters[] = {&word, &rounds, &number, &gpu->memory}; /* the last one for the reader only */
	const CUfunction kernel = work->kind == WORK_READ ? gpu->reader : gpu->kernel;

	return CHECK_CALL(gpu, cuLaunchKernel, kernel, work->blocks, 1, 1, work->threads, 1, 1, 0, stream, parameters,
			  NULL);
}

static int prepare_copy(struct gpu *gpu, const struct work *work)
{
	if (CHECK_CALL(gpu, cuMemHostAlloc, &gpu->frame, work->bytes, CU_MEMHOSTALLOC_PORTABLE) != 0 ||
	    CHECK_CALL(gpu, cuMemAlloc_v2, &gpu->device_frame, work->bytes) != 0)
		return -1;
	memset(gpu->frame, 1, work->bytes);
	return 0;
}

static int prepare_read(struct gpu *gpu)
{
	return gpu->memory ? 0 : CHECK_CALL(gpu, cuMemAlloc_v2, &gpu->memory, READ_BYTES);
}

static int prepare_graph(struct gpu *gpu, const struct work *work)
{
	CUgraph graph = NULL;

#define X(name, parameters)                                                                                            \
	if (!gpu->cuda.name) {                                                                                         \
		message("%s has no %s; a graph needs a driver of version 470 or later", LIBRARY, #name);               \
		return -1;                                                                                             \
	}
	CUDA_GRAPH_FUNCTIONS(X)
#undef X
	if (CHECK_CALL(gpu, cuStreamBeginCapture_v2, gpu->stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL) != 0)
		return -1;
	for (uint32_t number = 1; number <= work->kernels; number++)
		if (launch(gpu, work, gpu->stream, gpu->device_word, number) != 0)
			return -1;
	return CHECK_CALL(gpu, cuStreamEndCapture, gpu->stream, &graph) != 0 ||
			       CHECK_CALL(gpu, cuGraphInstantiateWithFlags, &gpu->graph, graph, 0) != 0
		       ? -1
		       : 0;
}

int gpu_prepare(struct gpu *gpu, const struct work *work)
{
	return work->kind == WORK_COPY	  ? prepare_copy(gpu, work)
	       : work->kind == WORK_GRAPH ? prepare_graph(gpu, work)
	       : work->kind == WORK_READ  ? prepare_read(gpu)
					  : 0;
}

int gpu_launch(struct gpu *gpu, const struct work *work)
{
	switch (work->kind) {
	case WORK_COPY:
		return CHECK_CALL(gpu, cuMemcpyHtoDAsync_v2, gpu->device_frame, gpu->frame, work->bytes, gpu->stream);
	case WORK_GRAPH:
		*gpu->word = 0;
		gpu->launched = work->kernels;
		return CHECK_CALL(gpu, cuGraphLaunch, gpu->graph, gpu->stream);
	default:
		return launch(gpu, work, gpu->stream, gpu->device_word, ++gpu->launched);
	}
}

int gpu_launch_apart(struct gpu *gpu, CUstream stream)
{
	return launch(gpu, &(struct work){.blocks = 1, .threads = 32}, stream, gpu->device_word + APART, 0);
}

int gpu_busy(struct gpu *gpu)
{
	const CUresult result = gpu->cuda.cuStreamQuery(gpu->stream);

	return result == CUDA_ERROR_NOT_READY ? 1 : gpu_check(gpu, result, "cuStreamQuery");
}

int64_t gpu_run(struct gpu *gpu, const struct work *work)
{
	const int64_t begin_ns = now_ns();
	int busy = gpu_launch(gpu, work);

	if (busy != 0)
		return -1;
	while ((busy = gpu_busy(gpu)) == 1)
		relax();
	if (busy < 0)
		return -1;
	const int64_t took_ns = now_ns() - begin_ns;

	if (gpu_in_flight(gpu) != 0) {
		message("kernel %" PRIu32 " is done and has not written its number, but %" PRIu32, gpu->launched,
			*gpu->word);
		return -1;
	}
	return took_ns;
}

/* The shortest of some runs. */
static int64_t shortest(struct gpu *gpu, const struct work *work)
{
	int64_t least_ns = INT64_MAX;

	for (int i = 0; i < TRIES; i++) {
		const int64_t ns = gpu_run(gpu, work);

		if (ns < 0)
			return -1;
		if (ns < least_ns)
			least_ns = ns;
	}
	return least_ns;
}

int gpu_calibrate(struct gpu *gpu, struct work *work, int64_t target_ns)
{
	const struct work empty = {.blocks = work->blocks, .threads = work->threads};
	const int64_t warm_until_ns = now_ns() + WARM_NS;
	const int64_t long_ns = target_ns > LONG_NS ? target_ns : LONG_NS;
	int64_t ns, empty_ns;

	work->rounds = ROUNDS_FIRST;
	do {
		ns = gpu_run(gpu, work);
		if (ns < 0)
			return -1;
		if (ns < long_ns)
			work->rounds *= 2;
	} while (ns < long_ns || now_ns() < warm_until_ns);
	empty_ns = shortest(gpu, &empty);
	ns = shortest(gpu, work);
	if (empty_ns < 0 || ns < 0)
		return -1;
	ns = ns > empty_ns ? ns - empty_ns : 1;
	work->rounds = (uint64_t)((double)work->rounds * (double)target_ns / (double)ns);
	if (work->rounds == 0)
		work->rounds = 1;
	return 0;
}
