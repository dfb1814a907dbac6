/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base.h - what the native programs share: clock, durations, messages, options, process identity.
 *
 * No function allocates. Functions that can fail return 0 or -errno. Times are int64 ns of CLOCK_MONOTONIC.
 */
#ifndef GPUSEG_NATIVE_BASE_H
#define GPUSEG_NATIVE_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/un.h>
#include <time.h>

#define NS_PER_US INT64_C(1000)
#define NS_PER_MS INT64_C(1000000)
#define NS_PER_S INT64_C(1000000000)

enum { EXIT_USAGE = 2 };

#define ARRAY_LENGTH(a) (sizeof(a) / sizeof((a)[0]))

/* Name at the start of every line of message(); set once in main(). */
extern const char *program_name;

/* Prints one line to stderr: "<program>: <text>". Ignores errors, for instance a closed stderr. */
__attribute__((format(printf, 1, 2))) void message(const char *format, ...);

/* From now on message() drops a line that the reader of a pipe or a socket is too slow to take. */
void message_never_waits(void);

/* message() and exit(EXIT_USAGE). */
__attribute__((format(printf, 1, 2), noreturn)) void usage_error(const char *format, ...);

static inline int64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * NS_PER_S + ts.tv_nsec;
}

static inline struct timespec to_timespec(int64_t ns)
{
	return (struct timespec){.tv_sec = (time_t)(ns / NS_PER_S), .tv_nsec = (long)(ns % NS_PER_S)};
}

/* Sleeps until the absolute time; returns early only when *stop (may be NULL) became non-zero. */
void sleep_until(int64_t time_ns, const volatile int *stop);

/*
 * Parses "1024us", "1.5ms", "2s", "300ns" into *ns. At most nine decimals, no sign, no blanks.
 * -EINVAL: not a duration, or a bare number; -ERANGE: does not fit or is finer than a nanosecond.
 */
int parse_duration(const char *text, int64_t *ns);

/* parse_duration() for an option. After an error prints name, value and remedy, and exits with EXIT_USAGE. */
int64_t option_duration(const char *option, const char *text, int64_t minimum_ns, int64_t maximum_ns);

/* A decimal integer option within [minimum, maximum]; exits with EXIT_USAGE otherwise. */
int64_t option_integer(const char *option, const char *text, int64_t minimum, int64_t maximum);

struct scheduling {
	bool fifo;
	int priority; /* 1..99 when fifo */
};

/* "fifo:PRIO" or "other"; exits with EXIT_USAGE otherwise. */
struct scheduling option_scheduling(const char *option, const char *text);

/* Applies to the calling thread. 0 or -errno (-EPERM: no CAP_SYS_NICE and no RLIMIT_RTPRIO). */
int apply_scheduling(struct scheduling scheduling);

/* Pins the calling thread to one CPU. 0 or -errno. */
int pin_to_cpu(int cpu);

/*
 * Locks all memory, present and future. -EPERM: there is neither CAP_IPC_LOCK nor an unlimited RLIMIT_MEMLOCK. Nothing
 * is locked then, because with a finite limit every later mapping beyond it would fail.
 */
int lock_memory(void);

/* Field 22 of /proc/<pid>/stat; 0 = no such process (or not visible). */
uint64_t process_start_ticks(pid_t pid);

/*
 * Whether a process waits for a processor, or its main thread has run since the last call. *ran_ns is how long it had
 * run by then, 0 before the first call. False: it waits for something else, or there is no such process.
 */
bool process_advances(pid_t pid, uint64_t *ran_ns);

int pidfd_of(pid_t pid); /* descriptor or -errno */

/* Fills *address for directory/name (name NULL: directory is the whole path). 0 or -ENAMETOOLONG. */
int unix_address(struct sockaddr_un *address, const char *directory, const char *name);

#endif /* GPUSEG_NATIVE_BASE_H */
