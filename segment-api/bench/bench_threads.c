/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_threads - several threads of one process append: one queue with a priority-inheritance mutex, compared with a
 * queue per thread without a mutex.
 *
 * Reports the caller's cost per append, for one thread and for two at once, and what attaching costs in memory and
 * time. The queues have no reader.
 */
#include <pthread.h>

#include "bench.h"
#include "check.h"
#include "cq.h"
#include "fixture.h"

#define N 50000
#define THREADS 2
#define CYCLE_BYTES (FIXTURE_FIRST_DATA + THREADS * N * 68 + 4096)

struct worker {
	struct cq *queue;
	pthread_mutex_t *mutex; /* NULL = none */
	int mutex_spins;
	int count;
	int pause; /* turns of cpu_relax() between two appends */
	pthread_barrier_t *barrier;
	int64_t *ns;
};

static void *append(void *arg)
{
	struct worker *w = arg;
	struct gpuseg_record r = {.kind = GPUSEG_RECORD_BEGIN, .task_id = 1};

	pthread_barrier_wait(w->barrier);
	for (int i = 0; i < w->count; i++) {
		int64_t t0 = now_ns();

		r.time_ns = t0;
		if (w->mutex) {
			int spins = w->mutex_spins;

			while (spins > 0 && pthread_mutex_trylock(w->mutex) != 0) {
				cpu_relax();
				spins--;
			}
			if (spins == 0)
				pthread_mutex_lock(w->mutex);
		}
		r.seq++;
		CHECK_EQ(cq_append(w->queue, &r), 0);
		if (w->mutex)
			pthread_mutex_unlock(w->mutex);
		w->ns[i] = now_ns() - t0;
		/* Real threads do other things between two records. */
		for (int spin = 0; spin < w->pause; spin++)
			cpu_relax();
	}
	return NULL;
}

static void init_mutex(pthread_mutex_t *mutex)
{
	pthread_mutexattr_t attr;

	pthread_mutexattr_init(&attr);
	CHECK_EQ(pthread_mutexattr_setprotocol(&attr, PTHREAD_PRIO_INHERIT), 0);
	CHECK_EQ(pthread_mutex_init(mutex, &attr), 0);
}

static void measure(const char *what, int threads, bool shared, int mutex_spins, int pause)
{
	static int64_t ns[THREADS][N];
	static struct cq queues[THREADS];
	char dirs[THREADS][64], text[CQ_TEXT_BYTES], label[64];
	struct worker workers[THREADS];
	pthread_t ids[THREADS];
	pthread_barrier_t barrier;
	pthread_mutex_t mutex;
	int64_t attach_ns = 0;
	int count = pause > 200 ? N / 10 : N;

	init_mutex(&mutex);
	pthread_barrier_init(&barrier, NULL, (unsigned int)threads);
	for (int i = 0; i < (shared ? 1 : threads); i++) {
		int64_t t0;

		fixture_directory(dirs[i]);
		fixture_queue_create(dirs[i], CYCLE_BYTES);
		t0 = now_ns();
		CHECK_EQ(cq_attach(&queues[i], dirs[i], NULL, text), 0);
		attach_ns += now_ns() - t0;
	}
	for (int i = 0; i < threads; i++) {
		workers[i] = (struct worker){.queue = &queues[shared ? 0 : i],
					     .mutex = shared ? &mutex : NULL,
					     .mutex_spins = mutex_spins,
					     .count = count,
					     .pause = pause,
					     .barrier = &barrier,
					     .ns = ns[i]};
		CHECK_EQ(pthread_create(&ids[i], NULL, append, &workers[i]), 0);
	}
	for (int i = 0; i < threads; i++)
		pthread_join(ids[i], NULL);
	snprintf(label, sizeof(label), "%s, %d thread%s", what, threads, threads > 1 ? "s" : "");
	if (threads == 2)
		memmove(ns[0] + count, ns[1], (size_t)count * sizeof(ns[0][0]));
	bench_report(label, ns[0], (size_t)count * (size_t)threads);
	printf("    attach %.1f ms, %.1f MiB\n", (double)attach_ns / 1e6,
	       (double)(shared ? 1 : threads) * CYCLE_BYTES / (1 << 20));
	for (int i = 0; i < (shared ? 1 : threads); i++) {
		cq_detach(&queues[i]);
		fixture_remove(dirs[i]);
	}
	pthread_barrier_destroy(&barrier);
	pthread_mutex_destroy(&mutex);
}

int main(void)
{
	alarm(60);
	for (int pause = 20; pause <= 2000; pause *= 10) {
		printf("# %d turns of cpu_relax() between appends\n", pause);
		measure("one queue, PI mutex", 1, true, 0, pause);
		measure("one queue, PI mutex, spin first", 1, true, 50, pause);
		measure("queue per thread", 1, false, 0, pause);
		measure("one queue, PI mutex", THREADS, true, 0, pause);
		measure("one queue, PI mutex, spin first", THREADS, true, 50, pause);
		measure("queue per thread", THREADS, false, 0, pause);
	}
	return 0;
}
