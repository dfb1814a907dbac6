/* SPDX-License-Identifier: Apache-2.0 */
/*
 * launches.c - what a launch costs: a CUDA program that uses the driver API alone, and needs no CUDA to be built.
 *
 *   gpuseg-inject-launches tiny [N]     N kernels that do nothing (100000), synchronised once at the end
 *   gpuseg-inject-launches graph [N]    N times: launch a graph of 20 kernels, synchronise (2000)
 *
 * Prints one line of JSON. `sum` is what the kernels counted on the GPU: it tells that each ran once.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../driver_api.h"
#include "platform.h"

#define NODES 20
#define RUNS 7

/* Adds 1 to a counter. */
static const char ptx[] = ".version 7.0\n"
			  ".target sm_70\n"
			  ".address_size 64\n"
			  ".visible .entry count(.param .u64 counter)\n"
			  "{\n"
			  "	.reg .u64 %a;\n"
			  "	.reg .u64 %old;\n"
			  "	ld.param.u64 %a, [counter];\n"
			  "	cvta.to.global.u64 %a, %a;\n"
			  "	atom.global.add.u64 %old, [%a], 1;\n"
			  "	ret;\n"
			  "}\n";

typedef struct CUfunc_st *CUfunction;
typedef struct CUgraph_st *CUgraph;
typedef struct CUgraphExec_st *CUgraphExec;
typedef struct CUmod_st *CUmodule;

static struct {
	CUresult (*cuInit)(unsigned int flags);
	CUresult (*cuDeviceGet)(CUdevice *device, int ordinal);
	CUresult (*cuDevicePrimaryCtxRetain)(CUcontext *context, CUdevice device);
	CUresult (*cuCtxSetCurrent)(CUcontext context);
	CUresult (*cuModuleLoadData)(CUmodule *module, const void *image);
	CUresult (*cuModuleGetFunction)(CUfunction *f, CUmodule module, const char *name);
	CUresult (*cuMemAlloc_v2)(CUdeviceptr *p, size_t bytes);
	CUresult (*cuMemsetD8_v2)(CUdeviceptr p, unsigned char value, size_t bytes);
	CUresult (*cuMemcpyDtoH_v2)(void *to, CUdeviceptr from, size_t bytes);
	CUresult (*cuStreamCreate)(CUstream *stream, unsigned int flags);
	CUresult (*cuStreamSynchronize)(CUstream stream);
	CUresult (*cuStreamBeginCapture_v2)(CUstream stream, int mode);
	CUresult (*cuStreamEndCapture)(CUstream stream, CUgraph *graph);
	CUresult (*cuGraphInstantiateWithFlags)(CUgraphExec *exec, CUgraph graph, unsigned long long flags);
	CUresult (*cuGraphLaunch)(CUgraphExec exec, CUstream stream);
	CUresult (*cuLaunchKernel)(CUfunction f, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx,
				   unsigned int by, unsigned int bz, unsigned int shared, CUstream stream,
				   void **parameters, void **extra);
} cu;

static const char *const names[] = {"cuInit",
				    "cuDeviceGet",
				    "cuDevicePrimaryCtxRetain",
				    "cuCtxSetCurrent",
				    "cuModuleLoadData",
				    "cuModuleGetFunction",
				    "cuMemAlloc_v2",
				    "cuMemsetD8_v2",
				    "cuMemcpyDtoH_v2",
				    "cuStreamCreate",
				    "cuStreamSynchronize",
				    "cuStreamBeginCapture_v2",
				    "cuStreamEndCapture",
				    "cuGraphInstantiateWithFlags",
				    "cuGraphLaunch",
				    "cuLaunchKernel"};
_Static_assert(sizeof(names) / sizeof(names[0]) == sizeof(cu) / sizeof(void *), "one name each");

static void ok(CUresult result, const char *what)
{
	if (result != CUDA_SUCCESS) {
		fprintf(stderr, "%s: CUDA error %d\n", what, result);
		exit(1);
	}
}
#define OK(call) ok(call, #call)

static CUfunction kernel;
static CUdeviceptr counter;
static CUstream stream;

static void load(void)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
	void **slots = (void **)&cu;

	if (!library) {
		fprintf(stderr, "%s\n", dlerror());
		exit(77);
	}
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		slots[i] = dlsym(library, names[i]);
		if (!slots[i]) {
			fprintf(stderr, "libcuda.so.1 has no %s\n", names[i]);
			exit(1);
		}
	}
}

