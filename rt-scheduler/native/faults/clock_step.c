/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libgpuseg-clockstep.so - steps the wall clock of one process while it runs; the clock of the machine is unchanged.
 *
 *   LD_PRELOAD=libgpuseg-clockstep.so GPUSEG_CLOCK_STEP=FILE program
 *
 * FILE is mapped at start. It holds one int64 in native byte order: nanoseconds that are added to CLOCK_REALTIME. Other
 * clocks, for instance CLOCK_MONOTONIC, are passed on. Only calls through libc are changed.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_S INT64_C(1000000000)
#define NS_PER_US 1000

static const int64_t *step; /* NULL: no step. W: the test that steps the clock (relaxed) */
static int (*next_clock_gettime)(clockid_t, struct timespec *);

__attribute__((constructor)) static void start(void)
{
	const char *path = getenv("GPUSEG_CLOCK_STEP");
	void *page = MAP_FAILED;
	int fd;

	/* ISO C has no conversion from void * to a function pointer; POSIX has. */
	*(void **)&next_clock_gettime = dlsym(RTLD_NEXT, "clock_gettime");
	if (!path)
		return;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	page = mmap(NULL, sizeof(*step), PROT_READ, MAP_SHARED, fd, 0);
	close(fd);
	if (page != MAP_FAILED)
		step = page;
}

static bool is_wall_clock(clockid_t clock)
{
	return clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE || clock == CLOCK_TAI;
}

int clock_gettime(clockid_t clock, struct timespec *ts)
{
	int64_t ns;
	int rc;

	if (!next_clock_gettime) /* another constructor ran before ours */
		start();
	rc = next_clock_gettime(clock, ts);
	if (rc != 0 || !step || !is_wall_clock(clock))
		return rc;
	ns = (int64_t)ts->tv_sec * NS_PER_S + ts->tv_nsec + __atomic_load_n(step, __ATOMIC_RELAXED);
	ts->tv_sec = (time_t)(ns / NS_PER_S);
	ts->tv_nsec = (long)(ns % NS_PER_S);
	return 0;
}

int gettimeofday(struct timeval *restrict tv, void *restrict zone)
{
	struct timespec ts;
	const int rc = clock_gettime(CLOCK_REALTIME, &ts);

	(void)zone;
	if (rc == 0)
		*tv = (struct timeval){.tv_sec = ts.tv_sec, .tv_usec = ts.tv_nsec / NS_PER_US};
	return rc;
}

time_t time(time_t *out)
{
	struct timespec ts = {0};

	clock_gettime(CLOCK_REALTIME, &ts);
	if (out)
		*out = ts.tv_sec;
	return ts.tv_sec;
}
