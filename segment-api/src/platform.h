/* SPDX-License-Identifier: Apache-2.0 */
/*
 * platform.h - what libgpuseg needs from the kernel and the processor.
 *
 * System calls go through syscall(2) and not through the wrappers of libc, because many wrappers are cancellation
 * points: a thread that is cancelled in an append would leave the queue locked.
 */
#ifndef GPUSEG_PLATFORM_H
#define GPUSEG_PLATFORM_H

#if defined(__has_feature)
#if __has_feature(thread_sanitizer) && !defined(__SANITIZE_THREAD__)
#define __SANITIZE_THREAD__ 1 /* clang's spelling */
#endif
#endif

#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_S 1000000000LL
#define NS_PER_MS 1000000LL
#define NS_PER_US 1000LL

/*
 * Variables of a thread: the fast model, which takes room in a small area that is shared by all libraries loaded later.
 * In a program that did not ask for this library, that room belongs to others.
 */
#ifdef GPUSEG_INJECTED
#define THREAD_MODEL
#else
#define THREAD_MODEL __attribute__((tls_model("initial-exec")))
#endif

#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

static inline void cpu_relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("isb" ::: "memory"); /* `yield` is a no-op on most cores; isb stalls for some tens of cycles */
#else
	__asm__ volatile("" ::: "memory");
#endif
}

static inline void full_fence(void)
{
#if defined(__SANITIZE_THREAD__)
	static uint32_t fence; /* ThreadSanitizer does not model fences; a read-modify-write orders as much */

	__atomic_fetch_add(&fence, 0, __ATOMIC_SEQ_CST);
#else
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
}

static inline int64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * NS_PER_S + ts.tv_nsec;
}

static inline struct timespec timespec_of(int64_t ns)
{
	return (struct timespec){.tv_sec = (time_t)(ns / NS_PER_S), .tv_nsec = (long)(ns % NS_PER_S)};
}

/*
 * Wait while *word == expected, until the absolute CLOCK_MONOTONIC time deadline_ns (INT64_MAX = for ever).
 * Shared between processes, so not FUTEX_PRIVATE. Returns 0 (woken, maybe spuriously), -EAGAIN, -EINTR or -ETIMEDOUT.
 */
static inline int futex_wait(const uint32_t *word, uint32_t expected, int64_t deadline_ns)
{
	struct timespec ts, *timeout = NULL;

	if (deadline_ns != INT64_MAX) {
		ts = timespec_of(deadline_ns > 0 ? deadline_ns : 0);
		timeout = &ts;
	}
	if (syscall(SYS_futex, word, FUTEX_WAIT_BITSET, expected, timeout, NULL, FUTEX_BITSET_MATCH_ANY) == 0)
		return 0;
	return -errno;
}

static inline void futex_wake_all(const uint32_t *word)
{
	syscall(SYS_futex, word, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

static inline void sleep_ns(int64_t ns)
{
	struct timespec ts = timespec_of(ns);

	syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &ts, NULL);
}

/* True if the other end of the socket is closed. Reads nothing, so a request may be under way on the same socket. */
static inline bool socket_hung_up(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLRDHUP};
	struct timespec zero = {0, 0};

	return syscall(SYS_ppoll, &p, 1, &zero, NULL, 0) > 0 &&
	       (p.revents & (POLLHUP | POLLRDHUP | POLLERR | POLLNVAL));
}

#endif /* GPUSEG_PLATFORM_H */
