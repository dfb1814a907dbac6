/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "latency/loads.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base.h"
#include "latency/gpu.h"
#include "latency/measure.h"

#define START_LIMIT_NS (60 * NS_PER_S) /* of one process: the first context of a machine may take seconds */
#define STOP_LIMIT_NS (5 * NS_PER_S)
#define COPY_BYTES ((size_t)64 << 20)

enum { COPIES_AT_ONCE = 4, PRODUCTS_IN_FLIGHT = 3, LAUNCHES_IN_FLIGHT = 1000, LAUNCHES_BOUNDED = 100 };

struct load_kind {
	const char *name, *unit;
	/* Works until `stopping`. 0, or -1 after one line. */
	int (*work)(struct gpu *gpu, struct load_page *page);
};

static void count(struct load_page *page, uint64_t done)
{
	__atomic_store_n(&page->done, page->done + done, __ATOMIC_RELAXED);
	__atomic_store_n(&page->ready, 1, __ATOMIC_RELEASE); /* pairs with loads_start() */
}

static int wait_for_stream(struct gpu *gpu, CUstream stream)
{
	return gpu_check(gpu, gpu->cuda.cuStreamSynchronize(stream), "cuStreamSynchronize");
}

/* What a load gives to the GPU at a time. */
struct batch {
	CUevent begin, ends[2]; /* of the first stream; of each */
	int streams;
	long takings;
};

static int batch_prepare(struct gpu *gpu, struct batch *b, int streams)
{
	int rc = gpu_check(gpu, gpu->cuda.cuEventCreate(&b->begin, 0), "cuEventCreate");

	b->streams = streams;
	for (int i = 0; rc == 0 && i < streams; i++)
		rc = gpu_check(gpu, gpu->cuda.cuEventCreate(&b->ends[i], 0), "cuEventCreate");
	return rc;
}

static int batch_begin(struct gpu *gpu, struct batch *b)
{
	b->takings = cpu_takings();
	return gpu_check(gpu, gpu->cuda.cuEventRecord(b->begin, gpu->stream), "cuEventRecord");
}

/* After the last launch; waits until all of it has ended. */
static int batch_end(struct gpu *gpu, struct load_page *page, struct batch *b, const CUstream streams[])
{
	float longest_ms = 0;

	for (int i = 0; i < b->streams; i++)
		if (gpu_check(gpu, gpu->cuda.cuEventRecord(b->ends[i], streams[i]), "cuEventRecord") != 0)
			return -1;
	const bool taken = cpu_takings() != b->takings;

	for (int i = 0; i < b->streams; i++) {
		float ms = 0;

		if (wait_for_stream(gpu, streams[i]) != 0 ||
		    gpu_check(gpu, gpu->cuda.cuEventElapsedTime(&ms, b->begin, b->ends[i]), "cuEventElapsedTime") != 0)
			return -1;
		longest_ms = ms > longest_ms ? ms : longest_ms;
	}
	if (__atomic_load_n(&page->measured, __ATOMIC_RELAXED) && !taken)
		times_take(&page->in_flight, (int64_t)((double)longest_ms * NS_PER_MS));
	else if (taken)
		page->cpu_taken++;
	return 0;
}

/* So many at a time, and no more before all have ended. */
static int run_bounded(struct gpu *gpu, struct load_page *page, const struct work *work, uint32_t number)
{
	struct batch batch;

	if (batch_prepare(gpu, &batch, 1) != 0)
		return -1;
	while (!stopping) {
		if (batch_begin(gpu, &batch) != 0)
			return -1;
		for (uint32_t i = 0; i < number; i++)
			if (gpu_launch(gpu, work) != 0)
				return -1;
		if (batch_end(gpu, page, &batch, &gpu->stream) != 0)
			return -1;
		count(page, number);
	}
	return 0;
}

/* Endless kernels, so many at a time. It sleeps between looks: the load is for the GPU, not for the processors. */
static int run_kernels(struct gpu *gpu, struct load_page *page, const struct work *work, uint32_t most, int64_t look_ns)
{
	uint32_t counted = gpu->launched;

	while (!stopping) {
		while (gpu_in_flight(gpu) < most)
			if (gpu_launch(gpu, work) != 0)
				return -1;
		sleep_until(now_ns() + look_ns, &stopping);
		if (gpu_busy(gpu) < 0)
			return -1;
		const uint32_t done = *gpu->word;

		if (done != counted)
			count(page, done - counted);
		counted = done;
	}
	return wait_for_stream(gpu, gpu->stream);
}

