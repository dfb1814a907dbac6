/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libgpuseg-amd-fake.so - preloaded, or loaded by JNA in place of libc, it simulates /dev/kfd and /dev/gpuseg-kfd for
 * tests, with the rules of their sources and headers: holds that belong to an open file, a watchdog. All other calls go
 * to the kernel. See amd_state.h. With GPUSEG_GPU_STANDIN it changes the groups of that GPU, too (one for each
 * process), and has the faults that are planted there (selftest/standin/gpu.h).
 */
#define _GNU_SOURCE
#include "amd_state.h"
#include "gpuseg_amd.h"
#include "gpuseg_kfd.h"
#include "selftest/standin/gpu.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
#define NS_PER_MS 1000000LL
#define CREATE_QUEUE_ADDRESS 0
#define CREATE_QUEUE_SIZE 32
#define CREATE_QUEUE_GPU 36
#define CREATE_QUEUE_TYPE 40
#define CREATE_QUEUE_PERCENTAGE 44
#define CREATE_QUEUE_PRIORITY 48
#define CREATE_QUEUE_ID 52
#define CREATE_QUEUE_BYTES 88
#define RING_MIN 1024u
#define PERCENT_MASK 0xffu
#define PRIORITY_MAX 15u
#define MINOR_XCC 16 /* since then the second byte of a percentage names an XCC */

struct version {
	uint32_t major, minor;
};

struct update {
	uint64_t address;
	uint32_t id;
	uint32_t size;
	uint32_t percentage;
	uint32_t priority;
};

struct event {
	uint64_t page_offset;
	uint32_t trigger, type, auto_reset, node, id, slot;
};

struct aperture {
	uint64_t lds_base, lds_limit, scratch_base, scratch_limit, gpuvm_base, gpuvm_limit;
	uint32_t gpu_id, pad;
};

struct apertures {
	uint64_t array;
	uint32_t count, pad;
};

struct memory {
	uint64_t address, size, handle, mmap_offset;
	uint32_t gpu_id, flags;
};

struct mapping {
	uint64_t handle, gpus;
	uint32_t n_gpus, n_done;
};

static struct amd_table *table(void)
{
	static struct amd_table *mapped;
	static char mapped_path[256];
	const char *directory = getenv(AMD_STATE_ENV);
	char path[256];
	void *at;
	int fd;

	if (!directory || snprintf(path, sizeof(path), "%s/table", directory) >= (int)sizeof(path))
		return NULL;
	if (mapped && strcmp(path, mapped_path) == 0)
		return mapped;
	fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC, 0);
	if (fd < 0)
		return NULL;
	at = mmap(NULL, AMD_DELAYS_AT + sizeof(struct amd_delays), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	syscall(SYS_close, fd);
	if (at == MAP_FAILED)
		return NULL;
	mapped = at; /* the mapping of the previous test stays: a thread of it may still use it */
	strcpy(mapped_path, path);
	return mapped;
}

static struct amd_delays *delays_of(struct amd_table *t)
{
	return (struct amd_delays *)((unsigned char *)t + AMD_DELAYS_AT);
}

/* The lock belongs to the descriptor, so it ends with its process. */
static int lock(void)
{
	char path[256];
	int fd;

	snprintf(path, sizeof(path), "%s/table", getenv(AMD_STATE_ENV));
	fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC, 0);
	if (fd >= 0)
		while (flock(fd, LOCK_EX) != 0 && errno == EINTR)
			;
	return fd;
}

static void unlock(int fd)
{
	const int kept = errno;

	if (fd >= 0)
		syscall(SYS_close, fd);
	errno = kept;
}

static int refuse(int error)
{
	errno = error;
	return -1;
}

static int64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static ssize_t slurp(const char *path, char *text, size_t size)
{
	const int fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
	ssize_t n = fd < 0 ? -1 : read(fd, text, size - 1);

	if (fd >= 0)
		syscall(SYS_close, fd);
	text[n > 0 ? n : 0] = 0;
	return n;
}

