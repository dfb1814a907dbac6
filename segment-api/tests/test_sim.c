/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpuseg_sim.h against a peer that answers wrongly, late or not at all. rt-scheduler/native/tests tests it with the
 * real virtual GPU.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "gpuseg_abi.h"
#include "gpuseg_sim.h"

#if defined(__SANITIZE_THREAD__)
#define THREAD_SANITIZER
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define THREAD_SANITIZER
#endif
#endif

static char directory[64];
static unsigned failed;

#define EXPECT(what, actual, expected)                                                                                 \
	do {                                                                                                           \
		const long long a_ = (actual), e_ = (expected);                                                        \
		if (a_ != e_) {                                                                                        \
			fprintf(stderr, "%s:%d: %s: %lld instead of %lld\n", __FILE__, __LINE__, what, a_, e_);        \
			failed++;                                                                                      \
		}                                                                                                      \
	} while (0)

enum { SUBMITS_SERVED = 3 };

enum behaviour {
	SOUND,
	HANG_UP,
	SHORT_REPLY,
	WRONG_MAGIC,
	WRONG_VERSION,
	WRONG_OP,
	REFUSE,
	NO_DESCRIPTOR,
	SMALL_PAGE,
	UNSEALED
};

struct peer {
	enum behaviour behaviour;
	int listener;
	struct gpuseg_sim_fence *fence; /* valid one */
	uint64_t submits;		/* valid and in order */
};

static void reply(int fd, const struct peer *peer, int descriptor)
{
	struct gpuseg_sim_msg m = {.magic = GPUSEG_SIM_MAGIC, .version = GPUSEG_ABI_VERSION, .op = GPUSEG_SIM_OPEN};
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} ancillary = {0};
	struct iovec part = {&m, peer->behaviour == SHORT_REPLY ? 100 : sizeof(m)};
	struct msghdr header = {.msg_iov = &part, .msg_iovlen = 1};

	m.magic ^= peer->behaviour == WRONG_MAGIC;
	m.version += peer->behaviour == WRONG_VERSION ? 1 << 16 : 0;
	m.op += peer->behaviour == WRONG_OP;
	m.status = peer->behaviour == REFUSE ? -ENOSPC : 0;
	if (peer->behaviour != NO_DESCRIPTOR) {
		header.msg_control = ancillary.bytes;
		header.msg_controllen = sizeof(ancillary.bytes);
		struct cmsghdr *c = CMSG_FIRSTHDR(&header);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(c), &descriptor, sizeof(int));
	}
	if (sendmsg(fd, &header, MSG_NOSIGNAL) < 0)
		perror("sendmsg");
}

static void *serve(void *argument)
{
	struct peer *peer = argument;
	const int fd = accept(peer->listener, NULL, NULL);
	const int page = memfd_create("fence", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	struct gpuseg_sim_msg m;

	if (fd < 0 || page < 0 || recv(fd, &m, sizeof(m), 0) != sizeof(m) || m.op != GPUSEG_SIM_OPEN)
		abort();
	if (ftruncate(page, peer->behaviour == SMALL_PAGE ? 8 : (off_t)sizeof(*peer->fence)) != 0)
		abort();
	if (peer->behaviour != UNSEALED && fcntl(page, F_ADD_SEALS, F_SEAL_SHRINK) != 0)
		abort();
	if (peer->behaviour == SOUND) {
		peer->fence = mmap(NULL, sizeof(*peer->fence), PROT_READ | PROT_WRITE, MAP_SHARED, page, 0);
		if (peer->fence == MAP_FAILED)
			abort();
	}
	if (peer->behaviour != HANG_UP)
		reply(fd, peer, page);
	close(page);
	while (peer->behaviour == SOUND && peer->submits < SUBMITS_SERVED && recv(fd, &m, sizeof(m), 0) == sizeof(m)) {
		if (m.magic != GPUSEG_SIM_MAGIC || m.op != GPUSEG_SIM_SUBMIT || m.arg != peer->submits + 1)
			break;
		peer->submits++;
		if (m.arg_ns == 0) { /* a kernel of length 0 completes, any other never does */
			peer->fence->completed_ns = 12345;
			__atomic_store_n(&peer->fence->completed, m.arg, __ATOMIC_RELEASE);
		}
	}
	close(fd);
	return NULL;
}

static int with_peer(struct peer *peer, gpuseg_sim **sim, pthread_t *thread)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	snprintf(address.sun_path, sizeof(address.sun_path), "%s/%s", directory, GPUSEG_SIM_SOCKET_NAME);
	unlink(address.sun_path);
	peer->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (peer->listener < 0 || bind(peer->listener, (struct sockaddr *)&address, sizeof(address)) != 0 ||
	    listen(peer->listener, 1) != 0 || pthread_create(thread, NULL, serve, peer) != 0)
		abort();
	return gpuseg_sim_open(directory, sim);
}

