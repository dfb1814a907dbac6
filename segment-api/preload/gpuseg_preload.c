/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libgpuseg-preload.so - interposes ioctl(2) of libc, which the user-mode drivers call through the PLT.
 *
 * NVIDIA: records which RM objects the process creates (gpuseg_rm_report.h). It passes every call on unchanged and
 * reads only the results of allocations and frees on the control device. It never changes an argument, a result or
 * errno, starts no thread and opens one descriptor. Without NVIDIA's driver it does nothing.
 *
 * AMD: gpuseg_kfd_agent.c.
 *
 * Source of the layouts: NVIDIA's public driver headers, 580.x.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "gpuseg_rm_report.h"
#include "preload.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ESC_TYPE 'F'
#define ESC_RM_FREE 0x29
#define ESC_RM_ALLOC 0x2b

#define CLASS_CLIENT 0x41u
#define CLASS_CLIENT_OLD 0x00u
#define CLASS_DEVICE 0x80u
#define CLASS_SUBDEVICE 0x2080u
#define CLASS_TSG 0xa06cu

static gpuseg_ioctl_fn next_ioctl;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct gpuseg_rm_report *report;
static pid_t report_pid;
static int broken;

struct rm_free {
	uint32_t client;
	uint32_t parent;
	uint32_t handle;
	uint32_t status;
};

static void lock_report(void)
{
	pthread_mutex_lock(&lock);
}

static void unlock_report(void)
{
	pthread_mutex_unlock(&lock);
}

__attribute__((constructor)) static void start(void)
{
	next_ioctl = (gpuseg_ioctl_fn)(uintptr_t)dlsym(RTLD_NEXT, "ioctl");
	pthread_atfork(lock_report, unlock_report, unlock_report); /* so that no child inherits a held lock */
}

/* With the lock held. */
static struct gpuseg_rm_report *own_report(void)
{
	pid_t pid = getpid();
	void *map;
	int fd;

	if (report && report_pid == pid)
		return report;
	if (broken)
		return NULL;
	fd = (int)syscall(SYS_memfd_create, GPUSEG_RM_REPORT_NAME, MFD_CLOEXEC);
	if (fd < 0 || ftruncate(fd, sizeof(*report)) != 0) {
		broken = 1;
		if (fd >= 0)
			close(fd);
		return NULL;
	}
	map = mmap(NULL, sizeof(*report), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED) {
		broken = 1;
		close(fd);
		return NULL;
	}
	/*
	 * The descriptor stays open, because the daemon finds the report through it. A mapping inherited from the
	 * parent belongs to the parent and is not touched.
	 */
	report = map;
	report_pid = pid;
	report->magic = GPUSEG_RM_REPORT_MAGIC;
	report->pid = (int32_t)pid;
	__atomic_store_n(&report->version, GPUSEG_RM_REPORT_VERSION, __ATOMIC_RELEASE);
	return report;
}

static void note(const struct gpuseg_rm_report_entry *entry)
{
	struct gpuseg_rm_report *r;

	lock_report();
	r = own_report();
	if (r) {
		uint32_t n = r->count;

		if (n < GPUSEG_RM_REPORT_ENTRIES) {
			r->entries[n] = *entry;
			__atomic_store_n(&r->count, n + 1, __ATOMIC_RELEASE);
		} else {
			r->lost++;
		}
	}
	unlock_report();
}

static int wanted(uint32_t class_id)
{
	return class_id == CLASS_CLIENT || class_id == CLASS_CLIENT_OLD || class_id == CLASS_DEVICE ||
	       class_id == CLASS_SUBDEVICE || class_id == CLASS_TSG || ((class_id & 0xffu) == 0x6fu);
}

static void look(int fd, unsigned int number, unsigned int size, const void *arg)
{
	if (number == ESC_RM_ALLOC && size >= 32) {
		uint32_t words[12] = {0};
		uint64_t params;
		struct gpuseg_rm_report_entry entry;

		memcpy(words, arg, size < sizeof(words) ? size : sizeof(words));
		/* status is the last word in both forms of the structure */
		if (words[size >= 48 ? 10 : 7] != 0 || !wanted(words[3]))
			return;
		memcpy(&params, words + 4, sizeof(params));
		entry = (struct gpuseg_rm_report_entry){.kind = GPUSEG_RM_REPORT_ALLOC,
							.fd = fd,
							.client = words[0],
							.parent = words[1],
							.handle = words[2],
							.class_id = words[3]};
		if (words[3] == CLASS_CLIENT || words[3] == CLASS_CLIENT_OLD)
			entry.client = words[2];
		if (words[3] == CLASS_TSG && params)
			memcpy(&entry.engine, (const char *)(uintptr_t)params + 12, sizeof(entry.engine));
		note(&entry);
	} else if (number == ESC_RM_FREE && size >= sizeof(struct rm_free)) {
		struct rm_free f;
		struct gpuseg_rm_report_entry entry;

		memcpy(&f, arg, sizeof(f));
		if (f.status != 0)
			return;
		entry = (struct gpuseg_rm_report_entry){.kind = GPUSEG_RM_REPORT_FREE,
							.fd = fd,
							.client = f.client,
							.parent = f.parent,
							.handle = f.handle};
		/* most frees are of memory objects; only handles that were reported matter */
		lock_report();
		if (report && report_pid == getpid()) {
			for (uint32_t i = 0; i < report->count; i++) {
				if (report->entries[i].client == f.client && report->entries[i].handle == f.handle &&
				    report->entries[i].kind == GPUSEG_RM_REPORT_ALLOC) {
					unlock_report();
					note(&entry);
					return;
				}
			}
		}
		unlock_report();
	}
}

__attribute__((visibility("default"))) int ioctl(int fd, unsigned long request, ...)
{
	va_list list;
	void *arg;
	int result;

	va_start(list, request);
	arg = va_arg(list, void *);
	va_end(list);
	if (!next_ioctl)
		next_ioctl = (gpuseg_ioctl_fn)(uintptr_t)dlsym(RTLD_NEXT, "ioctl");
	if (!next_ioctl) {
		errno = ENOSYS;
		return -1;
	}
	if (((request >> 8) & 0xff) == GPUSEG_KFD_TYPE)
		return gpuseg_kfd_ioctl(next_ioctl, fd, request, arg);
	result = next_ioctl(fd, request, arg);
	if (result >= 0 && arg && ((request >> 8) & 0xff) == ESC_TYPE) {
		int saved = errno;

		look(fd, (unsigned int)(request & 0xff), (unsigned int)((request >> 16) & 0x3fff), arg);
		errno = saved;
	}
	return result;
}