static void prepare(void)
{
	CUcontext context;
	CUmodule module;
	CUdevice device;

	OK(cu.cuInit(0));
	OK(cu.cuDeviceGet(&device, 0));
	OK(cu.cuDevicePrimaryCtxRetain(&context, device));
	OK(cu.cuCtxSetCurrent(context));
	OK(cu.cuModuleLoadData(&module, ptx));
	OK(cu.cuModuleGetFunction(&kernel, module, "count"));
	OK(cu.cuMemAlloc_v2(&counter, sizeof(uint64_t)));
	OK(cu.cuMemsetD8_v2(counter, 0, sizeof(uint64_t)));
	OK(cu.cuStreamCreate(&stream, 1));
}

static void launch(void)
{
	void *parameters[] = {&counter};

	OK(cu.cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, stream, parameters, NULL));
}

static uint64_t counted(void)
{
	uint64_t n;

	OK(cu.cuStreamSynchronize(stream));
	OK(cu.cuMemcpyDtoH_v2(&n, counter, sizeof(n)));
	return n;
}

static int by_value(const void *a, const void *b)
{
	const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

/* The median of some runs, and the least: the machine has other users. */
static void tiny(long n)
{
	int64_t took[RUNS], begin_ns, host_ns[RUNS];

	for (int i = 0; i < 1000; i++)
		launch();
	OK(cu.cuStreamSynchronize(stream));
	for (int run = 0; run < RUNS; run++) {
		begin_ns = now_ns();
		for (long i = 0; i < n; i++)
			launch();
		host_ns[run] = now_ns() - begin_ns;
		OK(cu.cuStreamSynchronize(stream));
		took[run] = now_ns() - begin_ns;
	}
	qsort(took, RUNS, sizeof(took[0]), by_value);
	qsort(host_ns, RUNS, sizeof(host_ns[0]), by_value);
	printf("{\"kind\": \"tiny\", \"launches\": %ld, \"us_p50\": %.3f, \"us_least\": %.3f, \"host_us_p50\": %.3f, "
	       "\"sum\": %llu}\n",
	       n, (double)took[RUNS / 2] / 1e3 / (double)n, (double)took[0] / 1e3 / (double)n,
	       (double)host_ns[RUNS / 2] / 1e3 / (double)n, (unsigned long long)counted());
}

static void graph(long n)
{
	int64_t *took = calloc((size_t)n, sizeof(*took));
	CUgraphExec exec;
	CUgraph captured;

	if (!took)
		exit(1);
	OK(cu.cuStreamBeginCapture_v2(stream, 0));
	for (int i = 0; i < NODES; i++)
		launch();
	OK(cu.cuStreamEndCapture(stream, &captured));
	OK(cu.cuGraphInstantiateWithFlags(&exec, captured, 0));
	for (long i = -100; i < n; i++) {
		const int64_t begin_ns = now_ns();

		OK(cu.cuGraphLaunch(exec, stream));
		OK(cu.cuStreamSynchronize(stream));
		if (i >= 0)
			took[i] = now_ns() - begin_ns;
		sleep_ns(500 * NS_PER_US); /* longer than the hold-off: each is a segment */
	}
	qsort(took, (size_t)n, sizeof(took[0]), by_value);
	printf("{\"kind\": \"graph\", \"launches\": %ld, \"us_p50\": %.3f, \"us_p99\": %.3f, \"sum\": %llu}\n", n,
	       (double)took[n / 2] / 1e3, (double)took[n * 99 / 100] / 1e3, (unsigned long long)counted());
	free(took);
}

int main(int argc, char **argv)
{
	const long n = argc > 2 ? atol(argv[2]) : 0;

	if (argc < 2 || n < 0 || (strcmp(argv[1], "tiny") != 0 && strcmp(argv[1], "graph") != 0)) {
		fprintf(stderr, "usage: gpuseg-inject-launches tiny|graph [N]\n");
		return 2;
	}
	load();
	prepare();
	if (strcmp(argv[1], "tiny") == 0)
		tiny(n ? n : 100000);
	else
		graph(n ? n : 2000);
	return 0;
}
