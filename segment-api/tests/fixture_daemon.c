/* SPDX-License-Identifier: Apache-2.0 */
/* fixture_daemon.c - a daemon in a thread of the test: see fixture.h. */
#include "fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "check.h"
#include "platform.h"

#define INCARNATION 4711

static void make_session(struct fake_daemon *d)
{
	void *p;

	d->session_fd = memfd_create("gpuseg-session", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	CHECK(d->session_fd >= 0);
	CHECK_EQ(ftruncate(d->session_fd, GPUSEG_SESSION_BYTES), 0);
	CHECK_EQ(fcntl(d->session_fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL), 0);
	p = mmap(NULL, GPUSEG_SESSION_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, d->session_fd, 0);
	CHECK(p != MAP_FAILED);
	d->session = p;
	d->slots = (struct gpuseg_slot *)(d->session + 1);
	d->session->magic = GPUSEG_SESSION_MAGIC;
	d->session->size = GPUSEG_SESSION_BYTES;
	d->session->header_size = sizeof(struct gpuseg_session);
	d->session->slot_size = sizeof(struct gpuseg_slot);
	d->session->slot_count = GPUSEG_SLOTS_MAX;
	d->session->client_id = 1;
	d->session->daemon_pid = getpid();
	d->session->incarnation = INCARNATION;
	d->session->prepared_cycle = 0;
	__atomic_store_n(&d->session->version, GPUSEG_ABI_VERSION, __ATOMIC_RELEASE);
}

static void make_status(struct fake_daemon *d)
{
	char path[128];
	void *p;
	int fd;

	snprintf(path, sizeof(path), "%s/%s", d->dir, GPUSEG_STATUS_NAME);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	CHECK(fd >= 0);
	CHECK_EQ(ftruncate(fd, sizeof(*d->status)), 0);
	p = mmap(NULL, sizeof(*d->status), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	CHECK(p != MAP_FAILED);
	close(fd);
	d->status = p;
	d->status->magic = GPUSEG_STATUS_MAGIC;
	d->status->daemon_pid = getpid();
	d->status->incarnation = INCARNATION;
	__atomic_store_n(&d->status->heartbeat_ns, now_ns(), __ATOMIC_RELEASE);
	__atomic_store_n(&d->status->version, GPUSEG_ABI_VERSION, __ATOMIC_RELEASE);
}

static uint32_t next_random(struct fake_daemon *d)
{
	d->fuzz ^= d->fuzz << 13;
	d->fuzz ^= d->fuzz >> 17;
	d->fuzz ^= d->fuzz << 5;
	return d->fuzz;
}

/*
 * Flip some bits, shorten or lengthen the packet, or leave out its descriptors. It is the last answer of the
 * connection.
 */
static size_t garble(struct fake_daemon *d, uint8_t *packet, size_t size, size_t room, int descriptors[2])
{
	const uint32_t how = next_random(d);

	for (uint32_t n = how % 7; n > 0; n--)
		packet[next_random(d) % size] ^= (uint8_t)(1u << (next_random(d) % 8));
	if ((how >> 8) % 8 == 0)
		size = next_random(d) % size;
	else if ((how >> 8) % 8 == 1)
		size += next_random(d) % (room - size);
	if ((how >> 16) % 8 == 0)
		descriptors[0] = -1;
	else if ((how >> 16) % 8 == 1)
		descriptors[0] = descriptors[1];
	else if ((how >> 16) % 8 == 2)
		descriptors[1] = descriptors[0];
	return size;
}

static void send_with_descriptors(struct fake_daemon *d, const void *packet, size_t size, int a, int b)
{
	uint8_t garbled[2048] = {0};
	const bool garbling = d->fuzz != 0 && d->fuzz_type == (int)((const struct gpuseg_msg *)packet)->type;
	union {
		char bytes[CMSG_SPACE(2 * sizeof(int))];
		struct cmsghdr align;
	} control;
	struct iovec iov = {.iov_base = (void *)(uintptr_t)packet, .iov_len = size};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
	int descriptors[2] = {a, b};

	if (garbling) {
		memcpy(garbled, packet, size);
		iov.iov_base = garbled;
		iov.iov_len = garble(d, garbled, size, sizeof(garbled), descriptors);
	}
	memset(&control, 0, sizeof(control));
	if (descriptors[0] >= 0) {
		const size_t bytes = (descriptors[1] >= 0 ? 2 : 1) * sizeof(int);
		struct cmsghdr *c;

		msg.msg_control = &control;
		msg.msg_controllen = CMSG_SPACE(bytes);
		c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(bytes);
		memcpy(CMSG_DATA(c), descriptors, bytes);
	}
	(void)!sendmsg(d->connection, &msg, MSG_NOSIGNAL);
	if (garbling)
		shutdown(d->connection, SHUT_RDWR);
}

static struct gpuseg_msg reply_to(const struct fake_daemon *d, const struct gpuseg_msg *request, size_t size)
{
	return (struct gpuseg_msg){.magic = GPUSEG_MSG_MAGIC,
				   .version = d->wrong_version ? d->wrong_version : GPUSEG_ABI_VERSION,
				   .type = request->type,
				   .size = (uint32_t)size,
				   .seq = request->seq,
				   .status = (int)request->type == d->refuse_type ? d->refuse_status : 0};
}

static bool poll_queue(struct fake_daemon *d);

static int unsealed_session(const struct fake_daemon *d)
{
	const int fd = memfd_create("unsealed", MFD_CLOEXEC | MFD_ALLOW_SEALING); /* until this process ends */

	CHECK(fd >= 0);
	CHECK_EQ(write(fd, d->session, GPUSEG_SESSION_BYTES), (ssize_t)GPUSEG_SESSION_BYTES);
	return fd;
}

static void serve_hello(struct fake_daemon *d, const struct gpuseg_msg *request)
{
	struct gpuseg_msg_hello_reply reply = {
		.client_id = 1, .session_size = GPUSEG_SESSION_BYTES, .incarnation = INCARNATION};
	const char *shown;

	reply.msg = reply_to(d, request, sizeof(reply));
	if (reply.msg.status < 0) {
		snprintf(reply.text, sizeof(reply.text), "refused by the test");
		send_with_descriptors(d, &reply, sizeof(reply), -1, -1);
		return;
	}
	/* A client that connects again numbers its records from 1. */
	poll_queue(d);
	d->expected_seq = 0;
	shown = d->shown[0] ? d->shown : d->dir;
	snprintf(reply.queue_dir, sizeof(reply.queue_dir), "%s/q", shown);
	snprintf(reply.status_path, sizeof(reply.status_path), "%s/%s", shown, GPUSEG_STATUS_NAME);
	send_with_descriptors(d, &reply, sizeof(reply), d->unsealed ? unsealed_session(d) : d->session_fd, d->doorbell);
}

static void serve_open(struct fake_daemon *d, const struct gpuseg_msg_task_open *request)
{
	struct gpuseg_msg_task_reply reply = {.task_id = 0};

	reply.msg = reply_to(d, &request->msg, sizeof(reply));
	d->last_open = *request;
	if (reply.msg.status < 0) {
		snprintf(reply.text, sizeof(reply.text), "task \"%s\": not admitted", request->name);
	} else {
		reply.slot = d->opens % GPUSEG_SLOTS_MAX;
		reply.task_id = ++d->opens;
		__atomic_store_n(&d->slots[reply.slot].grant, 0, __ATOMIC_RELEASE);
		__atomic_store_n(&d->slots[reply.slot].task_id, reply.task_id, __ATOMIC_RELEASE);
	}
	send_with_descriptors(d, &reply, sizeof(reply), -1, -1);
}

static void serve_close(struct fake_daemon *d, const struct gpuseg_msg_task_close *request)
{
	struct gpuseg_msg_task_reply reply = {.task_id = request->task_id};

	reply.msg = reply_to(d, &request->msg, sizeof(reply));
	d->closes++;
	send_with_descriptors(d, &reply, sizeof(reply), -1, -1);
}

/* The descriptor that FAKE_FILE_... says, or -1. */
static int file_to_give(struct fake_daemon *d, int64_t cycle)
{
	char path[128];
	int fd;

	switch (d->files) {
	case FAKE_FILE_NONE:
		return -1;
	case FAKE_FILE_SHORT:
		fd = memfd_create("short", MFD_CLOEXEC);
		CHECK_EQ(ftruncate(fd, 100), 0);
		return fd;
	case FAKE_FILE_NO_FILE:
		return eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	case FAKE_FILE_OTHER:
		cycle = GPUSEG_QUEUE_METADATA;
		break;
	default:
		break;
	}
	fixture_path(d->queue, cycle, path);
	return open(path, (d->files == FAKE_FILE_READ_ONLY ? O_RDONLY : O_RDWR) | O_CLOEXEC);
}

static void serve_file(struct fake_daemon *d, const struct gpuseg_msg_queue_file *request)
{
	struct gpuseg_msg_queue_file_reply reply = {.cycle = request->cycle + (d->files == FAKE_FILE_MISLABELED)};
	int fd = -1;

	d->files_asked++;
	reply.msg = reply_to(d, &request->msg, sizeof(reply));
	if (reply.msg.status == 0)
		fd = file_to_give(d, request->cycle);
	else
		snprintf(reply.text, sizeof(reply.text), "refused by the test");
	send_with_descriptors(d, &reply, sizeof(reply), fd, d->files == FAKE_FILE_TWICE ? fd : -1);
	if (fd >= 0)
		close(fd);
}

static void serve_packet(struct fake_daemon *d)
{
	union {
		struct gpuseg_msg msg;
		struct gpuseg_msg_task_open open;
		struct gpuseg_msg_task_close close;
		struct gpuseg_msg_hello hello;
		struct gpuseg_msg_queue_file file;
		uint8_t bytes[1024];
	} packet;
	ssize_t n = recv(d->connection, &packet, sizeof(packet), MSG_DONTWAIT);

	if (n < 0 && errno == EAGAIN)
		return;
	if (n <= 0) {
		close(d->connection);
		d->connection = -1;
		return;
	}
	CHECK((size_t)n >= sizeof(packet.msg));
	CHECK_EQ(packet.msg.magic, GPUSEG_MSG_MAGIC);
	CHECK_EQ(packet.msg.size, n);
	if (d->mute) {
		d->unanswered++;
		return;
	}
	switch (packet.msg.type) {
	case GPUSEG_MSG_HELLO:
		CHECK_EQ(n, sizeof(packet.hello));
		serve_hello(d, &packet.msg);
		break;
	case GPUSEG_MSG_TASK_OPEN:
		CHECK_EQ(n, sizeof(packet.open));
		serve_open(d, &packet.open);
		break;
	case GPUSEG_MSG_TASK_CLOSE:
		CHECK_EQ(n, sizeof(packet.close));
		serve_close(d, &packet.close);
		break;
	case GPUSEG_MSG_QUEUE_FILE:
		CHECK_EQ(n, sizeof(packet.file));
		serve_file(d, &packet.file);
		break;
	default:
		CHECK(false, "message of type %u", packet.msg.type);
	}
}

static void grant(struct fake_daemon *d, uint32_t slot, uint64_t ticket, unsigned int verdict)
{
	struct gpuseg_slot *s = &d->slots[slot];

	__atomic_store_n(&s->grant, ticket << GPUSEG_GRANT_SHIFT | verdict, __ATOMIC_RELEASE);
	/* As Session.grant: the waiter stores `waiting`, then loads the grant. One of us sees the other. */
	full_fence();
	if (__atomic_load_n(&s->waiting, __ATOMIC_RELAXED)) {
		futex_wake_all((const void *)&s->grant);
		d->wakes++;
	}
}

bool fake_daemon_expect(struct fake_daemon *d, uint32_t slot)
{
	struct gpuseg_slot *s = &d->slots[slot];

	if (!__atomic_load_n(&s->wants_expected, __ATOMIC_ACQUIRE))
		return false;
	__atomic_fetch_add(&s->expected, 1, __ATOMIC_RELEASE);
	futex_wake_all(&s->expected);
	return true;
}

static void take_record(struct fake_daemon *d, const struct gpuseg_record *r)
{
	uint32_t slot = (r->task_id - 1) % GPUSEG_SLOTS_MAX;

	if (r->seq != ++d->expected_seq)
		d->sequence_broken = true;
	d->log[d->records % FAKE_LOG_MAX] = *r;
	__atomic_store_n(&d->records, d->records + 1, __ATOMIC_RELEASE);
	if (d->expects && r->kind == GPUSEG_RECORD_END)
		fake_daemon_expect(d, slot);
	if (r->kind != GPUSEG_RECORD_BEGIN || (r->flags & GPUSEG_FLAG_OPTIMISTIC))
		return;
	d->not_granted += d->grants != FAKE_GRANT;
	switch (d->grants) {
	case FAKE_GRANT:
		grant(d, slot, r->ticket, GPUSEG_VERDICT_GRANTED);
		break;
	case FAKE_REFUSE:
		grant(d, slot, r->ticket, GPUSEG_VERDICT_REFUSED);
		break;
	case FAKE_DELAY:
		d->grant_at_ns = now_ns() + d->delay_ns;
		d->grant_slot = slot;
		d->grant_ticket = r->ticket;
		break;
	case FAKE_IGNORE:
		break;
	}
}

/* Read what there is. True if anything was read. */
static bool poll_queue(struct fake_daemon *d)
{
	struct gpuseg_record r;
	bool any = false;
	int result;

	while ((result = fixture_tail_next(&d->tail, &r)) != 0) {
		CHECK(result > 0);
		if (result == 2) {
			char dir[64];
			int64_t next = d->tail.cycle + 1;

			if (fixture_announced_cycle(d->queue) < next)
				break; /* the roll is not complete: the file may not have its size yet */
			memcpy(dir, d->tail.dir, sizeof(dir));
			fixture_tail_close(&d->tail);
			fixture_tail_open(&d->tail, dir, next);
			continue;
		}
		if (r.kind != GPUSEG_RECORD_ROLL)
			take_record(d, &r);
		any = true;
	}
	if (d->grant_at_ns && now_ns() - d->grant_at_ns >= 0) {
		d->grant_at_ns = 0;
		grant(d, d->grant_slot, d->grant_ticket, GPUSEG_VERDICT_GRANTED);
	}
	return any;
}

static void accept_client(struct fake_daemon *d)
{
	int fd = accept4(d->listener, NULL, NULL, SOCK_CLOEXEC);

	CHECK(fd >= 0);
	if (d->connection >= 0)
		close(d->connection);
	d->connection = fd;
}

static void *serve(void *arg)
{
	struct fake_daemon *d = arg;
	unsigned int turns = 0;

	for (;;) {
		struct pollfd fds[4] = {{.fd = d->stop_pipe[0], .events = POLLIN},
					{.fd = d->listener, .events = POLLIN}};
		struct timespec timeout = {.tv_nsec = 200000};
		bool slept = false, worked = false;
		int ready;

		pthread_mutex_lock(&d->mutex);
		fds[2] = (struct pollfd){.fd = d->connection, .events = POLLIN};
		fds[3] = (struct pollfd){.fd = d->doorbell, .events = POLLIN};
		/* As seldom as possible, because clients read this cache line at every append. */
		if (d->beat && now_ns() - d->status->heartbeat_ns > 5 * NS_PER_MS)
			__atomic_store_n(&d->status->heartbeat_ns, now_ns(), __ATOMIC_RELEASE);
		if (!poll_queue(d) && d->sleeps) {
			__atomic_store_n(&d->status->sleeping, 1, __ATOMIC_SEQ_CST);
			full_fence();
			if (!poll_queue(d)) {
				timeout = timespec_of(d->sleep_ns);
				slept = true;
			} else {
				__atomic_store_n(&d->status->sleeping, 0, __ATOMIC_SEQ_CST);
				worked = true;
			}
		}
		pthread_mutex_unlock(&d->mutex);
		if (d->busy_poll && turns++ % 4096 != 0)
			continue;
		if (d->busy_poll || worked)
			timeout.tv_nsec = 0;
		ready = ppoll(fds, 4, &timeout, NULL);
		CHECK(ready >= 0 || errno == EINTR, "ppoll: %s", strerror(errno));
		if (fds[0].revents)
			return NULL;
		pthread_mutex_lock(&d->mutex);
		if (slept) {
			__atomic_store_n(&d->status->sleeping, 0, __ATOMIC_SEQ_CST);
			if (ready == 0 && poll_queue(d))
				d->slept_over++;
		}
		if (fds[3].revents & POLLIN) {
			uint64_t rings;

			if (read(d->doorbell, &rings, sizeof(rings)) == sizeof(rings))
				d->bells += rings;
		}
		if (fds[1].revents & POLLIN)
			accept_client(d);
		else if (fds[2].revents)
			serve_packet(d);
		pthread_mutex_unlock(&d->mutex);
	}
}

static void serve_from_now_on(struct fake_daemon *d)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	CHECK_EQ(mkdir(d->queue, 0700), 0);
	fixture_queue_create(d->queue, d->cycle_bytes);
	fixture_tail_open(&d->tail, d->queue, 0);
	make_session(d);
	make_status(d);
	d->doorbell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	CHECK(d->doorbell >= 0);
	d->connection = -1;
	d->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	CHECK(d->listener >= 0);
	snprintf(address.sun_path, sizeof(address.sun_path), "%s/%s", d->dir, GPUSEG_SOCKET_NAME);
	CHECK_EQ(bind(d->listener, (struct sockaddr *)&address, sizeof(address)), 0);
	CHECK_EQ(listen(d->listener, 8), 0);
	CHECK_EQ(pipe2(d->stop_pipe, O_CLOEXEC), 0);
	CHECK_EQ(pthread_create(&d->thread, NULL, serve, d), 0);
	d->running = true;
}

void fake_daemon_start_sized(struct fake_daemon *d, size_t cycle_bytes, bool busy_poll)
{
	memset(d, 0, sizeof(*d));
	fixture_directory(d->dir);
	snprintf(d->queue, sizeof(d->queue), "%.60s/q", d->dir);
	d->cycle_bytes = cycle_bytes;
	d->busy_poll = busy_poll;
	d->beat = true;
	d->sleep_ns = 15 * NS_PER_MS;
	d->log = calloc(FAKE_LOG_MAX, sizeof(*d->log));
	CHECK(d->log != NULL);
	CHECK_EQ(pthread_mutex_init(&d->mutex, NULL), 0);
	serve_from_now_on(d);
}

static void forget_shared(struct fake_daemon *d)
{
	fixture_tail_close(&d->tail);
	munmap(d->session, GPUSEG_SESSION_BYTES);
	munmap(d->status, sizeof(*d->status));
}

void fake_daemon_follow(struct fake_daemon *d)
{
	char path[128];

	forget_shared(d);
	fixture_remove(d->queue);
	snprintf(path, sizeof(path), "%s/%s", d->dir, GPUSEG_STATUS_NAME);
	unlink(path);
	snprintf(path, sizeof(path), "%s/%s", d->dir, GPUSEG_SOCKET_NAME);
	unlink(path);
	d->opens = d->closes = d->files_asked = 0;
	d->records = 0;
	d->expected_seq = 0;
	d->sequence_broken = false;
	serve_from_now_on(d);
}

void fake_daemon_start(struct fake_daemon *d)
{
	fake_daemon_start_sized(d, FIXTURE_CYCLE_BYTES, false);
}

void fake_daemon_kill(struct fake_daemon *d)
{
	if (!d->running)
		return;
	CHECK_EQ(write(d->stop_pipe[1], "", 1), 1);
	CHECK_EQ(pthread_join(d->thread, NULL), 0);
	d->running = false;
	close(d->listener);
	if (d->connection >= 0)
		close(d->connection);
	close(d->doorbell);
	close(d->session_fd);
	close(d->stop_pipe[0]);
	close(d->stop_pipe[1]);
}

void fake_daemon_stop(struct fake_daemon *d)
{
	fake_daemon_kill(d);
	forget_shared(d);
	pthread_mutex_destroy(&d->mutex);
	free(d->log);
	fixture_remove(d->dir);
}

void fake_daemon_grants(struct fake_daemon *d, enum fake_grants grants, int64_t delay_ns)
{
	pthread_mutex_lock(&d->mutex);
	d->grants = grants;
	d->delay_ns = delay_ns;
	pthread_mutex_unlock(&d->mutex);
}

void fake_daemon_files(struct fake_daemon *d, enum fake_files files)
{
	pthread_mutex_lock(&d->mutex);
	d->files = files;
	pthread_mutex_unlock(&d->mutex);
}

void fake_daemon_refuse(struct fake_daemon *d, enum gpuseg_msg_type type, int status)
{
	pthread_mutex_lock(&d->mutex);
	d->refuse_type = (int)type;
	d->refuse_status = status;
	pthread_mutex_unlock(&d->mutex);
}

unsigned int fake_daemon_files_asked(struct fake_daemon *d)
{
	unsigned int n;

	pthread_mutex_lock(&d->mutex);
	n = d->files_asked;
	pthread_mutex_unlock(&d->mutex);
	return n;
}

void fake_daemon_pregrant(struct fake_daemon *d, uint32_t slot, bool on)
{
	__atomic_store_n(&d->slots[slot].pregrant, on, __ATOMIC_RELEASE);
}

void fake_daemon_poison(struct fake_daemon *d, uint32_t code)
{
	__atomic_store_n(&d->session->poisoned, code, __ATOMIC_RELEASE);
}

void fake_daemon_drop(struct fake_daemon *d, uint32_t code)
{
	pthread_mutex_lock(&d->mutex);
	fake_daemon_poison(d, code);
	for (uint32_t slot = 0; slot < GPUSEG_SLOTS_MAX; slot++)
		grant(d, slot, d->slots[slot].grant >> GPUSEG_GRANT_SHIFT, GPUSEG_VERDICT_POISONED);
	pthread_mutex_unlock(&d->mutex);
}

void fake_daemon_sleeps(struct fake_daemon *d, bool on)
{
	pthread_mutex_lock(&d->mutex);
	d->sleeps = on;
	pthread_mutex_unlock(&d->mutex);
}

void fake_daemon_roll(struct fake_daemon *d, bool ahead)
{
	int64_t cycle;

	pthread_mutex_lock(&d->mutex);
	poll_queue(d);
	cycle = d->tail.cycle;
	pthread_mutex_unlock(&d->mutex);
	if (ahead) {
		fixture_cycle_create(d->queue, cycle + 1, d->cycle_bytes);
		__atomic_store_n(&d->session->prepared_cycle, cycle + 1, __ATOMIC_RELEASE);
		__atomic_fetch_add(&d->session->roll_generation, 1, __ATOMIC_RELEASE);
		futex_wake_all((const void *)&d->session->roll_generation);
		usleep(50000);
	}
	fixture_roll(d->queue, cycle, d->cycle_bytes);
}

size_t fake_daemon_records(struct fake_daemon *d)
{
	size_t n;

	pthread_mutex_lock(&d->mutex);
	n = d->records;
	pthread_mutex_unlock(&d->mutex);
	return n;
}

size_t fake_daemon_peek(struct fake_daemon *d)
{
	return __atomic_load_n(&d->records, __ATOMIC_ACQUIRE);
}

uint64_t fake_daemon_wakes(struct fake_daemon *d)
{
	uint64_t n;

	pthread_mutex_lock(&d->mutex); /* held by the daemon from the grant to the count */
	n = d->wakes;
	pthread_mutex_unlock(&d->mutex);
	return n;
}

struct gpuseg_record fake_daemon_record(struct fake_daemon *d, size_t i)
{
	struct gpuseg_record r;

	pthread_mutex_lock(&d->mutex);
	CHECK(i < d->records);
	r = d->log[i % FAKE_LOG_MAX];
	pthread_mutex_unlock(&d->mutex);
	return r;
}

bool fake_daemon_wait(struct fake_daemon *d, size_t n, struct gpuseg_record *last)
{
	int64_t deadline = now_ns() + 30 * NS_PER_S;

	while (fake_daemon_records(d) < n) {
		if (now_ns() - deadline >= 0)
			return false;
		usleep(100);
	}
	if (last)
		*last = fake_daemon_record(d, n - 1);
	return true;
}