static int run_long(struct gpu *gpu, struct load_page *page, enum work_kind kind, uint64_t rounds)
{
	const bool bounded = page->order.bounded;
	const struct work work = {.kind = kind,
				  .blocks = (bounded ? page->order.multiprocessors : gpu->multiprocessors) *
					    PRODUCTS_BLOCKS,
				  .threads = PRODUCTS_THREADS,
				  .rounds = rounds};

	if (gpu_prepare(gpu, &work) != 0)
		return -1;
	return bounded ? run_bounded(gpu, page, &work, 1)
		       : run_kernels(gpu, page, &work, PRODUCTS_IN_FLIGHT, NS_PER_MS);
}

static int run_products(struct gpu *gpu, struct load_page *page)
{
	return run_long(gpu, page, WORK_KERNEL, page->order.product_rounds);
}

static int run_reads(struct gpu *gpu, struct load_page *page)
{
	return run_long(gpu, page, WORK_READ, page->order.read_rounds);
}

static int run_launches(struct gpu *gpu, struct load_page *page)
{
	const struct work work = {.blocks = 1, .threads = 32};

	return page->order.bounded ? run_bounded(gpu, page, &work, LAUNCHES_BOUNDED)
				   : run_kernels(gpu, page, &work, LAUNCHES_IN_FLIGHT, NS_PER_MS / 5);
}

static int run_copies(struct gpu *gpu, struct load_page *page)
{
	const int at_once = page->order.bounded ? 1 : COPIES_AT_ONCE;
	struct cuda *cuda = &gpu->cuda;
	CUdeviceptr there[2];
	CUstream back = NULL;
	struct batch batch;
	void *here[2];

	for (int i = 0; i < 2; i++)
		if (gpu_check(gpu, cuda->cuMemAlloc_v2(&there[i], COPY_BYTES), "cuMemAlloc") != 0 ||
		    gpu_check(gpu, cuda->cuMemHostAlloc(&here[i], COPY_BYTES, CU_MEMHOSTALLOC_PORTABLE),
			      "cuMemHostAlloc") != 0)
			return -1;
	if (gpu_check(gpu, cuda->cuStreamCreate(&back, CU_STREAM_NON_BLOCKING), "cuStreamCreate") != 0 ||
	    batch_prepare(gpu, &batch, 2) != 0)
		return -1;
	const CUstream streams[2] = {gpu->stream, back};

	memset(here[0], 1, COPY_BYTES);
	while (!stopping) {
		if (batch_begin(gpu, &batch) != 0)
			return -1;
		for (int i = 0; i < at_once; i++)
			if (gpu_check(gpu, cuda->cuMemcpyHtoDAsync_v2(there[0], here[0], COPY_BYTES, gpu->stream),
				      "cuMemcpyHtoDAsync") != 0 ||
			    gpu_check(gpu, cuda->cuMemcpyDtoHAsync_v2(here[1], there[1], COPY_BYTES, back),
				      "cuMemcpyDtoHAsync") != 0)
				return -1;
		if (batch_end(gpu, page, &batch, streams) != 0)
			return -1;
		count(page, 2 * (uint64_t)at_once);
	}
	return 0;
}

static int run_contexts(struct gpu *gpu, struct load_page *page)
{
	while (!stopping) {
		gpu_close(gpu);
		if (gpu_open(gpu, CU_CTX_SCHED_BLOCKING_SYNC) != 0)
			return -1;
		count(page, 1);
	}
	return 0;
}

static const struct load_kind kinds[] = {
	{"products", "kernels of 20 ms on all multiprocessors", run_products},
	{"reads", "kernels that read memory for 20 ms", run_reads},
	{"copies", "copies of 64 MiB, both ways", run_copies},
	{"launches", "launches of a kernel that does nothing", run_launches},
	{"contexts", "contexts created, used once and destroyed", run_contexts},
};

const struct load_kind *load_kind_named(const char *name)
{
	for (size_t i = 0; i < ARRAY_LENGTH(kinds); i++)
		if (strcmp(kinds[i].name, name) == 0)
			return &kinds[i];
	return NULL;
}

const char *load_name(const struct load *load)
{
	return load->kind->name;
}

const char *load_unit(const struct load *load)
{
	return load->kind->unit;
}

uint64_t load_done(const struct load *load)
{
	return __atomic_load_n(&load->page->done, __ATOMIC_RELAXED);
}

