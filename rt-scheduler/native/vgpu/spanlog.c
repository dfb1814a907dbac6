/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "spanlog.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "common/base.h"

#define FLUSH_PERIOD_NS (100 * NS_PER_MS)

int spanlog_open(struct spanlog *log, const char *path)
{
	log->fd = -1;
	log->error = 0;
	log->count = 0;
	log->due_ns = INT64_MAX;
	if (!path)
		return 0;
	log->fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	return log->fd >= 0 ? 0 : -errno;
}

void spanlog_flush(struct spanlog *log)
{
	const char *p = (const char *)log->buffer;
	size_t left = log->count * sizeof(log->buffer[0]);

	log->count = 0;
	log->due_ns = INT64_MAX;
	while (left > 0 && log->fd >= 0) {
		const ssize_t written = write(log->fd, p, left);

		if (written < 0 && errno == EINTR)
			continue;
		if (written < 0) {
			/* An incomplete log would be misleading, so it ends here. The GPU keeps running. */
			log->error = -errno;
			message("log: write failed: %s; the log ends here", strerror(errno));
			close(log->fd);
			log->fd = -1;
			return;
		}
		p += written;
		left -= (size_t)written;
	}
}

void spanlog_append(struct spanlog *log, const struct gpuseg_sim_span *span)
{
	if (log->fd < 0)
		return;
	if (log->count == 0)
		log->due_ns = now_ns() + FLUSH_PERIOD_NS;
	log->buffer[log->count++] = *span;
	if (log->count == SPANLOG_BUFFER)
		spanlog_flush(log);
}

int spanlog_close(struct spanlog *log)
{
	spanlog_flush(log);
	if (log->fd >= 0 && close(log->fd) != 0 && log->error == 0)
		log->error = -errno;
	log->fd = -1;
	return log->error;
}
