/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "gpuseg_amd.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent_page.h"
#include "common/base.h"
#include "common/device_file.h"
#include "gpuseg_kfd.h"

#define SYS_PIDFD_OPEN 434
#define SYS_PIDFD_GETFD 438
#define STOP_LIMIT_NS (20 * NS_PER_MS)

/* A pidfd of the daemon that wrote the entry. -ESRCH: it is dead; another -errno. */
static int living_daemon(const struct gpuseg_amd_held *held)
{
	const int pidfd = (int)syscall(SYS_PIDFD_OPEN, held->daemon, 0);
	struct pollfd p = {.fd = pidfd, .events = POLLIN};

	if (pidfd < 0)
		return -errno;
	/* After pidfd_open the pid cannot be reused. Readable: all threads of the process have ended. */
	if (process_start_ticks(held->daemon) != held->daemon_start_ticks || poll(&p, 1, 0) > 0) {
		close(pidfd);
		return -ESRCH;
	}
	return pidfd;
}

static int release_hold(int fd, int pid, uint64_t start_ticks)
{
	struct gpuseg_kfd_entry entry = {.pid = pid,
					 .op = GPUSEG_KFD_RELEASE_PROCESS,
					 .start_ticks = start_ticks,
					 .queue_id = GPUSEG_KFD_ALL_QUEUES};
	struct gpuseg_kfd_apply apply = {.entries = (uintptr_t)&entry, .n_entries = 1};

	if (ioctl(fd, GPUSEG_KFD_IOC_APPLY, &apply) != 0)
		return -errno;
	return entry.result == -ENOENT ? 0 : entry.result;
}