static void should_refuse_a_peer_that_is_no_virtual_gpu(void)
{
	static const struct {
		const char *what;
		enum behaviour behaviour;
		int error;
	} cases[] = {
		{"hangs up", HANG_UP, -ECONNRESET},	   {"short reply", SHORT_REPLY, -EPROTO},
		{"wrong magic", WRONG_MAGIC, -EPROTO},	   {"wrong version", WRONG_VERSION, -EPROTO},
		{"wrong operation", WRONG_OP, -EPROTO},	   {"refuses", REFUSE, -ENOSPC},
		{"no descriptor", NO_DESCRIPTOR, -EPROTO}, {"page too small", SMALL_PAGE, -EPROTO},
		{"page not sealed", UNSEALED, -EPROTO},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct peer peer = {.behaviour = cases[i].behaviour};
		gpuseg_sim *sim = (gpuseg_sim *)&peer;
		pthread_t thread;

		EXPECT(cases[i].what, with_peer(&peer, &sim, &thread), cases[i].error);
		EXPECT("handle after a failure", sim == NULL, 1);
		pthread_join(thread, NULL);
		close(peer.listener);
	}
}

static void should_refuse_bad_arguments(void)
{
	char path[256];
	gpuseg_sim *sim;

	memset(path, 'x', sizeof(path) - 1);
	path[sizeof(path) - 1] = '\0';
	EXPECT("no handle", gpuseg_sim_open(directory, NULL), -EINVAL);
	EXPECT("long path", gpuseg_sim_open(path, &sim), -ENAMETOOLONG);
	EXPECT("nobody there", gpuseg_sim_open("/nonexistent", &sim), -ENOENT);
	EXPECT("submit NULL", gpuseg_sim_submit(NULL, 1, NULL), -EINVAL);
	EXPECT("wait NULL", gpuseg_sim_wait(NULL, 0, GPUSEG_SIM_BLOCK, 0), -EINVAL);
	EXPECT("completed NULL", gpuseg_sim_completed(NULL, NULL, NULL), -EINVAL);
	gpuseg_sim_close(NULL);
}

static void should_wait_and_notice_that_the_peer_has_gone(void)
{
	struct peer peer = {.behaviour = SOUND};
	int64_t completed_ns = -1;
	uint64_t fence = 0;
	gpuseg_sim *sim;
	pthread_t thread;

	EXPECT("open", with_peer(&peer, &sim, &thread), 0);
	EXPECT("negative", gpuseg_sim_submit(sim, -1, &fence), -EINVAL);
	EXPECT("25 hours", gpuseg_sim_submit(sim, INT64_C(90000000000000), &fence), -EINVAL);
	EXPECT("submit", gpuseg_sim_submit(sim, 0, &fence), 0);
	EXPECT("fence", (long long)fence, 1);
	EXPECT("busy", gpuseg_sim_wait(sim, 1, GPUSEG_SIM_BUSY, -1), 0);
	EXPECT("completed", gpuseg_sim_completed(sim, &fence, &completed_ns), 0);
	EXPECT("completed fence", (long long)fence, 1);
	EXPECT("completed time", completed_ns, 12345);
	EXPECT("submit", gpuseg_sim_submit(sim, 1, &fence), 0);
	EXPECT("unknown mode", gpuseg_sim_wait(sim, 1, (enum gpuseg_sim_wait_mode)7, 0), -EINVAL);
	EXPECT("future fence", gpuseg_sim_wait(sim, 3, GPUSEG_SIM_BLOCK, 0), -EINVAL);
	EXPECT("look", gpuseg_sim_wait(sim, 2, GPUSEG_SIM_BLOCK, 0), -ETIMEDOUT);
	EXPECT("short wait", gpuseg_sim_wait(sim, 2, GPUSEG_SIM_BLOCK, 1000000), -ETIMEDOUT);
	/* The peer leaves after the third kernel. */
	EXPECT("last submit", gpuseg_sim_submit(sim, 1, &fence), 0);
	pthread_join(thread, NULL);
	EXPECT("sleeping wait", gpuseg_sim_wait(sim, fence, GPUSEG_SIM_BLOCK, -1), -ENODEV);
	EXPECT("busy wait", gpuseg_sim_wait(sim, fence, GPUSEG_SIM_BUSY, -1), -ENODEV);
	EXPECT("submit to nobody", gpuseg_sim_submit(sim, 1, NULL), -ENODEV);
	EXPECT("the peer saw every kernel in order", (long long)peer.submits, SUBMITS_SERVED);
	munmap(peer.fence, sizeof(*peer.fence));
	close(peer.listener);
	gpuseg_sim_close(sim);
}

