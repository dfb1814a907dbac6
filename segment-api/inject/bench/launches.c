/* SPDX-License-Identifier: Apache-2.0 */
/*
 * launches.c - what a launch costs: a CUDA program that uses the driver API alone, and needs no CUDA to be built.
 *
 *   gpuseg-inject-launches tiny [N]     N kernels that do nothing (100000), synchronised once at the end
 *   gpuseg-inject-launches graph [N [K [US]]]    N times: launch a graph of K kernels (20), synchronise (2000), rest
 *                                                for US microseconds (500, longer than the hold-off)
 *
 *   gpuseg-inject-launches soak SECONDS [THREADS]    bursts of launches of several kinds from THREADS threads (4) for
 *                                                    so long; every count is checked, growth of the process is told
 *
 * Prints one line of JSON. `sum` is what the kernels counted on the GPU: it tells that each ran once.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../driver_api.h"
#include "platform.h"

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

static void graph(long n, long nodes, long rest_us)
{
	int64_t *took = calloc((size_t)n, sizeof(*took));
	CUgraphExec exec;
	CUgraph captured;

	if (!took)
		exit(1);
	OK(cu.cuStreamBeginCapture_v2(stream, 0));
	for (long i = 0; i < nodes; i++)
		launch();
	OK(cu.cuStreamEndCapture(stream, &captured));
	OK(cu.cuGraphInstantiateWithFlags(&exec, captured, 0));
	for (long i = -100; i < n; i++) {
		const int64_t begin_ns = now_ns();

		OK(cu.cuGraphLaunch(exec, stream));
		OK(cu.cuStreamSynchronize(stream));
		if (i >= 0)
			took[i] = now_ns() - begin_ns;
		if (rest_us)
			sleep_ns(rest_us * NS_PER_US);
	}
	qsort(took, (size_t)n, sizeof(took[0]), by_value);
	printf("{\"kind\": \"graph\", \"kernels\": %ld, \"rest_us\": %ld, \"launches\": %ld, \"us_p50\": %.3f, "
	       "\"us_p99\": %.3f, \"sum\": %llu}\n",
	       nodes, rest_us, n, (double)took[n / 2] / 1e3, (double)took[n * 99 / 100] / 1e3,
	       (unsigned long long)counted());
	free(took);
}

/* ---- soak ---- */

#define SOAK_THREADS_MAX 16
#define SOAK_NODES 50
#define SOAK_CHECK 50 /* rounds between checks */
#define SOAK_WORK_NS (20 * NS_PER_MS)

struct soaker {
	CUcontext context;
	CUdeviceptr counter;
	int64_t until_ns;
	int64_t rest_ns; /* after each SOAK_WORK_NS; 0 = none */
	unsigned int seed;
	uint64_t launches, kernels, checks, wrong;
};

static void launch_on(CUdeviceptr *at, CUstream on)
{
	void *parameters[] = {at};

	OK(cu.cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, on, parameters, NULL));
}

/* All threads of the process rest at the same time: its segment ends, and programs of lower rank have the GPU. */
static void rest(int64_t rest_ns)
{
	const int64_t into_ns = now_ns() % (SOAK_WORK_NS + rest_ns);

	if (into_ns >= SOAK_WORK_NS)
		sleep_ns(SOAK_WORK_NS + rest_ns - into_ns);
}

/* Bursts on a stream, on the default stream and of graphs, with and without synchronisation, until the time is up. */
static void *soak_thread(void *arg)
{
	struct soaker *s = arg;
	CUgraphExec exec;
	CUgraph captured;
	CUstream own;

	OK(cu.cuCtxSetCurrent(s->context));
	OK(cu.cuStreamCreate(&own, 1));
	OK(cu.cuStreamBeginCapture_v2(own, 1)); /* thread-local: other threads allocate */
	for (int i = 0; i < SOAK_NODES; i++)
		launch_on(&s->counter, own);
	OK(cu.cuStreamEndCapture(own, &captured));
	OK(cu.cuGraphInstantiateWithFlags(&exec, captured, 0));
	for (uint64_t round = 1; now_ns() - s->until_ns < 0; round++) {
		const unsigned int kind = (unsigned int)rand_r(&s->seed) % 16;
		const int burst = 50 + rand_r(&s->seed) % 950;

		for (int i = 0; i < burst; i++) {
			if (kind < 2)
				OK(cu.cuGraphLaunch(exec, own));
			else
				launch_on(&s->counter, kind == 2 ? NULL : own);
		}
		s->launches += (uint64_t)burst;
		s->kernels += (uint64_t)burst * (kind < 2 ? SOAK_NODES : 1);
		if (kind == 2)
			OK(cu.cuStreamSynchronize(NULL));
		if (kind % 2)
			OK(cu.cuStreamSynchronize(own));
		if (kind == 15)
			sleep_ns(rand_r(&s->seed) % 1000 * NS_PER_US); /* a marker ends the segment, or not */
		if (round % SOAK_CHECK == 0) {
			uint64_t n;

			OK(cu.cuStreamSynchronize(own));
			OK(cu.cuMemcpyDtoH_v2(&n, s->counter, sizeof(n)));
			s->checks++;
			s->wrong += n != s->kernels;
		}
		rest(s->rest_ns);
	}
	OK(cu.cuStreamSynchronize(own));
	return NULL;
}