static int ask_tracer(int fd, int64_t deadline_ns)
{
	struct gpuseg_amd_rescue *page;
	struct stat file;
	uint32_t wanted;
	int result = 0;

	if (fstat(fd, &file) != 0 || file.st_size < (off_t)sizeof(*page))
		return -EINVAL;
	page = mmap(NULL, sizeof(*page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (page == MAP_FAILED)
		return -errno;
	wanted = __atomic_add_fetch(&page->asked, 1, __ATOMIC_ACQ_REL);
	/* acquire; pairs with the release in Tracer.rescue. The answer to a later request counts for this one, too. */
	while ((int32_t)(__atomic_load_n(&page->done, __ATOMIC_ACQUIRE) - wanted) < 0) {
		if (now_ns() > deadline_ns) {
			result = -ETIMEDOUT;
			break;
		}
		sleep_until(now_ns() + NS_PER_MS / 2, NULL);
	}
	munmap(page, sizeof(*page));
	return result;
}

/* A duplicate of a descriptor of /dev/kfd; -ENOTTY if it is something else. */
static int duplicate_kfd(int pid, int pidfd, int remote)
{
	static const char *const driver[] = {"kfd"};
	const int major = device_file_major(driver, 1);
	const struct device_number kfd = {.major = (unsigned)major, .minor = 0};

	return device_file_duplicate(pid, pidfd, remote, major < 0 ? NULL : &kfd);
}

/*
 * UNPAUSE through every descriptor of /dev/kfd that the process has. An inherited one belongs to the parent, which we
 * do not trace, and is refused with EBADF. 0 or -errno.
 */
static int unpause_all(int pid, int pidfd)
{
	char path[32], link[320], target[32];
	const struct dirent *entry;
	int result = 0;
	DIR *list;

	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	list = opendir(path);
	if (!list)
		return errno == ENOENT ? -ESRCH : -errno;
	while ((entry = readdir(list))) {
		struct gpuseg_amd_criu criu = {.op = GPUSEG_AMD_CRIU_UNPAUSE};
		ssize_t n;
		int fd;

		snprintf(link, sizeof(link), "%s/%s", path, entry->d_name);
		n = readlink(link, target, sizeof(target) - 1);
		if (n <= 0)
			continue;
		target[n] = 0;
		if (strcmp(target, GPUSEG_AMD_KFD_DEVICE) != 0)
			continue;
		fd = duplicate_kfd(pid, pidfd, atoi(entry->d_name));
		if (fd < 0)
			errno = -fd;
		/* EINVAL: it is not paused. EBADF: it was closed, so its queues do not exist any more. */
		if (fd < 0 ? errno != EBADF && errno != ENOTTY
			   : ioctl(fd, GPUSEG_AMD_CRIU_OP, &criu) != 0 && errno != EINVAL && errno != EBADF)
			result = -errno;
		if (fd >= 0)
			close(fd);
	}
	closedir(list);
	return result;
}

/* Ends the tracing, for which the process must stop for a moment. */
static void detach(int pid)
{
	const int64_t limit_ns = now_ns() + STOP_LIMIT_NS;
	int status;

	if (ptrace(PTRACE_INTERRUPT, pid, NULL, NULL) != 0)
		return;
	while (now_ns() < limit_ns) {
		const int got = waitpid(pid, &status, WNOHANG | __WALL);

		if (got < 0 || (got == pid && !WIFSTOPPED(status)))
			return; /* the process has ended */
		if (got == pid) {
			const bool event = status >> 16 != 0;

			ptrace(PTRACE_DETACH, pid, NULL, (void *)(intptr_t)(event ? 0 : WSTOPSIG(status)));
			return;
		}
		sleep_until(now_ns() + NS_PER_MS / 5, NULL);
	}
	/* the end of this program ends the tracing */
}

static int unpause(int pid, uint64_t start_ticks)
{
	const int pidfd = (int)syscall(SYS_PIDFD_OPEN, pid, 0);
	int result = -ESRCH;

	if (pidfd < 0)
		return -errno;
	if (start_ticks == 0 || process_start_ticks(pid) == start_ticks) {
		if (ptrace(PTRACE_SEIZE, pid, NULL, NULL) != 0) {
			result = -errno;
		} else {
			result = unpause_all(pid, pidfd);
			detach(pid);
		}
	}
	close(pidfd);
	return result;
}

/* An agent without a hold needs no order. A live agent that does not answer is reported. */
static int order_agent(int pid, uint64_t start_ticks, int slot, int64_t deadline_ns)
{
	const int pidfd = (int)syscall(SYS_PIDFD_OPEN, pid, 0);
	struct gpuseg_kfd_agent *page;
	int result = -ESRCH;

	if (pidfd < 0)
		return -errno;
	if (slot < 0 || slot >= GPUSEG_KFD_AGENT_SLOTS)
		result = -EINVAL;
	else if (start_ticks == 0 || process_start_ticks(pid) == start_ticks)
		result = agent_page_open(pid, pidfd, &page);
	close(pidfd);
	if (result != 0)
		return result == -ENOENT ? 0 : result; /* without an agent nothing was held */
	if (__atomic_load_n(&page->slots[slot].order, __ATOMIC_ACQUIRE) & GPUSEG_KFD_AGENT_HOLD)
		result = agent_page_wait(page, (unsigned)slot, agent_page_order(page, (unsigned)slot, false),
					 deadline_ns);
	agent_page_close(page);
	return result;
}

int gpuseg_amd_release(int pid, uint64_t start_ticks, const void *payload, size_t size, int64_t deadline_ns)
{
	struct gpuseg_amd_held held;
	int daemon, fd, result;

	if (size < sizeof(held))
		return -EINVAL;
	memcpy(&held, payload, sizeof(held));
	if (held.version != GPUSEG_AMD_HELD_VERSION || held.interface < GPUSEG_AMD_KFD ||
	    held.interface > GPUSEG_AMD_AGENT)
		return -EINVAL;
	if (held.interface == GPUSEG_AMD_AGENT)
		return order_agent(pid, start_ticks, held.fd, deadline_ns);
	daemon = living_daemon(&held);
	if (daemon == -ESRCH)
		return held.interface == GPUSEG_AMD_CRIU ? unpause(pid, start_ticks) : 0;
	if (daemon < 0)
		return daemon;
	fd = (int)syscall(SYS_PIDFD_GETFD, daemon, held.fd, 0);
	result = fd < 0 ? -errno : 0;
	close(daemon);
	if (result == -EBADF && held.interface != GPUSEG_AMD_CRIU)
		return 0; /* the daemon closed the file, which released the hold */
	if (fd < 0)
		return result;
	result = held.interface == GPUSEG_AMD_KFD ? release_hold(fd, pid, start_ticks) : ask_tracer(fd, deadline_ns);
	close(fd);
	return result;
}