/* Start time of a process; 0: it does not exist, or is a zombie. */
static uint64_t ticks_of(int pid)
{
	char path[48], text[1024];
	const char *after;
	unsigned long long start = 0;
	char state = 0;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	if (slurp(path, text, sizeof(text)) <= 0)
		return 0;
	after = strrchr(text, ')');
	if (!after ||
	    sscanf(after + 1, " %c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %llu",
		   &state, &start) != 2)
		return 0;
	return state == 'Z' || state == 'X' ? 0 : start;
}

/* What the kernel does without being asked. */
static void settle(struct amd_table *t)
{
	for (unsigned i = 0; i < AMD_FILES; i++) {
		struct amd_file *f = &t->files[i];
		bool drop = false, any = false;

		for (unsigned h = 0; h < AMD_HOLDS; h++)
			any |= t->all_holds[h].file == i + 1;
		if (f->owner != 0 && ticks_of(f->owner) != f->owner_ticks) {
			f->owner = 0;
			drop = true;
		} else if (f->owner != 0 && any && now_ns() - f->armed_ns > f->period_ms * NS_PER_MS) {
			f->lapses++;
			f->stale = 1;
			drop = true;
		}
		for (unsigned h = 0; h < AMD_HOLDS && (drop || f->owner == 0); h++)
			if (t->all_holds[h].file == i + 1)
				t->all_holds[h].file = 0;
	}
	for (unsigned i = 0; i < AMD_PROCESSES; i++) {
		struct amd_process *p = &t->processes[i];

		if (p->pid != 0 && ticks_of(p->pid) != p->start_ticks)
			memset(p, 0, sizeof(*p));
	}
}

static struct amd_process *process_of(struct amd_table *t, int pid)
{
	for (unsigned i = 0; i < AMD_PROCESSES; i++)
		if (t->processes[i].pid == pid)
			return &t->processes[i];
	return NULL;
}

static bool is_held(const struct amd_table *t, const struct amd_process *p, const struct amd_queue *q)
{
	for (unsigned h = 0; h < AMD_HOLDS; h++) {
		const struct amd_hold *hold = &t->all_holds[h];

		if (hold->file != 0 && hold->pid == p->pid && hold->start_ticks == p->start_ticks &&
		    (hold->gpu_id == GPUSEG_KFD_ALL_GPUS || hold->gpu_id == q->gpu_id) &&
		    !(q->sdma && (hold->flags & GPUSEG_KFD_COMPUTE_ONLY)))
			return true;
	}
	return false;
}

/* The driver's condition for a queue that may run, as far as it depends on the queue. */
static bool is_active(const struct amd_queue *q)
{
	return q->size > 0 && q->address != 0 && (q->percentage & PERCENT_MASK) > 0;
}

static bool is_off(const struct amd_table *t, const struct amd_process *p, const struct amd_queue *q)
{
	return !is_active(q) || is_held(t, p, q);
}

/* In mode HWS a change takes all queues of the GPU off the hardware, also those that it does not name. */
static bool is_remapping(struct amd_table *t)
{
	const struct amd_delays *d = delays_of(t);

	return d->changer != 0 && ticks_of(d->changer) == d->changer_ticks;
}

/* Tells the GPU of a self-test which processes are off now, under the lock. */
static void tell_gpu(const struct amd_table *t, struct gpu_fault fault)
{
	struct gpu *gpu = gpu_map();

	for (unsigned i = 0; gpu && i < AMD_PROCESSES; i++) {
		const struct amd_process *p = &t->processes[i];
		struct gpu_group *g = p->pid ? gpu_find(gpu, p->pid, 0) : NULL;
		bool off = false;

		for (unsigned q = 0; q < AMD_QUEUES; q++)
			off |= p->queues[q].used && !p->queues[q].sdma && is_off(t, p, &p->queues[q]);
		if (p->pid == 0 || (g ? g->told_off == off : !off))
			continue;
		if (g)
			g->told_off = off;
		gpu_switch(p->pid, 0, off, true, fault);
	}
}

