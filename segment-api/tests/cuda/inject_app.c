/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inject_app.c - CUDA programs as users write them, on the stand-in of the driver. Each prints its result, which
 * depends on the number and order of its kernels, and what the stand-in has to complain about.
 *
 *   inject_app SCENARIO [NUMBER]
 */
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "gpuseg.h"
#include "standin.h"

#define THREADS 8
/* The first kernel of a job works until the others are launched, also where the program is not let run meanwhile. */
#define FIRST_US 4000

static uint64_t result = 1; /* changed by kernels */
static CUcontext context;
static long number; /* of the command line */

/* Streams and graphs of the stand-in live as long as the process. */
STANDIN const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "detect_leaks=0";
}

static void ok(CUresult r, const char *what)
{
	if (r != CUDA_SUCCESS) {
		fprintf(stderr, "%s: error %d\n", what, r);
		exit(1);
	}
}
#define OK(call) ok(call, #call)

static void rest_us(long us)
{
	const struct timespec ts = {.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000};

	nanosleep(&ts, NULL);
}

static CUstream new_stream(int priority)
{
	CUstream stream;

	OK(cuStreamCreateWithPriority(&stream, 0, priority));
	return stream;
}

static void kernel_on(CUstream stream, uint64_t *p, long us, uint64_t k)
{
	void *parameters[] = {&p, &k};

	OK(cuLaunchKernel(standin_kernel(us), 1, 1, 1, 32, 1, 1, 0, stream, parameters, NULL));
}

static void wait_for(const uint64_t *p, uint64_t value)
{
	while (__atomic_load_n(p, __ATOMIC_ACQUIRE) != value)
		rest_us(200);
}

/* What `count` kernels with k = 0, 1, ... make of 1. */
static uint64_t after(uint64_t from, int count)
{
	for (int i = 0; i < count; i++)
		from = from * 31 + (uint64_t)i;
	return from;
}

/* ---- scenarios ---- */

static void jobs_with_synchronisation(void)
{
	const CUstream stream = new_stream(0);

	for (int job = 0; job < 10; job++) {
		for (int i = 0; i < 5; i++)
			kernel_on(stream, &result, i == 0 ? FIRST_US : 50, (uint64_t)i);
		OK(cuStreamSynchronize(stream));
		rest_us(20000);
	}
}

/* NUMBER jobs, one each 20 ms of CLOCK_MONOTONIC. */
static void periodic_jobs(void)
{
	const CUstream stream = new_stream(0);
	struct timespec at;

	clock_gettime(CLOCK_MONOTONIC, &at);
	for (long job = 0; job < number; job++) {
		kernel_on(stream, &result, 300, 1);
		OK(cuStreamSynchronize(stream));
		at.tv_nsec += 20000000;
		at.tv_sec += at.tv_nsec / 1000000000;
		at.tv_nsec %= 1000000000;
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
	}
}

/* Launches that follow each other closely, with synchronisations between. */
static void one_long_job(void)
{
	const CUstream stream = new_stream(0);

	for (int i = 0; i < 200; i++) {
		kernel_on(stream, &result, 10, (uint64_t)i);
		if (i % 10 == 9)
			OK(cuStreamSynchronize(stream));
	}
}

/* Jobs that synchronise and pause on the way, as a program that looks at a result does. */
static void jobs_with_pauses(void)
{
	const CUstream stream = new_stream(0);

	for (int job = 0; job < 20; job++) {
		for (int part = 0; part < 5; part++) {
			kernel_on(stream, &result, 50, (uint64_t)part);
			OK(cuStreamSynchronize(stream));
			rest_us(500);
		}
		rest_us(20000);
	}
}

static void no_synchronisation_on(CUstream stream)
{
	for (int job = 0; job < 3; job++) {
		const uint64_t before = __atomic_load_n(&result, __ATOMIC_ACQUIRE);

		for (int i = 0; i < 4; i++)
			kernel_on(stream, &result, 1000, (uint64_t)i);
		wait_for(&result, after(before, 4));
		rest_us(50000);
	}
}

static void no_synchronisation(void)
{
	no_synchronisation_on(new_stream(0));
}

static void default_stream(void)
{
	no_synchronisation_on(NULL);
}

static void *own_default_stream(void *arg)
{
	uint64_t *p = arg, k = 7;
	void *parameters[] = {&p, &k};

	OK(cuCtxPushCurrent_v2(context));
	for (int i = 0; i < 50; i++) {
		OK(cuLaunchKernel_ptsz(standin_kernel(20), 1, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL));
		if (i % 20 == 19)
			OK(cuStreamSynchronize_ptsz(NULL));
	}
	while (__atomic_load_n(p, __ATOMIC_ACQUIRE) == 0)
		rest_us(100);
	rest_us(20000); /* what is left ends by a marker */
	OK(cuStreamSynchronize_ptsz(NULL));
	return NULL;
}

static void in_threads(void *(*run)(void *))
{
	static uint64_t results[THREADS];
	pthread_t threads[THREADS];

	for (int i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, run, &results[i]);
	for (int i = 0; i < THREADS; i++) {
		pthread_join(threads[i], NULL);
		result = result * 31 + results[i];
	}
}

