/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "gpuseg_tegra.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/device_file.h"

#define SYS_PIDFD_OPEN 434

/* Whether it has the name of a TSG. */
static bool is_named_tsg(int pid, int fd, char target[static 128])
{
	char path[64];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", pid, fd);
	n = readlink(path, target, 127);
	if (n <= 0)
		return false;
	target[n] = 0;
	return strcmp(target, GPUSEG_TEGRA_TSG_DEVICE) == 0 || fnmatch("/dev/nvgpu/*/tsg", target, 0) == 0;
}

/* The number of a TSG device is that of this system's file of the same name. */
int gpuseg_tegra_duplicate(int pid, int pidfd, int remote)
{
	struct device_number own;
	char target[128];

	if (!is_named_tsg(pid, remote, target))
		return -ENOTTY;
	return device_file_duplicate(pid, pidfd, remote, device_file_own(target, &own) == 0 ? &own : NULL);
}

static int enable(int pid, int pidfd, int remote)
{
	const int fd = gpuseg_tegra_duplicate(pid, pidfd, remote);
	int result = 0;

	if (fd < 0)
		return fd == -EBADF || fd == -ENOTTY ? 0 : fd;
	if (ioctl(fd, GPUSEG_TEGRA_ENABLE, 0) != 0)
		result = -errno;
	close(fd);
	return result;
}

int gpuseg_tegra_release(int pid, const void *payload, size_t size)
{
	struct gpuseg_tegra_held held;
	const size_t header = offsetof(struct gpuseg_tegra_held, fds);
	int result = 0;
	int pidfd;

	memset(&held, 0, sizeof(held));
	memcpy(&held, payload, size < sizeof(held) ? size : sizeof(held));
	if (size < header || held.version != GPUSEG_TEGRA_HELD_VERSION || held.count > GPUSEG_TEGRA_TSGS_MAX ||
	    size < header + held.count * sizeof(held.fds[0]))
		return -EINVAL;
	pidfd = (int)syscall(SYS_PIDFD_OPEN, pid, 0);
	if (pidfd < 0)
		return -errno;
	for (uint32_t i = 0; i < held.count; i++) {
		const int rc = enable(pid, pidfd, held.fds[i]);

		if (rc != 0 && result == 0)
			result = rc;
	}
	close(pidfd);
	return result;
}
