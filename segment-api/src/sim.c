/* SPDX-License-Identifier: Apache-2.0 */
/* sim.c - client of the virtual GPU; see gpuseg_sim.h. A library of its own, without libgpuseg. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "gpuseg_sim.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "descriptor.h"
#include "directory.h"
#include "gpuseg_abi.h"

#define NS_PER_S INT64_C(1000000000)
#define LIVENESS_NS INT64_C(100000000)			/* how often a waiter checks that the GPU is alive */
#define DURATION_MAX_NS (24 * INT64_C(3600) * NS_PER_S) /* the virtual GPU's own limit */

enum { SPINS_PER_CLOCK_READ = 64 };

struct gpuseg_sim {
	struct descriptor socket;
	pthread_mutex_t lock; /* guards submitted and the order of packets */
	uint64_t submitted;
	struct gpuseg_sim_fence *fence; /* shared with the virtual GPU */
};

static int64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * NS_PER_S + ts.tv_nsec;
}

static void relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__) || defined(__arm__)
	__asm__ volatile("yield");
#endif
}

/* The runtime directory, by the rule of gpuseg_runtime_dir(). */
static int socket_path(char *path, size_t size, char found[GPUSEG_PATH_BYTES], const char *chosen)
{
	int length =
		runtime_directory(found, GPUSEG_PATH_BYTES, chosen, getenv("XDG_RUNTIME_DIR"), GPUSEG_SIM_SOCKET_NAME);

	if (length < 0 || length >= GPUSEG_PATH_BYTES)
		return -ENAMETOOLONG;
	length = snprintf(path, size, "%s/%s", found, GPUSEG_SIM_SOCKET_NAME);
	return length < 0 || (size_t)length >= size ? -ENAMETOOLONG : 0;
}

static struct gpuseg_sim_msg request(uint32_t op)
{
	return (struct gpuseg_sim_msg){.magic = GPUSEG_SIM_MAGIC, .version = GPUSEG_ABI_VERSION, .op = op};
}

static int send_request(int fd, const struct gpuseg_sim_msg *m)
{
	ssize_t sent;

	do
		sent = send(fd, m, sizeof(*m), MSG_NOSIGNAL);
	while (sent < 0 && errno == EINTR);
	return sent < 0 ? -errno : 0;
}

/* Receives the reply to OPEN and the descriptor of the fence page. */
static int receive_fence(int fd, int *descriptor)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} ancillary;
	struct gpuseg_sim_msg m;
	struct iovec part = {&m, sizeof(m)};
	struct msghdr header = {
		.msg_iov = &part,
		.msg_iovlen = 1,
		.msg_control = ancillary.bytes,
		.msg_controllen = sizeof(ancillary.bytes),
	};
	ssize_t length;

	*descriptor = -1;
	do
		length = recvmsg(fd, &header, MSG_CMSG_CLOEXEC);
	while (length < 0 && errno == EINTR);
	if (length < 0)
		return -errno;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&header); c; c = CMSG_NXTHDR(&header, c))
		if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS && c->cmsg_len == CMSG_LEN(sizeof(int)))
			memcpy(descriptor, CMSG_DATA(c), sizeof(int));
	if (length == 0)
		return -ECONNRESET;
	if ((size_t)length != sizeof(m) || m.magic != GPUSEG_SIM_MAGIC || m.version >> 16 != GPUSEG_ABI_MAJOR ||
	    m.op != GPUSEG_SIM_OPEN)
		return -EPROTO;
	if (m.status != 0)
		return m.status;
	return *descriptor < 0 ? -EPROTO : 0;
}