static void per_thread_streams(void)
{
	in_threads(own_default_stream);
}

static void *own_stream(void *arg)
{
	uint64_t *p = arg;
	unsigned int seed = 7;
	CUstream stream;
	CUevent event;

	OK(cuCtxPushCurrent_v2(context));
	stream = new_stream(0);
	OK(cuEventCreate(&event, 0));
	for (int i = 0; i < 300; i++) {
		kernel_on(stream, p, i % 20 ? 1 : 100, (uint64_t)i);
		switch (rand_r(&seed) % 12) {
		case 0:
			OK(cuStreamSynchronize(stream));
			break;
		case 1:
			OK(cuEventRecord(event, stream));
			OK(cuEventSynchronize(event));
			break;
		case 2:
			OK(cuCtxSynchronize());
			break;
		case 3:
			rest_us(500);
			break;
		case 4:
			OK(cuEventRecord(event, stream));
			while (cuEventQuery(event) != CUDA_SUCCESS)
				rest_us(20);
			break;
		default:
			break;
		}
	}
	OK(cuStreamSynchronize(stream));
	OK(cuEventDestroy_v2(event));
	OK(cuStreamDestroy_v2(stream));
	return NULL;
}

static void threads(void)
{
	in_threads(own_stream);
}

/* A thread that launches while another one captures. */
static volatile bool captured;

static void *beside_a_capture(void *arg)
{
	CUstream stream;

	OK(cuCtxPushCurrent_v2(context));
	stream = new_stream(0);
	while (!__atomic_load_n(&captured, __ATOMIC_ACQUIRE)) {
		kernel_on(stream, arg, 100, 0);
		rest_us(300);
	}
	OK(cuStreamSynchronize(stream));
	return NULL;
}

static void graphs(void)
{
	static uint64_t of_other = 1, of_default, of_thread; /* streams run at the same time: a word each */
	const CUstream stream = new_stream(0), other = new_stream(0);
	CUgraphExec exec;
	CUgraph graph;
	pthread_t thread;

	kernel_on(stream, &result, 2000, 1); /* under way while the capture begins */
	kernel_on(other, &of_other, 10, 1);
	OK(cuStreamSynchronize(other));
	OK(cuStreamSynchronize(stream));
	pthread_create(&thread, NULL, beside_a_capture, &of_thread);
	kernel_on(NULL, &of_default, 3000, 1);
	OK(cuStreamBeginCapture_v2(stream, 0));
	for (int i = 0; i < 20; i++) {
		kernel_on(stream, &result, 5, (uint64_t)i);
		rest_us(2000); /* long enough for a marker, if one were wanted */
	}
	OK(cuStreamEndCapture(stream, &graph));
	__atomic_store_n(&captured, true, __ATOMIC_RELEASE);
	pthread_join(thread, NULL);
	OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
	for (int i = 0; i < 10; i++) {
		OK(cuGraphLaunch(exec, stream));
		OK(cuStreamSynchronize(stream));
		rest_us(10000);
	}
	OK(cuStreamSynchronize(NULL));
	result = (result * 31 + of_other) * 31 + of_default;
}

/* As the CUDA runtime and other libraries do it: no function of the driver is had from the linker. */
static void functions_that_are_found(void)
{
	typedef CUresult (*launch_kernel)(CUfunction f, unsigned int gx, unsigned int gy, unsigned int gz,
					  unsigned int bx, unsigned int by, unsigned int bz, unsigned int shared,
					  CUstream stream, void **parameters, void **extra);
	typedef CUresult (*of_stream)(CUstream stream);
	void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD), *launches[3], *synchronize;
	CUresult (*get)(const char *, void **, int, uint64_t) = NULL;
	const CUstream stream = new_stream(0);
	uint64_t *p = &result, k = 5;
	void *parameters[] = {&p, &k};

	*(void **)&get = dlsym(driver, "cuGetProcAddress");
	launches[0] = dlsym(driver, "cuLaunchKernel");
	OK(get("cuLaunchKernel", &launches[1], 12000, 0));
	OK(cuGetProcAddress_v2("cuLaunchKernel", &launches[2], 12000, 0, NULL));
	OK(get("cuStreamSynchronize", &synchronize, 12000, 0));
	for (size_t i = 0; i < sizeof(launches) / sizeof(launches[0]); i++) {
		OK(((launch_kernel)launches[i])(standin_kernel(20), 1, 1, 1, 1, 1, 1, 0, stream, parameters, NULL));
		OK(((of_stream)synchronize)(stream));
		rest_us(20000);
	}
}

/* The driver itself launches: no wrapper sees that. */
static void calls_that_pass_by(void)
{
	const CUstream stream = new_stream(0);
	uint64_t *p = &result, k = 5;
	void *parameters[] = {&p, &k};

	OK(cuLaunchKernel(standin_kernel(20), 1, 1, 1, 1, 1, 1, 0, stream, parameters, NULL));
	OK(standin_launch(20, stream, parameters));
	OK(cuStreamSynchronize(stream));
}

