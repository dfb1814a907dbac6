/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "agent_page.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/base.h"
#include "common/device_file.h"

#define SYS_PIDFD_GETFD 438
#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW)
#define SEARCHED_MAX 4096	     /* descriptors: a process with very many must not delay the release of others */
#define WAIT_MAX_NS (10 * NS_PER_MS) /* polling period: an order that replaces ours does not wake us */

/* Maps a duplicate of the descriptor if it is an agent's page, else NULL. Opens no file, because that could block. */
static struct gpuseg_kfd_agent *mapped(int pid, int pidfd, int remote, int *error)
{
	struct gpuseg_kfd_agent *page = NULL;
	struct stat file;
	char link[64];
	int fd, seals;

	snprintf(link, sizeof(link), "/proc/%d/fd/%d", pid, remote);
	if (!device_file_is_memfd(link))
		return NULL;
	fd = (int)syscall(SYS_PIDFD_GETFD, pidfd, remote, 0);
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	if (fd >= 0 && !device_file_is_memfd(link))
		return NULL; /* exchanged meanwhile; it stays open, because to close it could block */

	if (fd < 0) {
		if (errno != EBADF) /* EBADF: it was closed meanwhile */
			*error = -errno;
		return NULL;
	}
	seals = fcntl(fd, F_GET_SEALS);
	if (seals >= 0 && (seals & SEALS) == SEALS && fstat(fd, &file) == 0 && file.st_size == GPUSEG_KFD_AGENT_BYTES) {
		page = mmap(NULL, GPUSEG_KFD_AGENT_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		if (page == MAP_FAILED)
			page = NULL;
	}
	close(fd);
	if (page && (__atomic_load_n(&page->version, __ATOMIC_ACQUIRE) != GPUSEG_KFD_AGENT_VERSION ||
		     page->magic != GPUSEG_KFD_AGENT_MAGIC || page->pid != pid)) {
		agent_page_close(page);
		page = NULL;
	}
	return page;
}

int agent_page_open(int pid, int pidfd, struct gpuseg_kfd_agent **page)
{
	static const char name[] = "/memfd:" GPUSEG_KFD_AGENT_NAME;
	char path[32], link[320], target[64];
	const struct dirent *entry;
	int error = -ENOENT, left = SEARCHED_MAX;
	DIR *list;

	*page = NULL;
	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	list = opendir(path);
	if (!list)
		return errno == ENOENT ? -ESRCH : -errno;
	while (!*page && left-- > 0 && (entry = readdir(list))) {
		ssize_t n;

		snprintf(link, sizeof(link), "%s/%s", path, entry->d_name);
		n = readlink(link, target, sizeof(target));
		if (n >= (ssize_t)sizeof(name) - 1 && memcmp(target, name, sizeof(name) - 1) == 0)
			*page = mapped(pid, pidfd, atoi(entry->d_name), &error);
	}
	closedir(list);
	return *page ? 0 : error;
}

void agent_page_close(struct gpuseg_kfd_agent *page)
{
	munmap(page, GPUSEG_KFD_AGENT_BYTES);
}

uint32_t agent_page_order(struct gpuseg_kfd_agent *page, unsigned slot, bool hold)
{
	uint32_t *word = &page->slots[slot].order;
	uint32_t before = __atomic_load_n(word, __ATOMIC_ACQUIRE), order;

	do {
		order = ((before | GPUSEG_KFD_AGENT_HOLD) + 1) | (hold ? GPUSEG_KFD_AGENT_HOLD : 0);
	} while (!__atomic_compare_exchange_n(word, &before, order, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE));
	__atomic_add_fetch(&page->doorbell, 1, __ATOMIC_RELEASE);
	syscall(SYS_futex, &page->doorbell, FUTEX_WAKE, 1, NULL, NULL, 0);
	return order;
}

int agent_page_wait(struct gpuseg_kfd_agent *page, unsigned slot, uint32_t order, int64_t deadline_ns)
{
	struct gpuseg_kfd_agent_slot *s = &page->slots[slot];

	for (;;) {
		/* acquire; pairs with the release in gpuseg_kfd_agent.c: answer */
		const uint32_t answered = __atomic_load_n(&s->answered, __ATOMIC_ACQUIRE);
		const int64_t left = deadline_ns - now_ns();
		struct timespec wait;

		if (answered == order)
			return s->result < 0 ? s->result : 0;
		if (__atomic_load_n(&s->order, __ATOMIC_ACQUIRE) != order)
			return 0;
		if (left <= 0)
			return -ETIMEDOUT;
		wait = to_timespec(left < WAIT_MAX_NS ? left : WAIT_MAX_NS);
		syscall(SYS_futex, &s->answered, FUTEX_WAIT, answered, &wait, NULL, 0);
	}
}
