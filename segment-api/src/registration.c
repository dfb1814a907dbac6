/* SPDX-License-Identifier: Apache-2.0 */
/* registration.c - requests to the daemon, and the one that registers a task. */
#include <string.h>
#include <sys/socket.h>

#include "registration.h"

bool is_text(const char *field, size_t size)
{
	return field[0] && memchr(field, '\0', size);
}

/* Receive one packet and up to two descriptors (-1 = none). Returns its length or -errno. */
static ssize_t receive(int fd, void *buffer, size_t size, int descriptors[2])
{
	union {
		char bytes[CMSG_SPACE(2 * sizeof(int))];
		struct cmsghdr align;
	} control;
	struct iovec iov = {.iov_base = buffer, .iov_len = size};
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)};
	ssize_t n;

	descriptors[0] = descriptors[1] = -1;
	do {
		n = recvmsg(fd, &msg, MSG_CMSG_CLOEXEC);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return errno == EAGAIN || errno == EWOULDBLOCK ? -ETIMEDOUT : errno == ECONNRESET ? -ENOTCONN : -errno;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&msg); c; c = CMSG_NXTHDR(&msg, c)) {
		if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS) {
			size_t bytes = c->cmsg_len - CMSG_LEN(0);

			memcpy(descriptors, CMSG_DATA(c), bytes < 2 * sizeof(int) ? bytes : 2 * sizeof(int));
		}
	}
	return n == 0 ? -ENOTCONN : (msg.msg_flags & MSG_TRUNC) ? -EPROTO : n;
}

void close_descriptors(int descriptors[2])
{
	for (int i = 0; i < 2; i++) {
		if (descriptors[i] >= 0)
			close(descriptors[i]);
		descriptors[i] = -1;
	}
}

int client_exchange(struct gpuseg_client *client, struct gpuseg_msg *request, size_t request_size,
		    struct gpuseg_msg *reply, size_t reply_size, int descriptors[2])
{
	int64_t deadline_ns = now_ns() + REQUEST_TIMEOUT_NS;
	ssize_t n;

	descriptors[0] = descriptors[1] = -1; /* the caller closes them in any case */
	request->magic = GPUSEG_MSG_MAGIC;
	request->version = GPUSEG_ABI_VERSION;
	request->size = (uint32_t)request_size;
	request->seq = ++client->request_seq;
	if (descriptor_is_foreign(&client->socket)) {
		client_disown(client);
		return client_fail_lost(client);
	}
	do {
		n = send(client->socket.number, request, request_size, MSG_NOSIGNAL);
	} while (n < 0 && errno == EINTR);
	if (n < 0) {
		int ret = errno == EPIPE || errno == ECONNRESET ? -ENOTCONN : errno == EAGAIN ? -ETIMEDOUT : -errno;

		return fail_with(client, ret, "request to the daemon: %s", gpuseg_strerror(ret));
	}
	for (;;) {
		memset(reply, 0, reply_size);
		if (descriptor_is_foreign(&client->socket)) { /* since the request, or the answer to another one */
			client_disown(client);
			return client_fail_lost(client);
		}
		n = receive(client->socket.number, reply, reply_size, descriptors);
		if (n < 0)
			return fail_with(client, (int)n, "no answer from the daemon within %d s: %s",
					 (int)(REQUEST_TIMEOUT_NS / NS_PER_S), gpuseg_strerror((int)n));
		if ((size_t)n < sizeof(*reply) || reply->magic != GPUSEG_MSG_MAGIC) {
			close_descriptors(descriptors);
			return fail_with(client, -EPROTO,
					 "the daemon's answer has %zd bytes and magic %#x; is it a gpuseg daemon?", n,
					 reply->magic);
		}
		if (reply->version >> 16 != GPUSEG_ABI_MAJOR) {
			close_descriptors(descriptors);
			return fail_with(
				client, -EPROTONOSUPPORT,
				"the daemon speaks layout %u.%u, this library %d.%d; install one release of both",
				reply->version >> 16, reply->version & 0xffff, GPUSEG_ABI_MAJOR, GPUSEG_ABI_MINOR);
		}
		if (reply->seq == request->seq)
			break;
		close_descriptors(descriptors);
		if (now_ns() - deadline_ns >= 0)
			return fail_with(client, -ETIMEDOUT, "the daemon answers other requests than this one");
	}
	if (reply->type != request->type || reply->status > 0 || reply->status < -4095 ||
	    (reply->status == 0 && (size_t)n != reply_size)) {
		close_descriptors(descriptors);
		return fail_with(client, -EPROTO,
				 "the daemon's answer (type %u, status %d, %zd bytes) does not fit the request",
				 reply->type, reply->status, n);
	}
	return reply->status;
}

int client_request(struct gpuseg_client *client, void *request, size_t request_size, void *reply, size_t reply_size)
{
	int descriptors[2];
	int ret = client_exchange(client, request, request_size, reply, reply_size, descriptors);

	close_descriptors(descriptors);
	return ret;
}

int task_register(struct gpuseg_client *client, const struct gpuseg_task *task, struct gpuseg_slot **slot,
		  uint32_t *task_id)
{
	const struct gpuseg_task_attr *attr = &task->attr;
	struct gpuseg_msg_task_open request = {.msg.type = GPUSEG_MSG_TASK_OPEN,
					       .priority = attr->priority,
					       .gpu_priority = attr->gpu_priority,
					       .gpu = attr->gpu,
					       .flags = (task->always_wait ? GPUSEG_TASK_NO_OPTIMISTIC : 0) |
							task->boost << GPUSEG_TASK_BOOST_SHIFT |
							attr->reserve << GPUSEG_TASK_RESERVE_SHIFT,
					       .period_ns = attr->period_ns,
					       .deadline_ns = attr->deadline_ns,
					       .budget_ns = attr->budget_ns,
					       .overrun = (uint8_t)attr->on_overrun,
					       .partition = (uint8_t)attr->partition,
					       .weight = (uint16_t)attr->weight,
					       .window_us = (uint32_t)((attr->window_ns + 999) / 1000)};
	struct gpuseg_msg_task_reply reply = {0};
	struct gpuseg_slot *slots = (struct gpuseg_slot *)(client->session + 1);
	int ret;

	memcpy(request.name, attr->name, strlen(attr->name));
	ret = client_request(client, &request, sizeof(request), &reply, sizeof(reply));
	if (ret < 0) {
		if (reply.msg.status == ret && is_text(reply.text, sizeof(reply.text)))
			fail_with(client, ret, "%s", reply.text);
		else if (reply.msg.status == ret)
			fail_with(client, ret, "task \"%s\": the daemon refused it: %s", attr->name,
				  gpuseg_strerror(ret));
		return ret;
	}
	if (reply.task_id == 0 || reply.slot >= client->session->slot_count || reply.slot >= GPUSEG_SLOTS_MAX)
		return fail_with(client, -EPROTO, "task \"%s\": the daemon gave id %u and slot %u of %u", attr->name,
				 reply.task_id, reply.slot, client->session->slot_count);
	*slot = &slots[reply.slot];
	*task_id = reply.task_id;
	/* acquire; pairs with the daemon's release, which publishes the slot last */
	if (__atomic_load_n(&(*slot)->task_id, __ATOMIC_ACQUIRE) != reply.task_id ||
	    __atomic_load_n(&(*slot)->grant, __ATOMIC_RELAXED) != 0)
		return fail_with(client, -EPROTO, "task \"%s\": slot %u was not prepared for task %u", attr->name,
				 reply.slot, reply.task_id);
	return 0;
}