static void kinds_of_launches(void)
{
	static unsigned char from[64], to[64];
	const CUstream stream = new_stream(0);
	uint64_t *p = &result, k = 3;
	void *parameters[] = {&p, &k};
	const struct standin_config config = {.dimensions = {1, 1, 1, 1, 1, 1}, .stream = stream};

	OK(cuLaunchKernelEx(&config, standin_kernel(20), parameters, NULL));
	OK(cuStreamSynchronize(stream));
	rest_us(20000);
	OK(cuLaunchCooperativeKernel(standin_kernel(20), 1, 1, 1, 1, 1, 1, 0, stream, parameters));
	OK(cuStreamSynchronize(stream));
	rest_us(20000);
	memset(from, 5, sizeof(from));
	OK(cuMemcpyAsync((CUdeviceptr)(uintptr_t)to, (CUdeviceptr)(uintptr_t)from, 8, stream));
	OK(cuStreamSynchronize(stream));
	rest_us(20000);
	OK(cuMemsetD8Async((CUdeviceptr)(uintptr_t)(to + 8), 9, 8, stream));
	OK(cuStreamSynchronize(stream));
	rest_us(20000);
	OK(cuMemcpyDtoH_v2(from, (CUdeviceptr)(uintptr_t)to, 16));
	for (int i = 0; i < 16; i++)
		result = result * 31 + from[i];
	rest_us(20000);
}

/* Errors are the program's, as they are. */
static void failing_launches(void)
{
	uint64_t *p = &result, k = 3;
	void *parameters[] = {&p, &k};
	const CUstream stream = new_stream(0);

	for (int i = 0; i < 5; i++) {
		result = result * 31 +
			 (uint64_t)cuLaunchKernel(standin_kernel(1), 0, 1, 1, 1, 1, 1, 0, stream, parameters, NULL);
		rest_us(5000);
	}
	kernel_on(stream, &result, 10, 1);
	OK(cuStreamSynchronize(stream));
	rest_us(20000);
}

static void streams_that_end(void)
{
	for (int i = 0; i < 20; i++) {
		const CUstream stream = new_stream(0);
		const uint64_t before = __atomic_load_n(&result, __ATOMIC_ACQUIRE);

		kernel_on(stream, &result, 2000, 0);
		OK(cuStreamDestroy_v2(stream));
		wait_for(&result, after(before, 1));
		rest_us(i % 5 * 300);
	}
	rest_us(50000);
}

static void contexts(void)
{
	for (int i = 0; i < 6; i++) {
		CUcontext other;
		CUstream stream;

		OK(cuCtxCreate_v2(&other, 0, i % 2));
		stream = new_stream(0);
		kernel_on(stream, &result, 1000, (uint64_t)i);
		OK(i % 3 ? cuStreamSynchronize(stream) : cuCtxSynchronize());
		kernel_on(stream, &result, 3000, (uint64_t)i);
		rest_us(i * 300);
		OK(cuCtxDestroy_v2(other));
		kernel_on(NULL, &result, 10, (uint64_t)i);
		OK(cuCtxSynchronize());
	}
	rest_us(20000);
}

static void forks(void)
{
	const CUstream stream = new_stream(0);

	for (int i = 0; i < 10; i++) {
		pid_t child;
		int status;

		kernel_on(stream, &result, 500, (uint64_t)i);
		child = fork();
		if (child == 0) {
			/* As a loader of data does: it computes and ends, and does not use the GPU. */
			rest_us(i * 1000);
			if (i % 2)
				_exit(7);
			exit(7);
		}
		kernel_on(stream, &result, 500, (uint64_t)i);
		OK(cuStreamSynchronize(stream));
		if (waitpid(child, &status, 0) != child || !WIFEXITED(status) || WEXITSTATUS(status) != 7) {
			fprintf(stderr, "child %d: status %#x\n", i, (unsigned int)status);
			exit(1);
		}
	}
}

static void marks_by_hand(void)
{
	struct gpuseg_task_attr attr = GPUSEG_TASK_ATTR_INIT;
	const CUstream stream = new_stream(0);
	gpuseg_client *client;
	gpuseg_task *task;

	attr.name = "by-hand";
	attr.priority = 40;
	if (gpuseg_connect(NULL, &client) < 0 || gpuseg_task_open(client, &attr, &task) < 0) {
		fprintf(stderr, "%s\n", gpuseg_last_message(NULL));
		exit(1);
	}
	for (int i = 0; i < 5; i++) {
		if (gpuseg_begin(task) < 0)
			exit(1);
		kernel_on(stream, &result, 200, (uint64_t)i);
		OK(cuStreamSynchronize(stream));
		gpuseg_end(task);
		rest_us(5000);
	}
	gpuseg_disconnect(client);
}

/* It connects when the automatic task has already begun, which is a client of the same process. */
static void marks_after_a_launch(void)
{
	const CUstream stream = new_stream(0);

	kernel_on(stream, &result, 200, 0);
	OK(cuStreamSynchronize(stream));
	rest_us(20000);
	marks_by_hand();
}

static void ends_with_work_under_way(void)
{
	const CUstream stream = new_stream(0);

	for (int i = 0; i < 100; i++)
		kernel_on(stream, &result, 200, 0);
	printf("result %016llx violations %u\n", 0ull, standin_violations());
	fflush(stdout);
	exit(0);
}