/* `found` is the directory if it was found by rule, not named: then it is that of a daemon of root or this user. */
static int open_context(gpuseg_sim *sim, const struct sockaddr_un *address, const char *found)
{
	const struct gpuseg_sim_msg m = request(GPUSEG_SIM_OPEN);
	struct stat file;
	void *page;
	int descriptor = -1, rc = 0, fd, seals;

	if (found && is_directory(found) && !is_believed(found))
		return -ECONNREFUSED;
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	descriptor_take(&sim->socket, fd);
	if (connect(fd, (const struct sockaddr *)address, sizeof(*address)) != 0)
		return -errno;
	if (found && !is_daemon_of(fd, found))
		return -ECONNREFUSED;
	rc = send_request(fd, &m);
	if (rc == -EPIPE)
		return -ECONNRESET;
	if (rc == 0)
		rc = receive_fence(fd, &descriptor);
	if (rc == 0 && (fstat(descriptor, &file) != 0 || file.st_size < (off_t)sizeof(struct gpuseg_sim_fence)))
		rc = -EPROTO;
	if (rc == 0) {
		seals = fcntl(descriptor, F_GET_SEALS);
		if (seals < 0 || !(seals & F_SEAL_SHRINK)) /* a page that is cut off ends this process with SIGBUS */
			rc = -EPROTO;
	}
	if (rc == 0) {
		page = mmap(NULL, sizeof(struct gpuseg_sim_fence), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
		if (page == MAP_FAILED)
			rc = -errno;
		else
			sim->fence = page;
	}
	if (descriptor >= 0)
		close(descriptor);
	return rc;
}

int gpuseg_sim_open(const char *directory, gpuseg_sim **sim)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	char found[GPUSEG_PATH_BYTES];
	gpuseg_sim *s;
	int rc;

	if (!sim)
		return -EINVAL;
	*sim = NULL;
	if (!directory)
		directory = getenv("GPUSEG_DIR");
	rc = socket_path(address.sun_path, sizeof(address.sun_path), found, directory);
	if (rc != 0)
		return rc;
	s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	s->socket.number = -1;
	rc = -pthread_mutex_init(&s->lock, NULL);
	if (rc != 0) {
		free(s);
		return rc;
	}
	rc = open_context(s, &address, directory && *directory ? NULL : found);
	if (rc != 0) {
		gpuseg_sim_close(s);
		return rc;
	}
	*sim = s;
	return 0;
}

int gpuseg_sim_submit(gpuseg_sim *sim, int64_t duration_ns, uint64_t *fence)
{
	struct gpuseg_sim_msg m = request(GPUSEG_SIM_SUBMIT);
	int rc;

	if (!sim || duration_ns < 0 || duration_ns > DURATION_MAX_NS)
		return -EINVAL;
	m.arg_ns = duration_ns;
	pthread_mutex_lock(&sim->lock);
	m.arg = sim->submitted + 1;
	rc = descriptor_is_foreign(&sim->socket) ? -ENODEV : send_request(sim->socket.number, &m);
	if (rc == 0)
		/* relaxed: only lets wait() refuse a number that no kernel has */
		__atomic_store_n(&sim->submitted, m.arg, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&sim->lock);
	if (rc == 0 && fence)
		*fence = m.arg;
	return rc == -EPIPE || rc == -ECONNRESET ? -ENODEV : rc;
}

static bool is_complete(const gpuseg_sim *sim, uint64_t fence)
{
	/* acquire; pairs with the release in vgpu/main.c: on_completed */
	return __atomic_load_n(&sim->fence->completed, __ATOMIC_ACQUIRE) >= fence;
}

/* Also if the program has closed the socket: nobody could say then whether the virtual GPU still runs. */
static bool is_gone(const gpuseg_sim *sim)
{
	struct pollfd p = {.fd = sim->socket.number};

	if (descriptor_is_foreign(&sim->socket))
		return true;
	return poll(&p, 1, 0) > 0 && (p.revents & (POLLHUP | POLLERR)) != 0;
}

