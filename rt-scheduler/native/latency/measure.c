/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "latency/measure.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "bench/pace.h"
#include "common/base.h"

#define LIVE_NS (250 * NS_PER_MS)
#define EXPECTED_LOOK_NS (20 * NS_PER_MS)
#define WARM_MAX_NS NS_PER_S
#define UNSEEN_MAX_NS (50 * NS_PER_US) /* between two looks at a GPU, each of about 1 us: else the CPU was away */

enum { WARM_PART = 5 };

volatile int stopping;

/* ---- the line that follows ---- */

struct live {
	const struct measurement *m;
	pthread_t thread;
	uint32_t end; /* atomic */
};

/* Whether there was something to show. */
static bool show(const struct measurement *m)
{
	const struct times *t = &m->response;
	const uint64_t count = __atomic_load_n(&t->histogram.count, __ATOMIC_RELAXED);
	const int64_t sum_ns = __atomic_load_n(&t->sum_ns, __ATOMIC_RELAXED);
	struct winsize window = {0};
	char line[256], min[24], last[24], mean[24], max[24], thousandth[24] = "-";
	int most = sizeof(line) - 1;

	if (!count)
		return false;
	if (ioctl(STDERR_FILENO, TIOCGWINSZ, &window) == 0 && window.ws_col > 1 && window.ws_col < most)
		most = window.ws_col - 1; /* a longer one would not be overwritten */
	if (count >= 1000)		  /* of fewer it is only the longest once more */
		figure(histogram_at(&t->histogram, 999000), thousandth);
	snprintf(line, sizeof(line), "%s: %" PRIu64 "  min %s  act %s  avg %s  max %s  p99.9 %s us", m->key, count,
		 figure(__atomic_load_n(&t->min_ns, __ATOMIC_RELAXED), min),
		 figure(__atomic_load_n(&t->last_ns, __ATOMIC_RELAXED), last), figure(sum_ns / (int64_t)count, mean),
		 figure(__atomic_load_n(&t->histogram.max_ns, __ATOMIC_RELAXED), max), thousandth);
	fprintf(stderr, "\r%.*s\033[K", most, line);
	fflush(stderr);
	return true;
}

static void *follow(void *argument)
{
	struct live *live = argument;

	while (!__atomic_load_n(&live->end, __ATOMIC_ACQUIRE)) {
		show(live->m);
		sleep_until(now_ns() + LIVE_NS, NULL);
	}
	if (show(live->m))
		fputc('\n', stderr);
	return NULL;
}

/* The signals that end the run are for the thread that measures. */
static int start_thread(pthread_t *thread, void *(*run)(void *), void *argument)
{
	sigset_t all, before;
	int rc;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = pthread_create(thread, NULL, run, argument);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (rc != 0)
		message("no thread: %s", strerror(rc));
	return rc == 0 ? 0 : -1;
}

/* ---- touches: as gpuseg_cuda.h does for programs with the CUDA runtime ---- */

struct toucher {
	struct gpu *gpu;
	gpuseg_task *task;
	CUstream stream;
	pthread_t thread;
	bool runs;
	uint32_t begun, end; /* atomic */
	uint64_t touches;    /* R: after the thread has ended */
};

static void *touch(void *argument)
{
	struct toucher *t = argument;
	struct cuda *cuda = &t->gpu->cuda;
	uint32_t seen = 0;

	if (cuda->cuCtxSetCurrent(t->gpu->context) != CUDA_SUCCESS)
		return NULL;
	while (!__atomic_load_n(&t->end, __ATOMIC_ACQUIRE)) {
		const int rc = gpuseg_expected(t->task, &seen, EXPECTED_LOOK_NS);

		if (rc < 0 && rc != -ETIMEDOUT)
			break;
		if (rc < 0 || __atomic_load_n(&t->begun, __ATOMIC_ACQUIRE) ||
		    cuda->cuStreamQuery(t->stream) != CUDA_SUCCESS)
			continue;
		if (gpu_launch_apart(t->gpu, t->stream) != 0)
			break;
		t->touches++;
	}
	return NULL;
}

