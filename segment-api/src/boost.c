/* SPDX-License-Identifier: Apache-2.0 */
/*
 * boost.c - window boost: a thread runs at a CPU ceiling from the begin to the end of its windows.
 *
 * The thread raises itself before it writes its BEGIN and lowers itself after its END. It cannot wait for the grant: a
 * thread that is woken by its grant needs its processor to raise itself, and the boost is there to get that processor.
 * The thread raises itself, instead of being raised by the daemon, so that the kernel checks the application's own
 * permission.
 *
 * One thread may have several tasks, and their windows may nest or overlap. It runs at the highest ceiling of the open
 * windows, and returns to its former state after the last one. Another thread may end a window, so a mutex guards the
 * state of a thread. The mutex inherits priority and is held for two system calls. Tasks without a boost do not use it.
 */
#include <pthread.h>
#include <sched.h>

#include "internal.h"

#ifndef SCHED_DEADLINE
#define SCHED_DEADLINE 6
#endif
#define FLAG_RESET_ON_FORK 0x1u

/* struct sched_attr of the kernel in its first size. Not all C libraries have it. */
struct thread_sched {
	uint32_t size;
	uint32_t policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime_ns;
	uint64_t deadline_ns;
	uint64_t period_ns;
};
_Static_assert(sizeof(struct thread_sched) == 48, "SCHED_ATTR_SIZE_VER0");

/* The state of a thread. boost_mutex. */
struct booster {
	struct gpuseg_task *tasks; /* with a window begun on this thread */
	struct thread_sched base;  /* before the first of them */
	uint32_t tid;
	uint32_t applied; /* ceiling that it runs at; 0 = base */
};

static __thread struct booster own THREAD_MODEL;
static pthread_mutex_t boost_mutex;
static pthread_key_t exit_key;
static pthread_once_t boost_once = PTHREAD_ONCE_INIT;
static int boost_ready;	  /* 0 or -errno, after boost_once */
static bool boost_in_use; /* release, once; pairs with the acquire in boost_forked() and boost_unload() */

static int read_sched(uint32_t tid, struct thread_sched *sched)
{
	return syscall(SYS_sched_getattr, tid, sched, sizeof(*sched), 0) < 0 ? -errno : 0;
}

static int write_sched(uint32_t tid, struct thread_sched *sched)
{
	sched->size = sizeof(*sched);
	return syscall(SYS_sched_setattr, tid, sched, 0) < 0 ? -errno : 0;
}

/* Does SCHED_FIFO at `ceiling` precede what the thread has? A boost never lowers. */
static bool is_below(const struct thread_sched *base, uint32_t ceiling)
{
	switch (base->policy) {
	case SCHED_DEADLINE:
		return false;
	case SCHED_FIFO:
		return base->priority < ceiling;
	case SCHED_RR:
		return base->priority <= ceiling;
	default:
		return true;
	}
}

/* Set a thread to the highest ceiling of its open windows. */
static int apply(struct booster *b)
{
	struct thread_sched sched = b->base;
	uint32_t ceiling = 0;
	int ret;

	for (const struct gpuseg_task *task = b->tasks; task; task = task->boost_next)
		if (task->boost > ceiling)
			ceiling = task->boost;
	if (ceiling && !is_below(&b->base, ceiling))
		ceiling = 0;
	if (ceiling == b->applied)
		return 0;
	if (ceiling)
		sched = (struct thread_sched){
			.policy = SCHED_FIFO, .flags = b->base.flags & FLAG_RESET_ON_FORK, .priority = ceiling};
	ret = write_sched(b->tid, &sched);
	if (ret == 0)
		b->applied = ceiling;
	return ret;
}

/* The thread ends: there is nothing left to restore, and the kernel may reuse its number. */
static void thread_exits(void *booster)
{
	struct booster *b = booster;

	pthread_mutex_lock(&boost_mutex);
	while (b->tasks) {
		b->tasks->booster = NULL;
		b->tasks = b->tasks->boost_next;
	}
	pthread_mutex_unlock(&boost_mutex);
}

static int make_mutex(void)
{
	pthread_mutexattr_t attr;
	int ret = pthread_mutexattr_init(&attr);

	if (ret)
		return -ret;
	pthread_mutexattr_setprotocol(&attr, PTHREAD_PRIO_INHERIT);
	ret = pthread_mutex_init(&boost_mutex, &attr);
	pthread_mutexattr_destroy(&attr);
	return -ret;
}

static void boost_prepare(void)
{
	boost_ready = make_mutex();
	if (boost_ready == 0)
		boost_ready = -pthread_key_create(&exit_key, thread_exits);
	if (boost_ready == 0)
		__atomic_store_n(&boost_in_use, true, __ATOMIC_RELEASE);
}

__attribute__((destructor)) static void boost_unload(void)
{
	if (__atomic_load_n(&boost_in_use, __ATOMIC_ACQUIRE))
		pthread_key_delete(exit_key);
}

int boost_probe(uint32_t ceiling)
{
	struct thread_sched base = {0}, raised = {.policy = SCHED_FIFO, .priority = ceiling};
	const uint32_t tid = thread_id();
	int ret;

	pthread_once(&boost_once, boost_prepare);
	if (boost_ready < 0)
		return boost_ready;
	ret = read_sched(tid, &base);
	if (ret < 0 || !is_below(&base, ceiling))
		return ret;
	raised.flags = base.flags & FLAG_RESET_ON_FORK;
	ret = write_sched(tid, &raised);
	return ret < 0 ? ret : write_sched(tid, &base);
}

static void unlink_task(struct booster *b, const struct gpuseg_task *task)
{
	struct gpuseg_task **link = &b->tasks;

	while (*link != task)
		link = &(*link)->boost_next;
	*link = task->boost_next;
}

int boost_raise(struct gpuseg_task *task)
{
	struct booster *b = &own;
	int ret = 0;

	if (!pthread_getspecific(exit_key))
		ret = -pthread_setspecific(exit_key, b);
	if (ret < 0)
		return ret;
	pthread_mutex_lock(&boost_mutex);
	if (!b->tasks) {
		b->tid = thread_id();
		b->applied = 0;
		ret = read_sched(b->tid, &b->base);
	}
	if (ret == 0) {
		task->boost_next = b->tasks;
		b->tasks = task;
		ret = apply(b);
		if (ret < 0)
			unlink_task(b, task);
		else
			task->booster = b;
	}
	pthread_mutex_unlock(&boost_mutex);
	return ret;
}

int boost_drop(struct gpuseg_task *task)
{
	struct booster *b;
	int ret = 0;

	pthread_mutex_lock(&boost_mutex);
	b = task->booster;
	if (b) {
		task->booster = NULL;
		unlink_task(b, task);
		ret = apply(b);
	}
	pthread_mutex_unlock(&boost_mutex);
	return ret;
}

void boost_forked(void)
{
	if (!__atomic_load_n(&boost_in_use, __ATOMIC_ACQUIRE))
		return;
	(void)make_mutex(); /* another thread of the parent may have held it */
	if (own.tasks && own.applied)
		(void)write_sched(0, &own.base); /* lowers the child, which needs no permission */
	own = (struct booster){0};
}