static void launches_for_ever(void)
{
	const CUstream stream = new_stream(0);

	printf("ready\n");
	fflush(stdout);
	for (uint64_t i = 0;; i++) {
		kernel_on(stream, &result, 20, i);
		if (i % 50 == 49)
			OK(cuStreamSynchronize(stream));
		if (i % 200 == 199)
			rest_us(1000);
	}
}

static volatile sig_atomic_t enough;

static void on_sigterm(int signal_number)
{
	(void)signal_number;
	enough = 1;
}

/* For `number` milliseconds, or until SIGTERM; the result says nothing. */
static void launches_for_a_while(void)
{
	const CUstream stream = new_stream(0);
	struct timespec begin, at;
	uint64_t sink = 1;

	signal(SIGTERM, on_sigterm);
	clock_gettime(CLOCK_MONOTONIC, &begin);
	do {
		for (int i = 0; i < 20; i++)
			kernel_on(stream, &sink, 20, 1);
		OK(cuStreamSynchronize(stream));
		rest_us(500);
		clock_gettime(CLOCK_MONOTONIC, &at);
	} while (!enough && (at.tv_sec - begin.tv_sec) * 1000 + (at.tv_nsec - begin.tv_nsec) / 1000000 < number);
}

/* Never waits: the work in flight is bounded by the stand-in's queue alone. */
static void training(void)
{
	const CUstream stream = new_stream(0);

	for (int i = 0; i < 400; i++)
		kernel_on(stream, &result, 100, (uint64_t)i);
	OK(cuStreamSynchronize(stream));
}

/*
 * A stream of low priority with long kernels that nobody waits for, and one of high priority beside it. On stderr: the
 * most kernels that were in flight on the low one, and how many were launched there while work on the high one was
 * outstanding.
 */
#define BY_DEFAULT_STREAM 1 /* of NUMBER: the low stream is the default one */
#define BY_TASKS 2	    /* streams have the priority of tasks, none of CUDA */
#define BY_LARGE 4	    /* kernels of the low stream fill the GPU */
#define BY_MANY 8	    /* more jobs on the high stream */

static bool high_known, high_done;
static uint64_t high_outstanding;
static gpuseg_task *tasks[2];

static void open_tasks(void)
{
	gpuseg_client *client;

	if (gpuseg_connect(NULL, &client) < 0)
		exit(1);
	for (int i = 0; i < 2; i++) {
		struct gpuseg_task_attr attr = GPUSEG_TASK_ATTR_INIT;

		attr.name = i ? "low" : "high";
		attr.priority = i ? 10 : 60;
		if (gpuseg_task_open(client, &attr, &tasks[i]) < 0)
			exit(1);
	}
}

static void give(CUstream stream, const gpuseg_task *task)
{
	const int got = gpuseg_stream(stream, task);

	if (got < 0)
		fprintf(stderr, "gpuseg_stream: %s\n", gpuseg_last_message(NULL));
}

static void *high_stream(void *arg)
{
	CUstream stream;

	OK(cuCtxPushCurrent_v2(context));
	stream = new_stream(number & BY_TASKS ? 0 : -3);
	if (number & BY_TASKS)
		give(stream, tasks[0]);
	for (int i = 0; i < (number & BY_MANY ? 70 : 20); i++) {
		__atomic_store_n(&high_outstanding, 1, __ATOMIC_RELEASE);
		kernel_on(stream, arg, 3000, (uint64_t)i);
		OK(cuStreamSynchronize(stream));
		__atomic_store_n(&high_outstanding, 0, __ATOMIC_RELEASE);
		__atomic_store_n(&high_known, true, __ATOMIC_RELEASE);
		rest_us(8000);
	}
	__atomic_store_n(&high_done, true, __ATOMIC_RELEASE);
	return NULL;
}

static void two_streams(void)
{
	static uint64_t ones, high = 1;
	const CUstream stream = number & BY_DEFAULT_STREAM ? NULL : new_stream(0);
	const unsigned int blocks = number & BY_LARGE ? 100000 : 1;
	unsigned int most = 0, launched = 0, beside = 0;
	const CUfunction f = standin_kernel(1500);
	uint64_t *p = &ones, k = 1;
	void *parameters[] = {&p, &k};
	pthread_t thread;

	if (number & BY_TASKS) {
		open_tasks();
		give(stream, tasks[1]);
	}
	pthread_create(&thread, NULL, high_stream, &high);
	while (!__atomic_load_n(&high_known, __ATOMIC_ACQUIRE)) /* its priority is seen at its first launch */
		rest_us(1000);
	while (!__atomic_load_n(&high_done, __ATOMIC_ACQUIRE)) {
		unsigned int done = 0;

		if (launched < (number & BY_MANY ? 2000 : 400)) {
			OK(cuLaunchKernel(f, blocks, 1, 1, 1, 1, 1, 0, stream, parameters, NULL));
			launched++;
			beside += __atomic_load_n(&high_outstanding, __ATOMIC_ACQUIRE) != 0;
		} else {
			rest_us(1000);
		}
		/* The n-th kernel makes 31 * x + 1 of x. */
		for (uint64_t x = 0, now = __atomic_load_n(&ones, __ATOMIC_ACQUIRE); x != now && done < launched;
		     done++)
			x = x * 31 + 1;
		if (launched - done > most)
			most = launched - done;
	}
	pthread_join(thread, NULL);
	OK(cuCtxSynchronize());
	result = high;
	fprintf(stderr, "in flight %u launched %u beside %u\n", most, launched, beside);
}