#ifndef THREAD_SANITIZER
/* That one of this process's sockets is connected to the peer's by its path. */
static int number_of_its_socket(void)
{
	for (int number = 0; number < 1024; number++) {
		struct sockaddr_un address = {.sun_family = AF_UNSPEC};
		socklen_t size = sizeof(address);

		if (getpeername(number, (struct sockaddr *)&address, &size) == 0 && address.sun_family == AF_UNIX &&
		    size > offsetof(struct sockaddr_un, sun_path) &&
		    strstr(address.sun_path, directory) == address.sun_path)
			return number;
	}
	abort();
}

/* The program puts a socket of its own in the place of the virtual GPU's. */
static void should_leave_files_alone_that_have_its_number(void)
{
	struct peer peer = {.behaviour = SOUND};
	char bytes[sizeof(struct gpuseg_sim_msg)];
	uint64_t fence = 0;
	gpuseg_sim *sim;
	pthread_t thread;
	int ends[2], number;

	EXPECT("open", with_peer(&peer, &sim, &thread), 0);
	EXPECT("submit", gpuseg_sim_submit(sim, 1, &fence), 0);
	number = number_of_its_socket();
	EXPECT("sockets", socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, ends), 0);
	EXPECT("cover", dup2(ends[0], number), number);
	pthread_join(thread, NULL); /* so it was that one */
	EXPECT("submit", gpuseg_sim_submit(sim, 1, NULL), -ENODEV);
	EXPECT("look", gpuseg_sim_wait(sim, fence, GPUSEG_SIM_BLOCK, 0), -ENODEV);
	EXPECT("sleeping wait", gpuseg_sim_wait(sim, fence, GPUSEG_SIM_BLOCK, 1000000000), -ENODEV);
	EXPECT("busy wait", gpuseg_sim_wait(sim, fence, GPUSEG_SIM_BUSY, 1000000000), -ENODEV);
	EXPECT("received", recv(ends[1], bytes, sizeof(bytes), 0), -1);
	gpuseg_sim_close(sim);
	EXPECT("still open", close(number), 0);
	munmap(peer.fence, sizeof(*peer.fence));
	close(peer.listener);
	close(ends[0]);
	close(ends[1]);
}
#endif

int main(void)
{
	snprintf(directory, sizeof(directory), "/tmp/gpuseg-test-sim-XXXXXX");
	if (!mkdtemp(directory)) {
		perror("mkdtemp");
		return 1;
	}
	alarm(300);
	should_refuse_bad_arguments();
	should_refuse_a_peer_that_is_no_virtual_gpu();
	should_wait_and_notice_that_the_peer_has_gone();
#ifndef THREAD_SANITIZER /* which reports what closes a descriptor that another thread uses */
	should_leave_files_alone_that_have_its_number();
#endif

	char path[128];
	snprintf(path, sizeof(path), "%s/%s", directory, GPUSEG_SIM_SOCKET_NAME);
	unlink(path);
	rmdir(directory);
	return failed ? 1 : 0;
}
