/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu.h - the GPU behind the stand-ins of nvgpu and KFD when they serve a self-test: one file that the stand-ins, the
 * simulated runtimes (runtime.c) and the program that runs the kernels (gpu.c) map. Header only, because each stand-in
 * is compiled alone.
 *
 * GPUSEG_GPU_STANDIN: the file. GPUSEG_GPU_FAULTS="WHAT:EFFECT[:ARGUMENT[:AFTER]];..." plants faults in the calls of
 * the driver. WHAT: disable, preempt, enable, slice (set), get-slice, list. The first AFTER calls are right. EFFECT:
 *   refuse:ERRNO  hang (no answer)  die (the caller is killed in it)  slow:MS (effect and answer)
 *   nothing (success without effect; of slice: the driver tells what was asked)  kept (slice: it tells the truth)
 *   late:MS (the effect, after the answer)  undone:MS (the effect ends by itself)  all (every group of the GPU)
 *   twice  counts (as many enables are needed)  drains (a running kernel ends first)
 *   corrupt (what a preempted kernel computes is wrong)
 *   fixed:US (a slice of US, whatever was asked)
 */
#ifndef GPUSEG_STANDIN_GPU_H
#define GPUSEG_STANDIN_GPU_H

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define GPU_ENV "GPUSEG_GPU_STANDIN"
#define GPU_FAULTS_ENV "GPUSEG_GPU_FAULTS"
#define GPU_GROUPS 16
#define GPU_KERNELS 1024
#define GPU_DUE 8
#define GPU_WHATS 6

enum gpu_effect {
	GPU_HONEST,
	GPU_REFUSE,
	GPU_HANG,
	GPU_DIE,
	GPU_SLOW,
	GPU_NOTHING,
	GPU_KEPT,
	GPU_LATE,
	GPU_UNDONE,
	GPU_ALL,
	GPU_TWICE,
	GPU_COUNTS,
	GPU_DRAINS,
	GPU_CORRUPT,
	GPU_FIXED
};

struct gpu_fault {
	enum gpu_effect effect;
	uint64_t argument;
};

struct gpu_kernel {
	int64_t launched_ns;
	uint64_t duration_ns;
	uint64_t result;
};

/* A change that takes effect by itself at a time; 0 = none. */
struct gpu_due {
	int64_t at_ns;
	bool is_slice;
	uint64_t value; /* slice in us; 1 = disable, 0 = enable */
};

/* Kernels that run after one another: a TSG, or the queues of a process. All but `head` is changed under the lock. */
struct gpu_group {
	int32_t pid; /* 0 = free; it stays when the process has ended */
	uint32_t id; /* number of the TSG */
	uint32_t disabled;
	bool told_off; /* KFD: its queues are off as far as the stand-in's table says */
	bool off;      /* a running kernel was switched out, too */
	bool corrupted;
	uint64_t slice_us; /* what the driver tells */
	uint64_t programmed_us;
	uint64_t done_ns; /* of the kernel at tail */
	uint64_t counter; /* address in the process: kernels, then the result of the last */
	uint64_t head;	  /* W: the process (release). R: the GPU */
	uint64_t tail;
	struct gpu_kernel kernels[GPU_KERNELS];
	struct gpu_due due[GPU_DUE];
};

struct gpu {
	/* set by the test */
	uint32_t concurrent; /* groups run beside one another, without time slices */
	/* the state */
	uint32_t strays; /* changes of what is no group: it belongs to no child of the self-test */
	uint32_t switches;
	uint64_t calls[GPU_WHATS]; /* so far, by WHAT */
	struct gpu_group groups[GPU_GROUPS];
};