/*
 * Kernels of 1.5 ms that nobody waits for, until SIGTERM; NUMBER: of as many blocks with one thread. On stderr: how
 * many were launched, the most that were in flight, and the longest launch in ms.
 */
static volatile sig_atomic_t anew;

static void on_sigusr1(int number_of_signal)
{
	(void)number_of_signal;
	anew = 1;
}

/* It says how many launches it made, the most that it saw in flight since SIGUSR1 came, and its longest call. */
static void without_end(void)
{
	const CUstream stream = new_stream(0);
	const CUfunction f = standin_kernel(1500);
	const unsigned int blocks = number > 0 ? (unsigned int)number : 1;
	unsigned int launched = 0, most = 0, done = 0;
	uint64_t ones = 0, x = 0, k = 1;
	uint64_t *p = &ones;
	void *parameters[] = {&p, &k};
	long longest = 0;

	signal(SIGTERM, on_sigterm);
	signal(SIGUSR1, on_sigusr1);
	printf("launches\n");
	fflush(stdout);
	while (!enough) {
		struct timespec before, after;
		uint64_t now;
		long ms;

		if (launched - done >= 100) { /* what is queued runs on after the signal */
			rest_us(1000);
		} else {
			clock_gettime(CLOCK_MONOTONIC, &before);
			OK(cuLaunchKernel(f, blocks, 1, 1, 1, 1, 1, 0, stream, parameters, NULL));
			clock_gettime(CLOCK_MONOTONIC, &after);
			ms = (after.tv_sec - before.tv_sec) * 1000 + (after.tv_nsec - before.tv_nsec) / 1000000;
			if (ms > longest)
				longest = ms;
			launched++;
		}
		/* The n-th kernel makes 31 * x + 1 of x. */
		now = __atomic_load_n(&ones, __ATOMIC_ACQUIRE);
		for (; x != now && done < launched; done++)
			x = x * 31 + 1;
		if (anew) {
			anew = 0;
			most = 0;
		}
		if (launched - done > most)
			most = launched - done;
	}
	OK(cuCtxSynchronize());
	fprintf(stderr, "launched %u in flight %u longest %ld\n", launched, most, longest);
}

/* Waits for a long kernel in three ways; on stderr: calls of the driver that the program did not make. */
static void long_waits(void)
{
	const CUstream stream = new_stream(0);

	kernel_on(stream, &result, 20000, 1);
	OK(cuStreamSynchronize(stream));
	kernel_on(stream, &result, 20000, 2);
	OK(cuCtxSynchronize());
	kernel_on(NULL, &result, 20000, 3);
	OK(cuStreamSynchronize(NULL));
	fprintf(stderr, "markers %u queries %u\n", standin_markers(), standin_queries());
}

/* Jobs of NUMBER us with pauses of 30 ms; on stderr: how many touches there were. */
static void jobs_far_apart(void)
{
	const CUstream stream = new_stream(0);

	for (int job = 0; job < 12; job++) {
		kernel_on(stream, &result, number ? number : 300, (uint64_t)job);
		OK(cuStreamSynchronize(stream));
		rest_us(30000);
	}
	fprintf(stderr, "memsets %u\n", standin_touches());
}

/* Some jobs, then a capture that lasts. */
static void a_long_capture(void)
{
	const CUstream stream = new_stream(0);
	CUgraphExec exec;
	CUgraph graph;

	for (int job = 0; job < 3; job++) {
		kernel_on(stream, &result, 300, (uint64_t)job);
		OK(cuStreamSynchronize(stream));
		rest_us(30000);
	}
	OK(cuStreamBeginCapture_v2(stream, 0));
	printf("captures\n");
	fflush(stdout);
	kernel_on(stream, &result, 5, 1);
	rest_us(300000);
	fprintf(stderr, "memsets %u\n", standin_touches());
	OK(cuStreamEndCapture(stream, &graph));
	OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
	OK(cuGraphLaunch(exec, stream));
	OK(cuStreamSynchronize(stream));
}

static bool has_thread(const char *name)
{
	DIR *d = opendir("/proc/self/task");
	char path[300], line[32];
	struct dirent *entry;
	bool found = false;
	FILE *f;

	while (d && !found && (entry = readdir(d)) != NULL) {
		snprintf(path, sizeof(path), "/proc/self/task/%s/comm", entry->d_name);
		f = fopen(path, "re");
		found = f && fgets(line, sizeof(line), f) && strncmp(line, name, strlen(name)) == 0;
		if (f)
			fclose(f);
	}
	if (d)
		closedir(d);
	return found;
}

/*
 * Under exec: the task is open, and the last thread that the library starts has its name, which it takes after the
 * memory that it needs for its life. On a busy machine that may be thousands of launches later.
 */