static long resident_kb(void)
{
	long size, resident = -1;
	FILE *f = fopen("/proc/self/statm", "re");

	if (!f || fscanf(f, "%ld %ld", &size, &resident) != 2)
		resident = -1;
	if (f)
		fclose(f);
	return resident * (sysconf(_SC_PAGESIZE) / 1024);
}

static long entries(const char *directory)
{
	DIR *d = opendir(directory);
	long n = 0;

	while (d && readdir(d))
		n++;
	if (d)
		closedir(d);
	return n;
}

static int soak(long seconds, long threads, int64_t rest_ns)
{
	static struct soaker soakers[SOAK_THREADS_MAX];
	pthread_t ids[SOAK_THREADS_MAX];
	const int64_t begin_ns = now_ns();
	uint64_t launches = 0, kernels = 0, checks = 0, wrong = 0, at_settled = 0;
	long rss, fds, tasks;
	CUcontext context;

	OK(cu.cuDevicePrimaryCtxRetain(&context, 0));
	for (long i = 0; i < threads; i++) {
		soakers[i] = (struct soaker){.context = context,
					     .until_ns = begin_ns + seconds * NS_PER_S,
					     .rest_ns = rest_ns,
					     .seed = (unsigned int)i + 1};
		OK(cu.cuMemAlloc_v2(&soakers[i].counter, sizeof(uint64_t)));
		OK(cu.cuMemsetD8_v2(soakers[i].counter, 0, sizeof(uint64_t)));
		if (pthread_create(&ids[i], NULL, soak_thread, &soakers[i]) != 0)
			exit(1);
	}
	/* What a process needs has been taken by now; what comes later is growth. */
	sleep_ns(seconds * NS_PER_S / 5);
	rss = resident_kb();
	fds = entries("/proc/self/fd");
	tasks = entries("/proc/self/task");
	for (long i = 0; i < threads; i++)
		at_settled += __atomic_load_n(&soakers[i].launches, __ATOMIC_RELAXED);
	sleep_ns(seconds * NS_PER_S * 7 / 10);
	printf("{\"kind\": \"soak\", \"seconds\": %ld, \"threads\": %ld, \"rss_kb\": [%ld, %ld], "
	       "\"fds\": [%ld, %ld], "
	       "\"tasks\": [%ld, %ld], ",
	       seconds, threads, rss, resident_kb(), fds, entries("/proc/self/fd"), tasks, entries("/proc/self/task"));
	for (long i = 0; i < threads; i++) {
		uint64_t n;

		pthread_join(ids[i], NULL);
		OK(cu.cuMemcpyDtoH_v2(&n, soakers[i].counter, sizeof(n)));
		launches += soakers[i].launches;
		kernels += soakers[i].kernels;
		checks += soakers[i].checks + 1;
		wrong += soakers[i].wrong + (n != soakers[i].kernels);
	}
	printf("\"launches\": %llu, \"before_first_look\": %llu, \"kernels\": %llu, \"checks\": %llu, \"wrong\": "
	       "%llu}\n",
	       (unsigned long long)launches, (unsigned long long)at_settled, (unsigned long long)kernels,
	       (unsigned long long)checks, (unsigned long long)wrong);
	return wrong ? 1 : 0;
}

int main(int argc, char **argv)
{
	const long n = argc > 2 ? atol(argv[2]) : 0, nodes = argc > 3 ? atol(argv[3]) : 20;
	const long rest_us = argc > 4 ? atol(argv[4]) : 500;

	if (argc > 2 && strcmp(argv[1], "soak") == 0 && n > 0) {
		const long threads = argc > 3 ? nodes : 4;

		const long rest_ms = argc > 4 ? atol(argv[4]) : 0;

		if (threads >= 1 && threads <= SOAK_THREADS_MAX && rest_ms >= 0 && rest_ms <= 1000) {
			load();
			prepare();
			return soak(n, threads, rest_ms * NS_PER_MS);
		}
	}
	if (argc < 2 || n < 0 || nodes < 1 || rest_us < 0 ||
	    (strcmp(argv[1], "tiny") != 0 && strcmp(argv[1], "graph") != 0)) {
		fprintf(stderr,
			"usage: gpuseg-inject-launches tiny|graph [N [KERNELS [REST_US]]]\n"
			"       gpuseg-inject-launches soak SECONDS [THREADS 1..%d [REST_MS 0..1000]]\n",
			SOAK_THREADS_MAX);
		return 2;
	}
	load();
	prepare();
	if (strcmp(argv[1], "tiny") == 0)
		tiny(n ? n : 100000);
	else
		graph(n ? n : 2000, nodes, rest_us);
	return 0;
}
