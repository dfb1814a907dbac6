/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libgpuseg-tegra-fake.so - preloaded, or loaded by JNA in place of libc, it simulates the TSG and scheduler devices of
 * nvgpu for tests; see tegra_state.h. All other calls go to the kernel. With GPUSEG_GPU_STANDIN it changes the groups
 * of that GPU, too, and has the faults that are planted there (selftest/standin/gpu.h).
 */
#define _GNU_SOURCE
#include "gpuseg_tegra.h"
#include "tegra_state.h"

#include "selftest/standin/gpu.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
#define SCHED_NAME "gpuseg-tegra-sched"

static struct tegra_table *table(void)
{
	static struct tegra_table *mapped;
	static char mapped_path[256];
	const char *path = getenv(TEGRA_STATE_ENV);
	void *at;
	int fd;

	if (mapped && path && strcmp(path, mapped_path) == 0)
		return mapped;
	if (path && strlen(path) >= sizeof(mapped_path))
		return NULL;
	fd = path ? (int)syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC, 0) : -1;
	if (fd < 0)
		return NULL;
	at = mmap(NULL, sizeof(*mapped), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (at == MAP_FAILED)
		return NULL;
	if (mapped)
		munmap(mapped, sizeof(*mapped)); /* of the test before */
	mapped = at;
	strcpy(mapped_path, path);
	return mapped;
}

static int open_tsg(void)
{
	struct tegra_tsg tsg = {.timeslice_us = TEGRA_TIMESLICE_US};
	struct tegra_table *t = table();
	int fd;

	if (!t) {
		errno = ENOENT;
		return -1;
	}
	tsg.tsgid = __atomic_fetch_add(&t->next, 1, __ATOMIC_RELAXED);
	if (tsg.tsgid >= TEGRA_TSGS) {
		errno = ENOSPC;
		return -1;
	}
	fd = memfd_create(TEGRA_TSG_NAME, MFD_CLOEXEC);
	if (fd < 0 || write(fd, &tsg, sizeof(tsg)) != (ssize_t)sizeof(tsg))
		return -1;
	__atomic_store_n(&t->pids[tsg.tsgid], getpid(), __ATOMIC_RELEASE);
	return fd;
}