static inline struct gpu *gpu_map(void)
{
	static struct gpu *mapped;
	const char *path = getenv(GPU_ENV);
	int fd;
	void *at;

	if (mapped || !path)
		return mapped;
	fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC, 0);
	at = fd < 0 ? MAP_FAILED : mmap(NULL, sizeof(*mapped), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (fd >= 0)
		syscall(SYS_close, fd);
	if (at == MAP_FAILED) {
		perror(path);
		abort();
	}
	mapped = at;
	return mapped;
}

/* The lock belongs to the descriptor, so it ends with its process. */
static inline int gpu_lock(void)
{
	const int fd = (int)syscall(SYS_openat, AT_FDCWD, getenv(GPU_ENV), O_RDWR | O_CLOEXEC, 0);

	while (fd >= 0 && flock(fd, LOCK_EX) != 0 && errno == EINTR)
		;
	return fd;
}

static inline void gpu_unlock(int fd)
{
	const int kept = errno;

	syscall(SYS_close, fd);
	errno = kept;
}

static inline int64_t gpu_now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static inline void gpu_sleep(uint64_t ms)
{
	struct timespec wait = {(time_t)(ms / 1000), (long)(ms % 1000 * 1000000)};

	while (nanosleep(&wait, &wait) != 0 && errno == EINTR)
		;
}

/* Exits where a test planted what is no fault. */
static inline enum gpu_effect gpu_effect_of(const char *name)
{
	static const char *const names[] = {"honest", "refuse", "hang",	 "die",	   "slow",   "nothing", "kept", "late",
					    "undone", "all",	"twice", "counts", "drains", "corrupt", "fixed"};

	for (size_t i = 1; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(names[i], name) == 0)
			return (enum gpu_effect)i;
	fprintf(stderr, "%s: \"%s\" is no effect\n", GPU_FAULTS_ENV, name);
	_exit(2);
}

/* What is planted in this call. Refusals, waits and the caller's end are done here: -1 with errno, else 0. */
static inline int gpu_fault(const char *what, struct gpu_fault *fault)
{
	static const char *const whats[GPU_WHATS] = {"disable", "preempt", "enable", "slice", "get-slice", "list"};
	const char *planted = getenv(GPU_FAULTS_ENV);
	struct gpu *gpu = gpu_map();
	uint64_t seen = 0;
	char text[256], *save = NULL;

	*fault = (struct gpu_fault){GPU_HONEST, 0};
	if (!gpu || !planted)
		return 0;
	for (unsigned i = 0; i < GPU_WHATS; i++)
		if (strcmp(whats[i], what) == 0)
			seen = __atomic_fetch_add(&gpu->calls[i], 1, __ATOMIC_RELAXED);
	snprintf(text, sizeof(text), "%s", planted);
	for (char *one = strtok_r(text, ";", &save); one; one = strtok_r(NULL, ";", &save)) {
		char name[16], effect[16], argument[32] = "0", after[32] = "0";

		if (sscanf(one, "%15[^:]:%15[^:]:%31[^:]:%31s", name, effect, argument, after) < 2 ||
		    strcmp(name, what) != 0 || seen < strtoull(after, NULL, 0))
			continue;
		*fault = (struct gpu_fault){gpu_effect_of(effect), strtoull(argument, NULL, 0)};
	}
	if (fault->effect == GPU_REFUSE) {
		errno = (int)fault->argument;
		return -1;
	}
	if (fault->effect == GPU_DIE)
		kill(getpid(), SIGKILL);
	while (fault->effect == GPU_HANG)
		pause();
	if (fault->effect == GPU_SLOW)
		gpu_sleep(fault->argument);
	return 0;
}

static inline struct gpu_group *gpu_find(struct gpu *gpu, int pid, uint32_t id)
{
	for (unsigned i = 0; i < GPU_GROUPS; i++)
		if (gpu->groups[i].pid == pid && gpu->groups[i].id == id)
			return &gpu->groups[i];
	return NULL;
}