static int wait_busy(const gpuseg_sim *sim, uint64_t fence, int64_t deadline_ns)
{
	int64_t look_ns = now_ns() + LIVENESS_NS;

	for (;;) {
		for (int i = 0; i < SPINS_PER_CLOCK_READ; i++) {
			if (is_complete(sim, fence))
				return 0;
			relax();
		}
		const int64_t time_ns = now_ns();
		if (time_ns >= deadline_ns)
			return -ETIMEDOUT;
		if (time_ns >= look_ns) {
			if (is_gone(sim))
				return is_complete(sim, fence) ? 0 : -ENODEV;
			look_ns = time_ns + LIVENESS_NS;
		}
	}
}

static int wait_blocked(gpuseg_sim *sim, uint64_t fence, int64_t deadline_ns)
{
	int rc = 0;

	/* Counts the sleepers: several threads may wait. seq_cst; pairs with the fence in vgpu/main.c: on_completed */
	__atomic_fetch_add(&sim->fence->waiting, 1, __ATOMIC_SEQ_CST);
	for (;;) {
		const uint64_t completed = __atomic_load_n(&sim->fence->completed, __ATOMIC_SEQ_CST);
		const int64_t time_ns = now_ns();

		if (completed >= fence)
			break;
		if (time_ns >= deadline_ns) {
			rc = -ETIMEDOUT;
			break;
		}
		const int64_t left_ns = deadline_ns - time_ns < LIVENESS_NS ? deadline_ns - time_ns : LIVENESS_NS;
		const struct timespec timeout = {(time_t)(left_ns / NS_PER_S), (long)(left_ns % NS_PER_S)};

		/* The futex word is the low half; the layout is little-endian. Whatever is returned: look again. */
		if (syscall(SYS_futex, &sim->fence->completed, FUTEX_WAIT, (uint32_t)completed, &timeout, NULL, 0) !=
			    0 &&
		    errno == ETIMEDOUT && is_gone(sim)) {
			rc = is_complete(sim, fence) ? 0 : -ENODEV;
			break;
		}
	}
	__atomic_fetch_sub(&sim->fence->waiting, 1, __ATOMIC_RELAXED);
	return rc;
}

int gpuseg_sim_wait(gpuseg_sim *sim, uint64_t fence, enum gpuseg_sim_wait_mode mode, int64_t timeout_ns)
{
	int64_t deadline_ns = INT64_MAX;

	if (!sim || (mode != GPUSEG_SIM_BLOCK && mode != GPUSEG_SIM_BUSY) ||
	    fence > __atomic_load_n(&sim->submitted, __ATOMIC_RELAXED))
		return -EINVAL;
	if (is_complete(sim, fence))
		return 0;
	if (timeout_ns == 0)
		return is_gone(sim) ? -ENODEV : -ETIMEDOUT;
	if (timeout_ns > 0 && __builtin_add_overflow(now_ns(), timeout_ns, &deadline_ns))
		deadline_ns = INT64_MAX;
	return mode == GPUSEG_SIM_BUSY ? wait_busy(sim, fence, deadline_ns) : wait_blocked(sim, fence, deadline_ns);
}

int gpuseg_sim_completed(gpuseg_sim *sim, uint64_t *fence, int64_t *completed_ns)
{
	uint64_t before, after;
	int64_t time_ns;

	if (!sim)
		return -EINVAL;
	/* The time is stored before its number, so with the number unchanged around the read it is that kernel's, or
	 * the next one's whose number is just being stored. */
	after = __atomic_load_n(&sim->fence->completed, __ATOMIC_ACQUIRE);
	do {
		before = after;
		time_ns = __atomic_load_n(&sim->fence->completed_ns, __ATOMIC_ACQUIRE);
		after = __atomic_load_n(&sim->fence->completed, __ATOMIC_ACQUIRE);
	} while (after != before);
	if (fence)
		*fence = after;
	if (completed_ns)
		*completed_ns = time_ns;
	return 0;
}

void gpuseg_sim_close(gpuseg_sim *sim)
{
	if (!sim)
		return;
	descriptor_close(&sim->socket);
	if (sim->fence)
		munmap(sim->fence, sizeof(*sim->fence));
	pthread_mutex_destroy(&sim->lock);
	free(sim);
}