static void await_library(void)
{
	if (!getenv("CUDA_INJECTION64_PATH"))
		return;
	for (int i = 0; !has_thread("gpuseg-touch"); i++) {
		if (i == 60000) {
			fprintf(stderr, "the library starts no thread\n");
			exit(1);
		}
		rest_us(1000);
	}
}

/* Many launches; on stderr: what the heap grew by after the first of them. */
static void soak(void)
{
	const CUfunction f = standin_kernel(0);
	const CUstream stream = new_stream(0);
	static uint64_t of_default = 1;
	uint64_t *p, k = 1;
	void *parameters[] = {&p, &k};
	size_t before = 0;

	for (int i = 0; i < 200000; i++) {
		if (i == 1000) {
			await_library();
			before = mallinfo2().uordblks;
		}
		p = i % 3 ? &result : &of_default;
		OK(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, i % 3 ? stream : NULL, parameters, NULL));
		if (i % 1000 == 999)
			OK(cuCtxSynchronize());
		if (i % 20000 == 19999)
			rest_us(3000);
	}
	fprintf(stderr, "heap grew by %zd\n", (ssize_t)(mallinfo2().uordblks - before));
	result = result * 31 + of_default;
}

/* ---- NUMBER launches on three streams, with graphs and all ways to wait ---- */

#define SOAK_STREAMS 3
#define SOAK_NODES 10

static long of_status(const char *key)
{
	char line[256];
	long value = -1;
	FILE *f = fopen("/proc/self/status", "re");

	while (f && fgets(line, sizeof(line), f)) {
		if (strncmp(line, key, strlen(key)) == 0)
			value = atol(line + strlen(key));
	}
	if (f)
		fclose(f);
	return value;
}

static long descriptors(void)
{
	DIR *d = opendir("/proc/self/fd");
	long n = 0;

	while (d && readdir(d))
		n++;
	if (d)
		closedir(d);
	return n;
}

/* Synchronise in one of several ways. Their results are looked at every time. */
static void wait_somehow(long round, CUstream stream, CUevent event)
{
	switch (round % 5) {
	case 0:
		OK(cuCtxSynchronize());
		break;
	case 1:
		OK(cuStreamSynchronize(stream));
		break;
	case 2:
		OK(cuEventRecord(event, stream));
		OK(cuEventSynchronize(event));
		break;
	case 3:
		while (cuStreamQuery(stream) != CUDA_SUCCESS)
			rest_us(10);
		break;
	default: /* nobody waits */
		break;
	}
}

static void long_soak(void)
{
	static uint64_t words[SOAK_STREAMS] = {1, 1, 1};
	uint64_t expected[SOAK_STREAMS] = {1, 1, 1};
	const CUfunction f = standin_kernel(0);
	CUstream streams[SOAK_STREAMS] = {NULL, new_stream(0), new_stream(-1)};
	long rss = 0, fds = 0, threads_seen = 0, wrong = 0, launched = 0;
	CUgraphExec exec;
	CUgraph graph;
	CUevent event;

	OK(cuEventCreate(&event, 0));
	OK(cuStreamBeginCapture_v2(streams[1], 0));
	for (int i = 0; i < SOAK_NODES; i++)
		kernel_on(streams[1], &words[1], 0, 1);
	OK(cuStreamEndCapture(streams[1], &graph));
	OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
	for (long round = 0; launched < number; round++) {
		const int s = (int)(round % SOAK_STREAMS);
		uint64_t *p = &words[s], k = 1;
		void *parameters[] = {&p, &k};

		for (int i = 0; i < 200 && launched < number; i++, launched++) {
			const bool whole_graph = s == 1 && i % 50 == 0;

			if (whole_graph)
				OK(cuGraphLaunch(exec, streams[1]));
			else
				OK(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, streams[s], parameters, NULL));
			for (int n = 0; n < (whole_graph ? SOAK_NODES : 1); n++)
				expected[s] = expected[s] * 31 + 1;
		}
		wait_somehow(round, streams[s], event);
		if (round % 100 == 99)
			rest_us(2000); /* ends the segment */
		if (round % 50 == 49) {
			OK(cuCtxSynchronize());
			wrong += memcmp(words, expected, sizeof(words)) != 0;
		}
		if (!rss && launched >= number / 5) {
			rss = of_status("VmRSS:");
			fds = descriptors();
			threads_seen = of_status("Threads:");
		}
	}
	OK(cuCtxSynchronize());
	wrong += memcmp(words, expected, sizeof(words)) != 0;
	fprintf(stderr, "soak: launches %ld wrong %ld rss %ld %ld fds %ld %ld threads %ld %ld\n", launched, wrong, rss,
		of_status("VmRSS:"), fds, descriptors(), threads_seen, of_status("Threads:"));
}

