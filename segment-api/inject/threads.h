/* SPDX-License-Identifier: Apache-2.0 */
/* threads.h - threads of the library. */
#ifndef GPUSEG_INJECT_THREADS_H
#define GPUSEG_INJECT_THREADS_H

#include <stdbool.h>
#include <stdint.h>

/* The library's own thread. Fields belong to threads.c and the functions below. */
struct own_thread {
	bool runs;
	uint32_t word; /* futex: changes when there is something to do */
	uint32_t sleeps;
	bool wake_due;
	uint32_t stop; /* atomic, futex */
	uint32_t stopped;
};

extern struct own_thread own_thread;

/* What the library's thread does. Before the first thread_start(). */
void thread_does(void *(*run)(void *));
/* Start the library's thread, once. False: it can't be started, and a line has said so. Lock held. */
bool thread_start(void);
/* Wake it if it sleeps. Lock held. */
void thread_wake(void);
/* Sleep unless there was something to do since `seen`. Lock held, released meanwhile. That thread only. */
void thread_rest(uint32_t seen, int64_t until_ns);
/* It has ended. */
void thread_ended(void);
/* Have it and those of touch.c end; waits for it, at most until then. False: it was never started. */
bool thread_stop(int64_t until_ns);
/* In a forked child: it does not run there. */
void thread_forked(void);
/* Start a thread that the program does not notice. 0 or an errno. */
int thread_of_our_own(void *(*run)(void *), void *arg);

static inline uint32_t thread_seen(void)
{
	return __atomic_load_n(&own_thread.word, __ATOMIC_ACQUIRE);
}

/* It is to end, and those of touch.c. */
static inline bool thread_is_to_stop(void)
{
	return __atomic_load_n(&own_thread.stop, __ATOMIC_ACQUIRE);
}

/* Futex: 0 until then. */
static inline const uint32_t *thread_stop_word(void)
{
	return &own_thread.stop;
}

/* Wake it at the exit of the launch, when the GPU has its work. Lock held. */
static inline void thread_wake_later(void)
{
	own_thread.wake_due = true;
}

static inline void thread_wake_if_due(void)
{
	if (own_thread.wake_due) {
		own_thread.wake_due = false;
		thread_wake();
	}
}

#endif /* GPUSEG_INJECT_THREADS_H */