int load_main(int argc, char **argv)
{
	static struct gpu gpu;
	const struct load_kind *kind = argc == 3 ? load_kind_named(argv[0]) : NULL;
	struct load_page *page;
	char name[64];

	if (!kind)
		return EXIT_USAGE;
	page = mmap(NULL, sizeof(*page), PROT_READ | PROT_WRITE, MAP_SHARED, atoi(argv[2]), 0);
	if (page == MAP_FAILED)
		return EXIT_FAILURE;
	snprintf(name, sizeof(name), "load %s", kind->name);
	program_name = name;
	signal(SIGINT, SIG_IGN); /* Ctrl-C is for the parent, which ends this one */
	if (gpu_find(&gpu, atoi(argv[1])) != 0 || gpu_open(&gpu, CU_CTX_SCHED_BLOCKING_SYNC) != 0 ||
	    kind->work(&gpu, page) != 0)
		return EXIT_FAILURE;
	gpu_close(&gpu);
	return EXIT_SUCCESS;
}

static void start(struct load *load, int ordinal, const struct load_order *order)
{
	const int fd = memfd_create("gpuseg-latency", MFD_CLOEXEC);
	char gpu[16], descriptor[16];
	const pid_t parent = getpid();

	load->pid = -1;
	load->page = MAP_FAILED;
	if (fd < 0 || ftruncate(fd, sizeof(*load->page)) != 0)
		return;
	load->page = mmap(NULL, sizeof(*load->page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	snprintf(gpu, sizeof(gpu), "%d", ordinal);
	snprintf(descriptor, sizeof(descriptor), "%d", fd);
	char *const argv[] = {"gpuseg-latency", LOAD_ARGUMENT, (char *)(uintptr_t)load->kind->name, gpu,
			      descriptor,	NULL};

	if (load->page != MAP_FAILED)
		load->page->order = *order;
	load->pid = load->page == MAP_FAILED ? -1 : fork();
	if (load->pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(EXIT_FAILURE);
		fcntl(fd, F_SETFD, 0);
		execv("/proc/self/exe", argv);
		_exit(127);
	}
	close(fd);
}

int loads_start(struct load loads[], int number, int ordinal, const struct load_order *order)
{
	for (int i = 0; i < number; i++) {
		start(&loads[i], ordinal, order);
		if (loads[i].pid < 0) {
			message("--load %s: no process: %s", load_name(&loads[i]), strerror(errno));
			return -1;
		}
	}
	for (int i = 0; i < number; i++) {
		const int64_t limit_ns = now_ns() + START_LIMIT_NS;

		while (!__atomic_load_n(&loads[i].page->ready, __ATOMIC_ACQUIRE) && !stopping) {
			if (loads_check(loads, number) != 0)
				return -1;
			if (now_ns() > limit_ns) {
				message("--load %s: nothing done in 60 s", load_name(&loads[i]));
				return -1;
			}
			sleep_until(now_ns() + NS_PER_MS, &stopping);
		}
	}
	return 0;
}

void loads_measure(struct load loads[], int number, bool measured)
{
	for (int i = 0; i < number; i++)
		__atomic_store_n(&loads[i].page->measured, measured, __ATOMIC_RELAXED);
}

int loads_check(struct load loads[], int number)
{
	for (int i = 0; i < number; i++) {
		int status = 0;

		if (loads[i].pid <= 0 || waitpid(loads[i].pid, &status, WNOHANG) == 0)
			continue;
		loads[i].pid = 0;
		if (WIFSIGNALED(status))
			message("--load %s: the process ended by signal %d", load_name(&loads[i]), WTERMSIG(status));
		else
			message("--load %s: the process ended with status %d", load_name(&loads[i]),
				WEXITSTATUS(status));
		return -1;
	}
	return 0;
}

void loads_stop(struct load loads[], int number)
{
	const int64_t limit_ns = now_ns() + STOP_LIMIT_NS;

	for (int i = 0; i < number; i++)
		if (loads[i].pid > 0)
			kill(loads[i].pid, SIGTERM);
	for (int i = 0; i < number; i++) {
		while (loads[i].pid > 0 && waitpid(loads[i].pid, NULL, WNOHANG) == 0) {
			if (now_ns() > limit_ns)
				kill(loads[i].pid, SIGKILL);
			sleep_until(now_ns() + NS_PER_MS, NULL);
		}
		loads[i].pid = 0;
	}
}