/* What gpuseg_stream() says, on stderr. */
static void stream_ranks(void)
{
	CUstream streams[66];
	int got = 0, count = 0;

	open_tasks();
	fprintf(stderr, "thread %d\n", gpuseg_stream((void *)STREAM_PER_THREAD, tasks[0])); /* NOLINT: a handle */
	for (; count < 66 && got == 0; count++) {
		streams[count] = new_stream(0);
		got = gpuseg_stream(streams[count], tasks[0]);
	}
	fprintf(stderr, "streams %d result %d\n", count - 1, got);
	OK(cuStreamDestroy_v2(streams[0])); /* makes room */
	fprintf(stderr, "after destroy %d\n", gpuseg_stream(streams[count - 1], tasks[0]));
	fprintf(stderr, "again %d\n", gpuseg_stream(streams[count - 1], tasks[1]));
	fprintf(stderr, "full %d\n", gpuseg_stream(NULL, tasks[0]));
	fprintf(stderr, "taken %d unknown %d\n", gpuseg_stream(streams[5], NULL), gpuseg_stream(streams[5], NULL));
	fprintf(stderr, "default %d\n", gpuseg_stream(NULL, tasks[0]));
}

/* ---- programs that close descriptors which they did not open ---- */

#define FOREIGN_MOST 1024 /* numbers that may be in use */
#define FILES 32

enum closing {
	CLOSES_THEN_FILES = 0,	/* then opens files, which get the numbers */
	CLOSES_THEN_EVENTFDS,	/* the same with eventfds */
	CLOSES_THEN_SOCKETS,	/* the same with sockets */
	COVERS_BY_FILES,	/* dup2() onto each number */
	COVERS_BY_EVENTFDS,	/* the same with eventfds */
	CLOSES_IN_CHILDREN,	/* of fork(2): the parent's are left alone */
	CLOSES_ON_EXEC,		/* and so nothing is closed */
	CLOSES_EVERY_OTHER_ONE, /* and opens eventfds in their place */
	CLOSES_STDERR_TOO,	/* then opens files */
};

static struct opened {
	int number;
	struct stat is;
} files[FILES];

static int new_file(enum closing how)
{
	switch (how) {
	case CLOSES_THEN_EVENTFDS:
	case COVERS_BY_EVENTFDS:
	case CLOSES_EVERY_OTHER_ONE:
		return eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	case CLOSES_THEN_SOCKETS: /* what is sent to it comes back */
		return socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	default:
		return memfd_create("of the program", MFD_CLOEXEC);
	}
}

static void close_all(int first, unsigned int flags)
{
	if (syscall(SYS_close_range, (unsigned int)first, ~0U, flags) != 0) {
		for (int i = first; i < FOREIGN_MOST && !flags; i++)
			close(i);
	}
}

static void open_files(enum closing how)
{
	for (int i = 0; i < FILES; i++) {
		files[i].number = new_file(how);
		if (fstat(files[i].number, &files[i].is) != 0)
			exit(3);
	}
}

/* A file of the program on every number that it did not open. */
static void cover_all(enum closing how)
{
	int count = 0;

	for (int i = 3; i < FOREIGN_MOST && count < FILES; i++) {
		const int fresh = fcntl(i, F_GETFD) < 0 ? -1 : new_file(how);

		if (fresh < 0)
			continue;
		dup2(fresh, i);
		close(fresh);
		files[count].number = i;
		fstat(i, &files[count++].is);
	}
	for (; count < FILES; count++)
		files[count] = files[0];
}

static void close_every_other_one(enum closing how)
{
	int count = 0;

	for (int i = 3; i < FOREIGN_MOST && count < FILES; i++) {
		if (fcntl(i, F_GETFD) < 0 || i % 2 == (int)(number / 100 % 2))
			continue;
		close(i);
		files[count].number = new_file(how); /* the lowest free number, so the same */
		fstat(files[count].number, &files[count].is);
		count++;
	}
	for (; count < FILES; count++)
		files[count] = files[0];
}

/* Is each still open, the same, and empty? */
static void check_files(void)
{
	for (int i = 0; i < FILES; i++) {
		const int n = files[i].number;
		struct stat st;
		uint64_t events;

		if (fstat(n, &st) != 0 || st.st_dev != files[i].is.st_dev || st.st_ino != files[i].is.st_ino) {
			fprintf(stderr, "file %d of the program was closed\n", n);
			exit(4);
		}
		if (S_ISREG(st.st_mode) ? st.st_size != 0 : read(n, &events, sizeof(events)) > 0) {
			fprintf(stderr, "file %d of the program was written to\n", n);
			exit(5);
		}
	}
}

static void take_numbers(enum closing how)
{
	switch (how) {
	case COVERS_BY_FILES:
	case COVERS_BY_EVENTFDS:
		cover_all(how);
		break;
	case CLOSES_EVERY_OTHER_ONE:
		close_every_other_one(how);
		break;
	default:
		close_all(how == CLOSES_STDERR_TOO ? STDERR_FILENO : STDERR_FILENO + 1,
			  how == CLOSES_ON_EXEC ? 1U << 2 /* CLOSE_RANGE_CLOEXEC */ : 0);
		open_files(how);
	}
}

static void in_child(void (*what)(void))
{
	const pid_t child = fork();
	int status;

	if (child == 0) {
		what();
		exit(0);
	}
	if (waitpid(child, &status, 0) != child || status != 0) {
		fprintf(stderr, "child: status %#x\n", (unsigned int)status);
		exit(1);
	}
}

static void close_and_check(void)
{
	take_numbers(CLOSES_THEN_FILES);
	rest_us(50000);
	check_files();
}

