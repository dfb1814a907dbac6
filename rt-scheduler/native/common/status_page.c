/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "status_page.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

#include "common/base.h"

int status_read(struct gpuseg_status *status, const char *directory)
{
	char path[PATH_MAX];
	ssize_t length;
	int fd, rc;

	if (snprintf(path, sizeof(path), "%s/%s", directory, GPUSEG_STATUS_NAME) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	length = pread(fd, status, sizeof(*status), 0);
	rc = length < 0 ? -errno : 0;
	close(fd);
	if (rc != 0)
		return rc;
	if ((size_t)length < sizeof(*status) || status->version == 0)
		return -EAGAIN;
	if (status->magic != GPUSEG_STATUS_MAGIC || status->version >> 16 != GPUSEG_ABI_MAJOR)
		return -EPROTO;
	return 0;
}

bool status_owner_lives(const struct gpuseg_status *status)
{
	const uint64_t ticks = status->daemon_pid > 0 ? process_start_ticks(status->daemon_pid) : 0;

	return ticks != 0 && (status->daemon_start_ticks == 0 || status->daemon_start_ticks == ticks);
}
