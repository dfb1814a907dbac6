/* SPDX-License-Identifier: Apache-2.0 */
/* Virtual GPU: payload = path of its control socket. Contexts behind one socket share an operation and its cost. */
#define _GNU_SOURCE
#include "mechanism.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base.h"

static int wait_readable(int fd, int64_t deadline_ns)
{
	for (;;) {
		struct pollfd p = {.fd = fd, .events = POLLIN};
		const int64_t left_ns = deadline_ns - now_ns();
		const struct timespec timeout = to_timespec(left_ns > 0 ? left_ns : 0);
		const int rc = ppoll(&p, 1, &timeout, NULL);

		if (rc > 0)
			return 0;
		if (rc == 0)
			return -ETIMEDOUT;
		if (errno != EINTR)
			return -errno;
	}
}

static int enable(int fd, const struct gpuseg_sim_msg *request, int64_t deadline_ns)
{
	struct gpuseg_sim_msg reply;
	ssize_t length;
	int rc;

	if (send(fd, request, sizeof(*request), MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
		return -errno;
	rc = wait_readable(fd, deadline_ns);
	if (rc != 0)
		return rc;
	length = recv(fd, &reply, sizeof(reply), MSG_DONTWAIT);
	if (length < 0)
		return -errno;
	if (length == 0)
		return -ECONNRESET;
	if ((size_t)length != sizeof(reply) || reply.magic != GPUSEG_SIM_MAGIC || reply.op != GPUSEG_SIM_ENABLE)
		return -EPROTO;
	return reply.status;
}

static int connect_control(const char *path)
{
	struct sockaddr_un address;
	int fd, rc = unix_address(&address, path, NULL);

	if (rc != 0)
		return rc;
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0)
		return fd;
	rc = -errno;
	close(fd);
	/* Without the virtual GPU there is no context, so nothing is disabled. */
	return rc == -ECONNREFUSED || rc == -ENOENT ? -ESRCH : rc;
}

static const char *path_of(const struct held_context *context)
{
	const char *path = (const char *)context->payload;

	return context->payload_size > 1 && memchr(path, '\0', context->payload_size) ? path : NULL;
}

/* Enables every context from `first` on that has the same socket and is not done yet. */
static void release_socket(struct held_context *const contexts[], unsigned count, bool done[], unsigned first,
			   int64_t deadline_ns)
{
	const char *const path = path_of(contexts[first]);
	const int fd = connect_control(path);
	struct gpuseg_sim_msg m = {.magic = GPUSEG_SIM_MAGIC, .version = GPUSEG_ABI_VERSION, .op = GPUSEG_SIM_ENABLE};
	unsigned members[GPUSEG_SIM_BATCH_MAX];
	int rc = fd < 0 ? fd : 0;

	for (unsigned i = first; i < count; i++) {
		if (!done[i] && path_of(contexts[i]) && strcmp(path_of(contexts[i]), path) == 0) {
			done[i] = true;
			members[m.count] = i;
			m.pids[m.count++] = contexts[i]->pid;
		}
		if (m.count == 0 || (m.count < GPUSEG_SIM_BATCH_MAX && i + 1 < count))
			continue;
		if (fd >= 0)
			rc = enable(fd, &m, deadline_ns);
		/*
		 * -ESRCH for a batch: one context does not exist any more, the others were served. None is disabled.
		 */
		for (unsigned j = 0; j < m.count; j++)
			contexts[members[j]]->result = rc == -ESRCH && fd >= 0 && m.count > 1 ? 0 : rc;
		m.count = 0;
	}
	if (fd >= 0)
		close(fd);
}

void mechanism_sim_release(struct held_context *const contexts[], unsigned count, int64_t deadline_ns)
{
	bool done[GPUSEG_HELD_MAX] = {false};

	for (unsigned i = 0; i < count; i++) {
		if (done[i])
			continue;
		if (path_of(contexts[i])) {
			release_socket(contexts, count, done, i, deadline_ns);
		} else {
			done[i] = true;
			contexts[i]->result = -EINVAL;
		}
	}
}