static inline void gpu_later(struct gpu_group *g, uint64_t ms, bool is_slice, uint64_t value)
{
	for (unsigned i = 0; i < GPU_DUE; i++)
		if (g->due[i].at_ns == 0) {
			g->due[i] = (struct gpu_due){gpu_now_ns() + (int64_t)ms * 1000000, is_slice, value};
			return;
		}
	abort();
}

/* A disable that leaves a running kernel alone has `off` false. Disables are not counted, but for a fault. */
static inline void gpu_change(struct gpu_group *g, bool disable, bool off, enum gpu_effect effect)
{
	if (disable) {
		if (effect == GPU_TWICE)
			g->disabled = 2;
		else if (effect == GPU_COUNTS || g->disabled == 0)
			g->disabled++;
		g->off = g->off || off;
	} else {
		g->disabled -= g->disabled > 0;
		g->off = g->off && g->disabled > 0;
		g->corrupted = g->corrupted || (effect == GPU_CORRUPT && g->done_ns > 0);
	}
}

/* The pid is of the group, the caller any process. */
static inline void gpu_switch(int pid, uint32_t id, bool disable, bool off, struct gpu_fault fault)
{
	struct gpu *gpu = gpu_map();
	const int lock = gpu ? gpu_lock() : -1;
	struct gpu_group *g = gpu ? gpu_find(gpu, pid, id) : NULL;

	if (!gpu)
		return;
	gpu->switches++;
	gpu->strays += !g;
	off = off && fault.effect != GPU_DRAINS;
	for (unsigned i = 0; fault.effect == GPU_ALL && i < GPU_GROUPS && gpu->groups[i].pid; i++)
		gpu_change(&gpu->groups[i], disable, off, fault.effect);
	if (g && fault.effect == GPU_LATE)
		gpu_later(g, fault.argument, false, disable);
	else if (g && fault.effect != GPU_NOTHING)
		gpu_change(g, disable, off, fault.effect);
	if (g && fault.effect == GPU_UNDONE)
		gpu_later(g, fault.argument, false, !disable);
	gpu_unlock(lock);
}

/* A running kernel of what is disabled is switched out. */
static inline void gpu_preempt(int pid, uint32_t id, struct gpu_fault fault)
{
	struct gpu *gpu = gpu_map();
	const int lock = gpu ? gpu_lock() : -1;
	struct gpu_group *g = gpu ? gpu_find(gpu, pid, id) : NULL;

	if (!gpu)
		return;
	if (g && fault.effect != GPU_NOTHING)
		g->off = g->disabled > 0;
	gpu_unlock(lock);
}

static inline void gpu_set_slice(int pid, uint32_t id, uint64_t us, struct gpu_fault fault)
{
	struct gpu *gpu = gpu_map();
	const int lock = gpu ? gpu_lock() : -1;
	struct gpu_group *g = gpu ? gpu_find(gpu, pid, id) : NULL;

	if (!gpu)
		return;
	gpu->strays += !g;
	for (unsigned i = 0; fault.effect == GPU_ALL && i < GPU_GROUPS && gpu->groups[i].pid; i++)
		gpu->groups[i].slice_us = gpu->groups[i].programmed_us = us;
	if (g && fault.effect == GPU_UNDONE)
		gpu_later(g, fault.argument, true, g->programmed_us);
	if (g && fault.effect == GPU_LATE)
		gpu_later(g, fault.argument, true, us);
	if (g && fault.effect != GPU_KEPT)
		g->slice_us = us;
	if (g && fault.effect != GPU_KEPT && fault.effect != GPU_NOTHING && fault.effect != GPU_LATE)
		g->programmed_us = fault.effect == GPU_FIXED ? fault.argument : us;
	gpu_unlock(lock);
}

/* 0: no group. */
static inline uint64_t gpu_get_slice(int pid, uint32_t id)
{
	struct gpu *gpu = gpu_map();
	const struct gpu_group *g = gpu ? gpu_find(gpu, pid, id) : NULL;

	return g ? g->slice_us : 0;
}

#endif