static int start_touching(struct toucher *t)
{
	if (gpu_check(t->gpu, t->gpu->cuda.cuStreamCreate(&t->stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate") != 0)
		return -1;
	t->runs = start_thread(&t->thread, touch, t) == 0;
	return t->runs ? 0 : -1;
}

static void stop_touching(struct toucher *t)
{
	__atomic_store_n(&t->end, 1, __ATOMIC_RELEASE);
	if (t->runs)
		pthread_join(t->thread, NULL);
}

/* ---- the work ---- */

void times_take(struct times *t, int64_t ns)
{
	if (t->histogram.count == 0 || ns < t->min_ns)
		__atomic_store_n(&t->min_ns, ns, __ATOMIC_RELAXED);
	__atomic_store_n(&t->last_ns, ns, __ATOMIC_RELAXED);
	__atomic_store_n(&t->sum_ns, t->sum_ns + ns, __ATOMIC_RELAXED);
	histogram_add(&t->histogram, ns);
}

void times_merge(struct times *into, const struct times *from)
{
	if (from->histogram.count && (into->histogram.count == 0 || from->min_ns < into->min_ns))
		into->min_ns = from->min_ns;
	into->sum_ns += from->sum_ns;
	histogram_merge(&into->histogram, &from->histogram);
}

long cpu_takings(void)
{
	struct rusage usage = {0};

	getrusage(RUSAGE_THREAD, &usage);
	return usage.ru_nivcsw;
}

/* 1: done, 0: stopped before it was, -1: failed. unseen_ns: the longest time between two looks at the GPU. */
static int run_job(struct gpu *gpu, const struct work *work, struct toucher *t, gpuseg_client *client, int64_t due_ns,
		   int64_t *done_ns, int64_t *unseen_ns)
{
	int64_t looked_ns;
	int busy, rc = 0;

	*unseen_ns = 0;

	if (t->task) {
		gpuseg_job_release(t->task, due_ns);
		__atomic_store_n(&t->begun, 1, __ATOMIC_RELEASE);
		rc = gpuseg_begin(t->task);
		if (rc < 0) {
			message("begin: %s", gpuseg_last_message(client));
			return -1;
		}
	}
	busy = gpu_launch(gpu, work);
	looked_ns = now_ns();
	while (busy == 0) {
		busy = gpu_busy(gpu);
		*done_ns = now_ns();
		*unseen_ns = *done_ns - looked_ns > *unseen_ns ? *done_ns - looked_ns : *unseen_ns;
		looked_ns = *done_ns;
		if (busy != 1 || stopping)
			break;
		relax();
		busy = 0;
	}
	if (t->task) {
		rc = gpuseg_end(t->task);
		__atomic_store_n(&t->begun, 0, __ATOMIC_RELEASE);
		gpuseg_job_end(t->task);
		if (rc < 0) {
			message("end: %s", gpuseg_last_message(client));
			return -1;
		}
	}
	if (busy < 0)
		return -1;
	if (busy == 1)
		return 0;
	if (gpu_in_flight(gpu) != 0) {
		message("kernel %" PRIu32 " is done and has not written its number, but %" PRIu32, gpu->launched,
			*gpu->word);
		return -1;
	}
	return 1;
}

/* m NULL: for warmth, nothing is kept. */
static int run_jobs(struct gpu *gpu, const struct plan *plan, struct toucher *t, gpuseg_client *client,
		    int64_t duration_ns, struct measurement *m)
{
	const int64_t began_ns = now_ns();
	int64_t due_ns = began_ns + plan->period_ns, done_ns = began_ns, unseen_ns;
	int rc = 1;

	while (!stopping && due_ns - began_ns <= duration_ns && !(m && m->broke)) {
		sleep_until(due_ns, &stopping);
		const long takings = plan->space ? cpu_takings() : 0;
		const int64_t awake_ns = now_ns();

		if (stopping)
			break;
		rc = run_job(gpu, &plan->work, t, client, due_ns, &done_ns, &unseen_ns);
		if (rc != 1)
			break;
		if (m) {
			times_take(&m->late, awake_ns - due_ns);
			times_take(&m->response, done_ns - due_ns);
			if (plan->space && cpu_takings() == takings && unseen_ns <= UNSEEN_MAX_NS)
				times_take(&m->execution, done_ns - awake_ns);
			else if (plan->space)
				m->cpu_taken++;
			if (plan->break_ns != BREAK_NEVER && done_ns - due_ns > plan->break_ns) {
				m->broke = true;
				m->break_after_ns = done_ns - began_ns;
				m->break_at_ns = done_ns;
			}
		}
		for (due_ns += plan->period_ns; due_ns < done_ns; due_ns += plan->period_ns)
			if (m)
				m->skipped++;
	}
	if (m)
		m->took_ns = now_ns() - began_ns;
	return rc < 0 ? -1 : 0;
}

int measure(struct gpu *gpu, const struct plan *plan, gpuseg_client *client, gpuseg_task *task, struct measurement *m)
{
	const int64_t warm_ns = plan->duration_ns / WARM_PART;
	struct toucher toucher = {.gpu = gpu, .task = task};
	struct live live = {.m = m};
	int rc = 0;

	prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
	if (task)
		rc = start_touching(&toucher);
	if (rc == 0)
		rc = run_jobs(gpu, plan, &toucher, client, warm_ns < WARM_MAX_NS ? warm_ns : WARM_MAX_NS, NULL);
	if (rc == 0 && plan->live)
		rc = start_thread(&live.thread, follow, &live);
	if (rc == 0) {
		rc = run_jobs(gpu, plan, &toucher, client, plan->duration_ns, m);
		if (plan->live) {
			__atomic_store_n(&live.end, 1, __ATOMIC_RELEASE);
			pthread_join(live.thread, NULL);
		}
	}
	stop_touching(&toucher);
	m->touches = toucher.touches;
	return rc;
}
