/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "gpuseg_amd.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent_page.h"
#include "common/base.h"
#include "gpuseg_kfd.h"

#define SYS_PIDFD_OPEN 434
#define SYS_PIDFD_GETFD 438

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
	if (held.version != GPUSEG_AMD_HELD_VERSION)
		return -EINVAL;
	if (held.interface == GPUSEG_AMD_AGENT)
		return order_agent(pid, start_ticks, held.fd, deadline_ns);
	if (held.interface != GPUSEG_AMD_KFD)
		return -EINVAL;
	daemon = living_daemon(&held);
	if (daemon < 0)
		return daemon == -ESRCH ? 0 : daemon; /* the kernel released the hold of the dead */
	fd = (int)syscall(SYS_PIDFD_GETFD, daemon, held.fd, 0);
	result = fd < 0 ? -errno : 0;
	close(daemon);
	if (result == -EBADF)
		return 0; /* the daemon closed the file, which released the hold */
	if (fd < 0)
		return result;
	result = release_hold(fd, pid, start_ticks);
	close(fd);
	return result;
}