static int open_any(const char *path, int flags, mode_t mode)
{
	if (strcmp(path, GPUSEG_TEGRA_TSG_DEVICE) == 0)
		return open_tsg();
	if (strcmp(path, GPUSEG_TEGRA_SCHED_DEVICE) == 0) {
		if (table())
			return memfd_create(SCHED_NAME, MFD_CLOEXEC);
		errno = ENOENT;
		return -1;
	}
	return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

EXPORT int open(const char *path, int flags, ...)
{
	va_list list;
	mode_t mode = 0;

	va_start(list, flags);
	if (flags & (O_CREAT | O_TMPFILE))
		mode = (mode_t)va_arg(list, int);
	va_end(list);
	return open_any(path, flags, mode);
}

/* Identifies a memfd of the stand-in by its name. */
static int names(int fd, const char *name)
{
	char path[64];
	char target[64];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	n = syscall(SYS_readlinkat, AT_FDCWD, path, target, sizeof(target) - 1);
	if (n <= 0)
		return 0;
	target[n] = 0;
	return strncmp(target, "/memfd:", 7) == 0 && strncmp(target + 7, name, strlen(name)) == 0;
}

static int refuse(int error)
{
	errno = error;
	return -1;
}

/* As planted faults name it. */
static const char *name_of(unsigned long number)
{
	switch (number) {
	case GPUSEG_TEGRA_DISABLE:
		return "disable";
	case GPUSEG_TEGRA_PREEMPT:
		return "preempt";
	case GPUSEG_TEGRA_ENABLE:
		return "enable";
	case GPUSEG_TEGRA_SET_TIMESLICE:
		return "slice";
	case GPUSEG_TEGRA_GET_TIMESLICE:
		return "get-slice";
	case GPUSEG_TEGRA_GET_TSGS:
		return "list";
	default:
		return "";
	}
}

static int on_tsg(int fd, unsigned long number, void *arg)
{
	struct tegra_tsg *tsg = mmap(NULL, sizeof(*tsg), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	struct gpuseg_tegra_timeslice *slice = arg;
	struct tegra_table *t = table();
	struct gpu_fault fault;
	int result = 0, pid;

	if (tsg == MAP_FAILED)
		return -1;
	pid = __atomic_load_n(&t->pids[tsg->tsgid], __ATOMIC_ACQUIRE);
	if (gpu_fault(name_of(number), &fault) != 0) {
		munmap(tsg, sizeof(*tsg));
		return -1;
	}
	switch (number) {
	case GPUSEG_TEGRA_DISABLE:
		__atomic_add_fetch(&t->disables, 1, __ATOMIC_RELAXED);
		if (__atomic_load_n(&t->fail, __ATOMIC_RELAXED)) {
			__atomic_sub_fetch(&t->fail, 1, __ATOMIC_RELAXED);
			result = refuse(EIO);
		} else {
			__atomic_store_n(&tsg->disabled, 1, __ATOMIC_RELEASE);
			gpu_switch(pid, tsg->tsgid, true, false, fault);
		}
		break;
	case GPUSEG_TEGRA_PREEMPT:
		__atomic_add_fetch(&t->preempts, 1, __ATOMIC_RELAXED);
		__atomic_store_n(&tsg->off, __atomic_load_n(&tsg->disabled, __ATOMIC_ACQUIRE), __ATOMIC_RELEASE);
		gpu_preempt(pid, tsg->tsgid, fault);
		break;
	case GPUSEG_TEGRA_ENABLE:
		__atomic_add_fetch(&t->enables, 1, __ATOMIC_RELAXED);
		__atomic_store_n(&tsg->disabled, 0, __ATOMIC_RELEASE);
		__atomic_store_n(&tsg->off, 0, __ATOMIC_RELEASE);
		gpu_switch(pid, tsg->tsgid, false, false, fault);
		break;
	case GPUSEG_TEGRA_SET_TIMESLICE:
		if (slice->timeslice_us < 1000 || slice->timeslice_us > 50000)
			result = refuse(EINVAL);
		else
			tsg->timeslice_us = slice->timeslice_us;
		if (result == 0)
			gpu_set_slice(pid, tsg->tsgid, slice->timeslice_us, fault);
		break;
	case GPUSEG_TEGRA_GET_TIMESLICE:
		slice->timeslice_us = (uint32_t)gpu_get_slice(pid, tsg->tsgid);
		if (slice->timeslice_us == 0)
			slice->timeslice_us = tsg->timeslice_us;
		break;
	default:
		__atomic_add_fetch(&t->foreign, 1, __ATOMIC_RELAXED);
		result = refuse(ENOTTY);
		break;
	}
	munmap(tsg, sizeof(*tsg));
	return result;
}

static int lives(const struct tegra_table *t, uint32_t tsgid)
{
	const int32_t pid = __atomic_load_n(&t->pids[tsgid], __ATOMIC_ACQUIRE);

	return pid > 0 && kill(pid, 0) == 0;
}

static int on_sched(unsigned long number, void *arg)
{
	struct gpuseg_tegra_get_tsgs *get = arg;
	struct gpuseg_tegra_params *params = arg;
	struct tegra_table *t = table();
	struct gpu_fault fault;

	if (gpu_fault(name_of(number), &fault) != 0)
		return -1;
	switch (number) {
	case GPUSEG_TEGRA_GET_TSGS:
		if (get->size < TEGRA_TSGS / 8) {
			get->size = TEGRA_TSGS / 8;
			return refuse(ENOSPC);
		}
		get->size = TEGRA_TSGS / 8;
		memset((void *)(uintptr_t)get->buffer, 0, get->size);
		for (uint32_t i = 0; i < TEGRA_TSGS; i++)
			if (lives(t, i) && fault.effect != GPU_NOTHING)
				((uint8_t *)(uintptr_t)get->buffer)[i / 8] |= (uint8_t)(1u << i % 8);
		return 0;
	case GPUSEG_TEGRA_GET_PARAMS:
		if (params->tsgid >= TEGRA_TSGS || !lives(t, params->tsgid))
			return refuse(ENXIO);
		params->pid = (uint64_t)t->pids[params->tsgid];
		params->timeslice = TEGRA_TIMESLICE_US;
		return 0;
	default:
		__atomic_add_fetch(&t->foreign, 1, __ATOMIC_RELAXED);
		return refuse(ENOTTY);
	}
}

EXPORT int ioctl(int fd, unsigned long number, ...)
{
	va_list list;
	void *arg;

	va_start(list, number);
	arg = va_arg(list, void *);
	va_end(list);
	if (_IOC_TYPE(number) == 'T' && names(fd, TEGRA_TSG_NAME) && table())
		return on_tsg(fd, number, arg);
	if (_IOC_TYPE(number) == 'S' && names(fd, SCHED_NAME) && table())
		return on_sched(number, arg);
	return (int)syscall(SYS_ioctl, fd, number, arg);
}

EXPORT ssize_t readlink(const char *path, char *buffer, size_t size)
{
	static const char memfd[] = "/memfd:" TEGRA_TSG_NAME;
	ssize_t n = syscall(SYS_readlinkat, AT_FDCWD, path, buffer, size);

	if (n >= (ssize_t)sizeof(memfd) - 1 && memcmp(buffer, memfd, sizeof(memfd) - 1) == 0) {
		n = (ssize_t)(size < strlen(GPUSEG_TEGRA_TSG_DEVICE) ? size : strlen(GPUSEG_TEGRA_TSG_DEVICE));
		memcpy(buffer, GPUSEG_TEGRA_TSG_DEVICE, (size_t)n);
	}
	return n;
}

/* See common/device_file.h. */
EXPORT int gpuseg_standin_owns(const char *link);
EXPORT int gpuseg_standin_owns(const char *link)
{
	static const char memfd[] = "/memfd:" TEGRA_TSG_NAME;
	char target[128];
	const ssize_t n = syscall(SYS_readlinkat, AT_FDCWD, link, target, sizeof(target));

	return n >= (ssize_t)sizeof(memfd) - 1 && memcmp(target, memfd, sizeof(memfd) - 1) == 0;
}