EXPORT int gpuseg_amd_off(void)
{
	struct amd_table *t = table();
	const int fd = t ? lock() : -1;
	const struct amd_process *p;
	int off = 0;

	if (!t)
		return 0;
	settle(t);
	p = process_of(t, getpid());
	for (unsigned i = 0; p && i < AMD_QUEUES; i++)
		off |= p->queues[i].used && !p->queues[i].sdma && (is_remapping(t) || is_off(t, p, &p->queues[i]));
	tell_gpu(t, (struct gpu_fault){GPU_HONEST, 0});
	unlock(fd);
	return off;
}

/* ------------------------------------------------------------------------------------------------------- changes */

struct picture {
	uint32_t off[AMD_PROCESSES]; /* one bit per queue */
};
_Static_assert(AMD_QUEUES <= 32, "a bit a queue");

static struct picture picture_of(const struct amd_table *t)
{
	struct picture picture = {0};

	for (unsigned i = 0; i < AMD_PROCESSES; i++)
		for (unsigned q = 0; q < AMD_QUEUES; q++)
			if (t->processes[i].queues[q].used && is_off(t, &t->processes[i], &t->processes[i].queues[q]))
				picture.off[i] |= 1u << q;
	return picture;
}

/* Waits for as long as the changes since @before should take. Returns the lock, taken again. */
static int take_time(struct amd_table *t, int held, const struct picture *before, int64_t *took_ns)
{
	const struct picture now = picture_of(t);
	struct amd_delays *d = delays_of(t);
	const int64_t began_ns = now_ns();
	uint64_t unloads = 0, loads = 0;
	struct timespec wait;
	int64_t wait_ns;

	for (unsigned i = 0; i < AMD_PROCESSES; i++) {
		unloads += (unsigned)__builtin_popcount(now.off[i] & ~before->off[i]);
		loads += (unsigned)__builtin_popcount(before->off[i] & ~now.off[i]);
	}
	if (d->mode == 0 || unloads + loads == 0)
		return held;
	wait_ns = (int64_t)d->change_us * 1000 * (d->mode == GPUSEG_KFD_HWS ? 1 : (int64_t)(unloads + loads));
	if (d->mode == GPUSEG_KFD_HWS) {
		d->remaps++;
		d->changer = getpid();
		d->changer_ticks = ticks_of(getpid());
	}
	unlock(held);
	wait = (struct timespec){wait_ns / 1000000000, wait_ns % 1000000000};
	while (nanosleep(&wait, &wait) != 0 && errno == EINTR)
		;
	held = lock();
	if (d->changer == getpid())
		d->changer = 0;
	d->unloads += unloads;
	d->loads += loads;
	*took_ns = now_ns() - began_ns;
	d->last_ns = (uint64_t)*took_ns;
	if (d->last_ns > d->max_ns)
		d->max_ns = d->last_ns;
	return held;
}

/* ---------------------------------------------------------------------------------------------------- descriptors */

static int named(const char *name, int32_t value)
{
	const int fd = memfd_create(name, MFD_CLOEXEC);

	if (fd >= 0 && write(fd, &value, sizeof(value)) != (ssize_t)sizeof(value)) {
		syscall(SYS_close, fd);
		return -1;
	}
	return fd;
}

/* The value stored in a descriptor of the stand-in at its creation; -1: it is not of this kind. */
static int32_t value_of(int fd, const char *name)
{
	char path[64], target[64];
	int32_t value;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	n = syscall(SYS_readlinkat, AT_FDCWD, path, target, sizeof(target) - 1);
	if (n <= 0)
		return -1;
	target[n] = 0;
	if (strncmp(target, "/memfd:", 7) != 0 || strncmp(target + 7, name, strlen(name)) != 0)
		return -1;
	return pread(fd, &value, sizeof(value), 0) == (ssize_t)sizeof(value) ? value : -1;
}

static int open_kfd(struct amd_table *t)
{
	const int held = lock();
	struct amd_process *p;

	settle(t);
	p = process_of(t, getpid());
	if (!p) {
		p = process_of(t, 0);
		if (!p) {
			unlock(held);
			return refuse(ENOSPC);
		}
		p->pid = getpid();
		p->start_ticks = ticks_of(getpid());
	}
	unlock(held);
	return named(AMD_KFD_NAME, getpid());
}