/* NUMBER % 100: enum closing. Jobs until SIGTERM. */
static void closes(void)
{
	const enum closing how = (enum closing)(number % 100);
	const CUstream stream = new_stream(0);
	bool closed = false;
	uint64_t sink = 1;

	signal(SIGTERM, on_sigterm);
	for (int job = 0; !enough; job++) {
		kernel_on(stream, &sink, 50, 1);
		OK(cuStreamSynchronize(stream));
		rest_us(2000);
		if (job == 50) {
			if (how == CLOSES_IN_CHILDREN)
				in_child(close_and_check);
			else
				take_numbers(how);
			closed = how != CLOSES_IN_CHILDREN;
			printf("closed\n");
			fflush(stdout);
		}
	}
	if (closed)
		check_files();
}

static gpuseg_client *closes_client;

static void disconnect_and_check(void)
{
	take_numbers((enum closing)(number % 100));
	gpuseg_disconnect(closes_client);
	check_files();
}

/*
 * The same with marks, without exec. NUMBER % 100: enum closing; from 1000 on it goes on meanwhile. Disconnects when it
 * is managed again.
 */
static void closes_by_hand(void)
{
	struct gpuseg_connect_attr connect = GPUSEG_CONNECT_ATTR_INIT;
	struct gpuseg_task_attr attr = GPUSEG_TASK_ATTR_INIT;
	gpuseg_task *task;
	int failed = 0;

	connect.flags = number < 1000 ? GPUSEG_CONNECT_FAIL_IF_LOST : 0;
	attr.name = "closes";
	attr.priority = 60;
	if (gpuseg_connect(&connect, &closes_client) < 0 || gpuseg_task_open(closes_client, &attr, &task) < 0)
		exit(1);
	for (int i = 0; i < 5; i++) {
		if (gpuseg_begin(task) < 0 || gpuseg_end(task) < 0)
			exit(1);
		rest_us(2000);
	}
	in_child(disconnect_and_check);
	take_numbers((enum closing)(number % 100));
	/* A begin that rings, or finds its number taken when the daemon does not answer, says what happened. */
	for (int i = 0; i < 10000 && !failed; i++) {
		rest_us(2000);
		if (gpuseg_begin(task) < 0) {
			failed = 1;
			fprintf(stderr, "%s\n", gpuseg_last_message(closes_client));
		} else {
			gpuseg_end(task);
			if (i > 200 && gpuseg_is_managed(closes_client)) /* connected again before the next call */
				break;
		}
	}
	for (int i = 0; i < 10000 && gpuseg_begin(task) < 0; i++)
		rest_us(2000);
	printf("managed %d end %d\n", gpuseg_is_managed(closes_client), gpuseg_end(task));
	check_files();
	if (gpuseg_disconnect(closes_client) < 0)
		exit(1);
	check_files();
}

static void no_work(void)
{
	rest_us(10000);
}

static const struct {
	const char *name;
	void (*run)(void);
} scenarios[] = {
	{"jobs", jobs_with_synchronisation},
	{"periodic", periodic_jobs},
	{"one-job", one_long_job},
	{"pauses", jobs_with_pauses},
	{"no-sync", no_synchronisation},
	{"default-stream", default_stream},
	{"per-thread", per_thread_streams},
	{"threads", threads},
	{"graphs", graphs},
	{"kinds", kinds_of_launches},
	{"found", functions_that_are_found},
	{"passes-by", calls_that_pass_by},
	{"failing", failing_launches},
	{"streams-end", streams_that_end},
	{"contexts", contexts},
	{"forks", forks},
	{"by-hand", marks_by_hand},
	{"by-hand-late", marks_after_a_launch},
	{"exit", ends_with_work_under_way},
	{"forever", launches_for_ever},
	{"while", launches_for_a_while},
	{"training", training},
	{"two-streams", two_streams},
	{"ranks", stream_ranks},
	{"long-waits", long_waits},
	{"without-end", without_end},
	{"far-apart", jobs_far_apart},
	{"long-capture", a_long_capture},
	{"soak", soak},
	{"long-soak", long_soak},
	{"closes", closes},
	{"closes-by-hand", closes_by_hand},
	{"nothing", no_work},
};

int main(int argc, char **argv)
{
	if (argc > 2)
		number = atol(argv[2]);
	if (argc > 1 && strcmp(argv[1], "exec") == 0) {
		OK(cuInit(0));
		OK(cuCtxCreate_v2(&context, 0, 0));
		kernel_on(new_stream(0), &result, 1000, 0);
		execl("/proc/self/exe", argv[0], "jobs", (char *)NULL);
		return 1;
	}
	OK(cuInit(0));
	OK(cuCtxCreate_v2(&context, 0, 0));
	for (size_t i = 0; argc > 1 && i < sizeof(scenarios) / sizeof(scenarios[0]); i++) {
		if (strcmp(argv[1], scenarios[i].name) == 0) {
			scenarios[i].run();
			printf("result %016llx violations %u\n", (unsigned long long)result, standin_violations());
			return standin_violations() ? 1 : 0;
		}
	}
	fprintf(stderr, "usage: inject_app SCENARIO [NUMBER]\n");
	return 2;
}