static int open_hold(struct amd_table *t)
{
	const int held = lock();
	int result = -1, i = 0;

	settle(t);
	while (i < AMD_FILES && t->files[i].owner != 0)
		i++;
	if (t->hold_abi == 0) {
		errno = ENOENT;
	} else if (t->hold_denied) {
		errno = EPERM;
	} else if (i == AMD_FILES) {
		errno = EMFILE;
	} else {
		t->files[i] = (struct amd_file){.owner = getpid(),
						.owner_ticks = ticks_of(getpid()),
						.period_ms = GPUSEG_KFD_WATCHDOG_DEFAULT_MS,
						.armed_ns = now_ns()};
		result = named(AMD_HOLD_NAME, i);
	}
	unlock(held);
	return result;
}

EXPORT int open(const char *path, int flags, ...)
{
	va_list list;
	mode_t mode = 0;

	va_start(list, flags);
	if (flags & (O_CREAT | O_TMPFILE))
		mode = (mode_t)va_arg(list, int);
	va_end(list);
	if (strcmp(path, GPUSEG_AMD_KFD_DEVICE) == 0)
		return table() && table()->minor ? open_kfd(table()) : refuse(ENOENT);
	if (strcmp(path, GPUSEG_AMD_HOLD_DEVICE) == 0)
		return table() ? open_hold(table()) : refuse(ENOENT);
	return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

/* The last close of a file ends its holds; duplicates in other processes are short-lived and do not count. */
EXPORT int close(int fd)
{
	struct amd_table *t = table();
	const int32_t index = t ? value_of(fd, AMD_HOLD_NAME) : -1;

	if (index >= 0 && index < AMD_FILES) {
		const int held = lock();

		if (t->files[index].owner == getpid())
			t->files[index].owner = 0;
		settle(t);
		tell_gpu(t, (struct gpu_fault){GPU_HONEST, 0});
		unlock(held);
	}
	return (int)syscall(SYS_close, fd);
}

EXPORT ssize_t readlink(const char *path, char *buffer, size_t size)
{
	static const char memfd[] = "/memfd:" AMD_KFD_NAME;
	ssize_t n = syscall(SYS_readlinkat, AT_FDCWD, path, buffer, size);

	if (n >= (ssize_t)sizeof(memfd) - 1 && memcmp(buffer, memfd, sizeof(memfd) - 1) == 0) {
		n = (ssize_t)(size < strlen(GPUSEG_AMD_KFD_DEVICE) ? size : strlen(GPUSEG_AMD_KFD_DEVICE));
		memcpy(buffer, GPUSEG_AMD_KFD_DEVICE, (size_t)n);
	}
	return n;
}

/* See common/device_file.h. */
EXPORT int gpuseg_standin_owns(const char *link);
EXPORT int gpuseg_standin_owns(const char *link)
{
	static const char memfd[] = "/memfd:" AMD_KFD_NAME;
	char target[128];
	const ssize_t n = syscall(SYS_readlinkat, AT_FDCWD, link, target, sizeof(target));

	return n >= (ssize_t)sizeof(memfd) - 1 && memcmp(target, memfd, sizeof(memfd) - 1) == 0;
}

/* ----------------------------------------------------------------------------------------------- /dev/gpuseg-kfd */

static bool knows(const struct amd_table *t, uint32_t gpu_id)
{
	for (unsigned i = 0; i < t->n_gpus; i++)
		if (t->gpu_ids[i] == gpu_id)
			return true;
	return gpu_id == GPUSEG_KFD_ALL_GPUS;
}

static int32_t hold(struct amd_table *t, int index, const struct gpuseg_kfd_entry *e)
{
	struct amd_hold *room = NULL;

	if (ticks_of(e->pid) != e->start_ticks)
		return -ESRCH;
	if (!knows(t, e->gpu_id))
		return -ENODEV;
	if (t->hold_refused)
		return -EOPNOTSUPP;
	for (unsigned h = 0; h < AMD_HOLDS; h++) {
		struct amd_hold *k = &t->all_holds[h];

		if (k->file == (uint32_t)index + 1 && k->pid == e->pid && k->start_ticks == e->start_ticks &&
		    k->gpu_id == e->gpu_id)
			room = k; /* a hold that exists already */
		else if (k->file == 0 && !room)
			room = k;
	}
	if (!room)
		return -ENOSPC;
	*room = (struct amd_hold){.file = (uint32_t)index + 1,
				  .pid = e->pid,
				  .start_ticks = e->start_ticks,
				  .gpu_id = e->gpu_id,
				  .flags = e->flags};
	t->holds++;
	if (t->fail > 0) {
		t->fail--;
		return -EIO; /* the hold remains */
	}
	return 0;
}

static int32_t release(struct amd_table *t, int index, const struct gpuseg_kfd_entry *e)
{
	const bool all = e->op == GPUSEG_KFD_RELEASE_PROCESS;
	int32_t result = -ENOENT;

	for (unsigned h = 0; h < AMD_HOLDS; h++) {
		struct amd_hold *k = &t->all_holds[h];

		if (k->file == (uint32_t)index + 1 && k->pid == e->pid && k->start_ticks == e->start_ticks &&
		    (all || k->gpu_id == e->gpu_id)) {
			k->file = 0;
			result = 0;
		}
	}
	t->releases += result == 0;
	return result;
}

static int on_apply(struct amd_table *t, int index, struct gpuseg_kfd_apply *a)
{
	struct gpuseg_kfd_entry *e = (struct gpuseg_kfd_entry *)(uintptr_t)a->entries;
	bool holds = false;

	if (a->flags != 0 || a->reserved != 0 || a->n_entries == 0)
		return refuse(EINVAL);
	if (a->n_entries > GPUSEG_KFD_MAX_BATCH)
		return refuse(E2BIG);
	for (uint32_t i = 0; i < a->n_entries; i++) {
		const bool all = e[i].gpu_id == GPUSEG_KFD_ALL_GPUS && e[i].queue_id == GPUSEG_KFD_ALL_QUEUES;

		if (e[i].pid <= 0 || e[i].op < GPUSEG_KFD_HOLD || e[i].op > GPUSEG_KFD_RELEASE_PROCESS ||
		    (e[i].flags & ~GPUSEG_KFD_COMPUTE_ONLY) || (e[i].op != GPUSEG_KFD_HOLD && e[i].flags) ||
		    (e[i].op == GPUSEG_KFD_RELEASE_PROCESS && !all))
			return refuse(EINVAL);
		holds |= e[i].op == GPUSEG_KFD_HOLD;
	}
	if (t->files[index].stale && holds)
		return refuse(ESTALE);
	t->files[index].armed_ns = now_ns();
	t->applies++;
	a->n_failed = 0;
	for (uint32_t i = 0; i < a->n_entries; i++) {
		e[i].result = e[i].op == GPUSEG_KFD_HOLD ? hold(t, index, &e[i]) : release(t, index, &e[i]);
		a->n_failed += e[i].result != 0;
	}
	return 0;
}

static int on_gpu(struct amd_table *t, struct gpuseg_kfd_gpu *g)
{
	const struct amd_delays *d = delays_of(t);
	const uint32_t i = g->index;

	if (i >= t->n_gpus)
		return refuse(ENODEV);
	*g = (struct gpuseg_kfd_gpu){.index = i,
				     .gpu_id = t->gpu_ids[i],
				     .mode = d->mode ? d->mode : GPUSEG_KFD_HWS,
				     .unloads = d->unloads,
				     .loads = d->loads,
				     .remaps = d->remaps,
				     .last_ns = d->last_ns,
				     .max_ns = d->max_ns,
				     .preemption = t->hold_refused ? GPUSEG_KFD_PREEMPT_NONE : GPUSEG_KFD_PREEMPT_SAVE,
				     .reason = t->hold_refused ? GPUSEG_KFD_NO_HWS_ON_MES_GPU : GPUSEG_KFD_OK};
	return 0;
}

static int on_hold_device(struct amd_table *t, int index, unsigned long request, void *argument)
{
	struct amd_file *f = &t->files[index];
	struct gpuseg_kfd_watchdog *w = argument;

	switch (request) {
	case GPUSEG_KFD_IOC_INFO:
		*(struct gpuseg_kfd_info *)argument = (struct gpuseg_kfd_info){
			.abi = t->hold_abi, .n_gpus = t->n_gpus, .watchdog_ms = f->period_ms, .lapses = f->lapses};
		return 0;
	case GPUSEG_KFD_IOC_GPU:
		return on_gpu(t, argument);
	case GPUSEG_KFD_IOC_APPLY:
		return on_apply(t, index, argument);
	case GPUSEG_KFD_IOC_WATCHDOG:
		if (w->period_ms < GPUSEG_KFD_WATCHDOG_MIN_MS || w->period_ms > GPUSEG_KFD_WATCHDOG_MAX_MS)
			return refuse(EINVAL);
		f->period_ms = w->period_ms;
		f->armed_ns = now_ns();
		f->stale = 0;
		w->lapses = f->lapses;
		return 0;
	case GPUSEG_KFD_IOC_KICK:
		t->kicks++;
		f->armed_ns = now_ns();
		return f->stale ? refuse(ESTALE) : 0;
	default:
		t->foreign++;
		return refuse(ENOTTY);
	}
}

/* -------------------------------------------------------------------------------------------------------- /dev/kfd */

static void put(const char *directory, const char *file, uint32_t value)
{
	char path[512], text[16];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", directory, file);
	fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	snprintf(text, sizeof(text), "%u\n", value);
	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		abort();
	syscall(SYS_close, fd);
}

static void hide_queue(const struct amd_process *p, uint32_t id)
{
	static const char *const files[] = {"gpuid", "type", "size", "."};
	char path[400];

	for (unsigned i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		snprintf(path, sizeof(path), "%s/sys/class/kfd/kfd/proc/%d/queues/%u/%s", getenv(AMD_STATE_ENV), p->pid,
			 id, files[i]);
		if (*files[i] != '.')
			unlink(path);
		else
			rmdir(path);
	}
}

static void show_queue(const struct amd_process *p, uint32_t id)
{
	const struct amd_queue *q = &p->queues[id];
	struct gpu_fault fault;
	char path[400], part[96];

	if (gpu_fault("list", &fault) != 0 || fault.effect == GPU_NOTHING)
		return;

	snprintf(part, sizeof(part), "/sys/class/kfd/kfd/proc/%d/queues/%u", p->pid, id);
	for (const char *slash = part + 1; slash; slash = strchr(slash + 1, '/')) {
		snprintf(path, sizeof(path), "%s%.*s", getenv(AMD_STATE_ENV), (int)(slash - part), part);
		mkdir(path, 0755);
	}
	snprintf(path, sizeof(path), "%s%s", getenv(AMD_STATE_ENV), part);
	mkdir(path, 0755);
	put(path, "size", 4096);
	put(path, "type", q->sdma);
	put(path, "gpuid", q->gpu_id); /* last: it publishes the queue */
}

/* What CREATE_QUEUE and UPDATE_QUEUE both refuse or correct. */
static bool is_valid(const struct amd_table *t, uint32_t percentage, uint32_t priority)
{
	return (t->minor >= MINOR_XCC ? percentage & PERCENT_MASK : percentage) <= 100 && priority <= PRIORITY_MAX;
}

static uint32_t clamped(uint32_t size)
{
	return size < RING_MIN ? RING_MIN : size;
}

static int create_queue(struct amd_table *t, struct amd_process *p, unsigned char *argument)
{
	uint32_t gpu_id, type, id = 0;
	struct amd_queue q = {.used = 1};

	memcpy(&gpu_id, argument + CREATE_QUEUE_GPU, sizeof(gpu_id));
	memcpy(&type, argument + CREATE_QUEUE_TYPE, sizeof(type));
	memcpy(&q.address, argument + CREATE_QUEUE_ADDRESS, sizeof(q.address));
	memcpy(&q.size, argument + CREATE_QUEUE_SIZE, sizeof(q.size));
	memcpy(&q.percentage, argument + CREATE_QUEUE_PERCENTAGE, sizeof(q.percentage));
	memcpy(&q.priority, argument + CREATE_QUEUE_PRIORITY, sizeof(q.priority));
	if (gpu_id == 0 || !knows(t, gpu_id) || type > 4 || !is_valid(t, q.percentage, q.priority))
		return refuse(EINVAL);
	while (id < AMD_QUEUES && p->queues[id].used)
		id++;
	if (id == AMD_QUEUES)
		return refuse(ENOMEM);
	q.gpu_id = gpu_id;
	q.sdma = type == 1 || type >= 3;
	q.size = clamped(q.size);
	p->queues[id] = q;
	p->n_queues++;
	memcpy(argument + CREATE_QUEUE_ID, &id, sizeof(id));
	show_queue(p, id);
	return 0;
}

static struct amd_queue *queue_of(struct amd_process *p, uint32_t id)
{
	return id < AMD_QUEUES && p->queues[id].used ? &p->queues[id] : NULL;
}

static int destroy_queue(struct amd_process *p, uint32_t id)
{
	struct amd_queue *q = queue_of(p, id);

	if (!q)
		return refuse(EINVAL);
	memset(q, 0, sizeof(*q));
	p->n_queues--;
	hide_queue(p, id);
	return 0;
}

static int update_queue(struct amd_table *t, struct amd_process *p, const struct update *u)
{
	struct amd_queue *q = queue_of(p, u->id);
	bool was;

	if (!is_valid(t, u->percentage, u->priority))
		return refuse(EINVAL);
	if (!q)
		return refuse(EFAULT);
	if (t->fail > 0) {
		t->fail--;
		return refuse(EIO);
	}
	was = is_active(q);
	q->address = u->address;
	q->size = clamped(u->size);
	q->percentage = u->percentage;
	q->priority = u->priority;
	t->deactivated += was && !is_active(q) && !q->sdma;
	return 0;
}

/*
 * What a runtime requests before its first queue: address spaces, memory, events. All is granted and nothing is stored;
 * there is no memory. The apertures are those of a 47-bit GPU (gfx9).
 */
static int on_memory(const struct amd_table *t, unsigned number, void *argument)
{
	static uint64_t handles;

	switch (number) {
	case 0x08: { /* CREATE_EVENT */
		struct event *e = argument;

		e->page_offset = 0;
		e->id = e->slot = (uint32_t)__atomic_add_fetch(&handles, 1, __ATOMIC_RELAXED);
		return 0;
	}
	case 0x14: { /* GET_PROCESS_APERTURES_NEW */
		struct apertures *a = argument;
		struct aperture *d = (void *)(uintptr_t)a->array;

		for (uint32_t i = 0; i < t->n_gpus && i < a->count; i++)
			d[i] = (struct aperture){.lds_base = 0x1000000000000,
						 .lds_limit = 0x10000FFFFFFFF,
						 .scratch_base = 0x2000000000000,
						 .scratch_limit = 0x20000FFFFFFFF,
						 .gpuvm_base = 0x4000,
						 .gpuvm_limit = 0x7FFFFFFFFFFF,
						 .gpu_id = t->gpu_ids[i]};
		a->count = t->n_gpus;
		return 0;
	}
	case 0x16: { /* ALLOC_MEMORY_OF_GPU */
		struct memory *m = argument;

		m->handle = __atomic_add_fetch(&handles, 1, __ATOMIC_RELAXED);
		m->mmap_offset = 0;
		return 0;
	}
	case 0x18:   /* MAP_MEMORY_TO_GPU */
	case 0x19: { /* UNMAP_MEMORY_FROM_GPU */
		struct mapping *m = argument;

		m->n_done = m->n_gpus;
		return 0;
	}
	case 0x04: /* SET_MEMORY_POLICY */
	case 0x09: /* DESTROY_EVENT */
	case 0x15: /* ACQUIRE_VM */
	case 0x17: /* FREE_MEMORY_OF_GPU */
		return 0;
	default:
		return refuse(ENOTTY);
	}
}

static int on_kfd(struct amd_table *t, int owner, unsigned long request, void *argument)
{
	struct amd_process *p = process_of(t, owner);
	const unsigned number = _IOC_NR(request);
	/* looked up by number only; bytes beyond the caller's size are zero */
	unsigned char create[CREATE_QUEUE_BYTES] = {0};
	const size_t size = _IOC_SIZE(request);
	struct update update = {0};
	uint32_t id = 0;
	int result;

	if (!p)
		return refuse(EBADF);
	/* Only the process that opened a descriptor may use it. */
	if (owner != getpid())
		return refuse(EBADF);
	switch (number) {
	case 0x01: { /* GET_VERSION, which AMD's library asks for first */
		struct version *version = argument;

		version->major = 1;
		version->minor = t->minor;
		return 0;
	}
	case 0x02:
		memcpy(create, argument, size < sizeof(create) ? size : sizeof(create));
		result = create_queue(t, p, create);
		memcpy(argument, create, size < sizeof(create) ? size : sizeof(create));
		return result;
	case 0x03:
		memcpy(&id, argument, size < sizeof(id) ? size : sizeof(id));
		return destroy_queue(p, id);
	case 0x07:
		memcpy(&update, argument, size < sizeof(update) ? size : sizeof(update));
		return update_queue(t, p, &update);
	case 0x1a: /* SET_CU_MASK */
	case 0x25: /* RUNTIME_ENABLE */
	case 0x27: /* CREATE_PROCESS: none is stored */
		return 0;
	default:
		result = on_memory(t, number, argument);
		t->foreign += result != 0;
		return result;
	}
}

/* As planted faults name it: a change of what may run. */
static const char *name_of(unsigned long request, const void *argument)
{
	const struct gpuseg_kfd_apply *a = argument;
	const struct update *u = argument;

	if (request == GPUSEG_KFD_IOC_APPLY && a->n_entries > 0)
		return ((const struct gpuseg_kfd_entry *)(uintptr_t)a->entries)->op == GPUSEG_KFD_HOLD ? "disable"
												       : "enable";
	if (_IOC_TYPE(request) == 'K' && _IOC_NR(request) == 0x07 && _IOC_SIZE(request) == sizeof(*u))
		return (u->percentage & PERCENT_MASK) == 0 ? "disable" : "enable";
	return "";
}

/* Success without effect. */
static int pretend(unsigned long request, void *argument)
{
	struct gpuseg_kfd_apply *a = argument;

	for (uint32_t i = 0; request == GPUSEG_KFD_IOC_APPLY && i < a->n_entries; i++)
		((struct gpuseg_kfd_entry *)(uintptr_t)a->entries)[i].result = 0;
	return 0;
}

EXPORT int ioctl(int fd, unsigned long request, ...)
{
	struct amd_table *t = table();
	struct gpu_fault fault;
	struct picture before;
	int64_t took_ns = 0;
	int32_t value;
	va_list list;
	void *argument;
	int held, result, error;

	va_start(list, request);
	argument = va_arg(list, void *);
	va_end(list);
	if (t && gpu_map() && (value_of(fd, AMD_HOLD_NAME) >= 0 || value_of(fd, AMD_KFD_NAME) >= 0)) {
		/* without the lock: it may wait */
		if (gpu_fault(name_of(request, argument), &fault) != 0)
			return -1;
		if (fault.effect == GPU_NOTHING)
			return pretend(request, argument);
	} else {
		fault = (struct gpu_fault){GPU_HONEST, 0};
	}
	if (t && _IOC_TYPE(request) == 'G' && (value = value_of(fd, AMD_HOLD_NAME)) >= 0 && value < AMD_FILES) {
		held = lock();
		settle(t);
		before = picture_of(t);
		result = t->files[value].owner ? on_hold_device(t, value, request, argument) : refuse(EBADF);
	} else if (t && _IOC_TYPE(request) == 'K' && (value = value_of(fd, AMD_KFD_NAME)) >= 0) {
		held = lock();
		settle(t);
		before = picture_of(t);
		result = on_kfd(t, value, request, argument);
	} else {
		return (int)syscall(SYS_ioctl, fd, request, argument);
	}
	error = errno;
	tell_gpu(t, fault);
	held = take_time(t, held, &before, &took_ns);
	if (request == GPUSEG_KFD_IOC_APPLY && result == 0)
		((struct gpuseg_kfd_apply *)argument)->took_ns = (uint64_t)took_ns;
	unlock(held);
	errno = error;
	return result;
}
