/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The KFD side of libgpuseg-preload.so: records the queues that the process creates, and runs a thread, the agent, that
 * disables and enables them as the daemon orders (gpuseg_kfd_agent.h).
 *
 * To disable a queue is UPDATE_QUEUE with percentage 0 and all other values as the application wants them. AMD's own
 * runtime suspends a queue in the same way. Percentages are virtual: the library stores those of the application and
 * reports them back unchanged; the kernel gets the smaller of what the application and the scheduler want. So no call
 * of the application enables a held queue, and a release applies the last value that the application asked for.
 *
 * A queue that is created while its GPU is held gets percentage 0, so the driver never loads it and it cannot run. A
 * hold that arrives while a queue is being created waits for that call (create_lock).
 *
 * Locks, in this order: create_lock, then the lock of a queue, then holds_lock, which is not held during any call. The
 * kernel takes a mutex of the process in all these calls, so create_lock delays no call that would not wait there.
 *
 * Source of numbers and rules: the kernel's public header kfd_ioctl.h, its driver in 6.1 and 6.12. No AMD hardware.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "../src/descriptor.h"
#include "gpuseg_kfd_agent.h"
#include "preload.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#define DEVICE "/dev/kfd"
#define DEVICE_NUMBER "/sys/class/kfd/kfd/dev"
#define CREATE_QUEUE 0x02
#define DESTROY_QUEUE 0x03
#define UPDATE_QUEUE 0x07
#define CREATE_PROCESS 0x27
#define QUEUES 1024 /* KFD's limit per process; KFD assigns the lowest free number */
#define TYPE_COMPUTE 0u
#define TYPE_COMPUTE_AQL 2u
#define PERCENT 0xffu /* the bits above it name an XCC since Linux 6.12 */
#define FULL 100u
#define STACK_BYTES (128 * 1024)
#define PRIORITY_DEFAULT 50
#define SAME_CALL_MAX 64 /* how often an interrupted call is repeated; AMD's library repeats it without limit */
#define NS_PER_MS 1000000LL
#define RETRY_NS (100 * NS_PER_MS)
#define NEVER INT64_MAX

struct create_queue {
	uint64_t ring_base;
	uint64_t write_pointer;
	uint64_t read_pointer;
	uint64_t doorbell_offset;
	uint32_t ring_size;
	uint32_t gpu_id;
	uint32_t type;
	uint32_t percentage;
	uint32_t priority;
	uint32_t queue_id;
};
_Static_assert(offsetof(struct create_queue, percentage) == 44, "percentage");
_Static_assert(sizeof(struct create_queue) == 56, "what is looked at");

struct update_queue {
	uint64_t ring_base;
	uint32_t queue_id;
	uint32_t ring_size;
	uint32_t percentage;
	uint32_t priority;
};
_Static_assert(sizeof(struct update_queue) == 24, "update");

struct queue {
	pthread_mutex_t lock;
	bool live;
	uint32_t gpu_id;
	uint32_t type;
	uint32_t sent; /* percentage that the kernel has */
	struct update_queue wanted;
};

struct hold {
	bool on; /* holds_lock */
	uint32_t gpu_id;
	uint32_t flags;
	/* used by the agent only */
	uint32_t order;
	uint32_t beat;
	int64_t beat_ns;
	int64_t limit_ns;
	bool answer;
	bool refused;
};

static struct {
	pid_t pid; /* of the process that this state belongs to: a forked child starts anew */
	gpuseg_ioctl_fn next;
	struct gpuseg_kfd_agent *page;
	int page_fd;
	dev_t page_device;
	ino_t page_inode;
	bool tried;
	bool several;
	int app_fd;		/* the application's, of its newest queue */
	struct descriptor held; /* ours, while something is held */
	uint32_t highest;
	struct queue queues[QUEUES];
	struct hold holds[GPUSEG_KFD_AGENT_SLOTS];
} agent = {.page_fd = -1, .app_fd = -1, .held.number = -1};

static pthread_mutex_t start_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t create_lock;
static pthread_mutex_t holds_lock;

static int64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

/* ---- is it /dev/kfd? ---- */

/*
 * The descriptor itself is checked at every call that matters, so duplicates and reused numbers need not be tracked. It
 * is known by its name, or, if it has another name (in a container), by its device number.
 */
static bool is_kfd(int fd)
{
	char link[40], target[64], text[16];
	unsigned int major_number, minor_number;
	struct stat file;
	ssize_t n;
	int numbers;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, target, sizeof(target));
	if (n == (ssize_t)sizeof(DEVICE) - 1 && memcmp(target, DEVICE, sizeof(DEVICE) - 1) == 0)
		return true;
	if (fstat(fd, &file) != 0 || !S_ISCHR(file.st_mode))
		return false;
	numbers = open(DEVICE_NUMBER, O_RDONLY | O_CLOEXEC);
	if (numbers < 0)
		return false;
	n = read(numbers, text, sizeof(text) - 1);
	close(numbers);
	text[n > 0 ? n : 0] = 0;
	return sscanf(text, "%u:%u", &major_number, &minor_number) == 2 &&
	       file.st_rdev == makedev(major_number, minor_number);
}

/* A descriptor for the agent, because the application may close its own at any time. -errno if there is none. */
static int own_descriptor(void)
{
	int fd;

	if (agent.held.number >= 0 && !descriptor_is_foreign(&agent.held))
		return agent.held.number;
	fd = fcntl(__atomic_load_n(&agent.app_fd, __ATOMIC_ACQUIRE), F_DUPFD_CLOEXEC, 3);
	if (fd >= 0 && !is_kfd(fd)) {
		close(fd);
		fd = -1;
	}
	if (fd < 0)
		fd = open(DEVICE, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	descriptor_take(&agent.held, fd);
	return fd;
}

/* ---- holds ---- */

static bool is_held(uint32_t gpu_id, uint32_t type)
{
	const bool compute = type == TYPE_COMPUTE || type == TYPE_COMPUTE_AQL;
	bool held = false;

	pthread_mutex_lock(&holds_lock);
	for (unsigned i = 0; i < GPUSEG_KFD_AGENT_SLOTS && !held; i++)
		held = agent.holds[i].on && agent.holds[i].gpu_id == gpu_id &&
		       (compute || (agent.holds[i].flags & GPUSEG_KFD_AGENT_ALL_QUEUES));
	pthread_mutex_unlock(&holds_lock);
	return held;
}

/* min(application, scheduler), in the low byte. An invalid value is passed on for the kernel to refuse. */
static uint32_t allowed(uint32_t percentage, bool held)
{
	return held && (percentage & PERCENT) <= FULL ? percentage & ~PERCENT : percentage;
}

static int call(int fd, unsigned long request, void *argument)
{
	int result, left = SAME_CALL_MAX;

	do {
		result = agent.next(fd, request, argument);
	} while (result != 0 && (errno == EINTR || errno == EAGAIN) && --left > 0);
	return result == 0 ? 0 : -errno;
}

/* Sets the percentage that one queue should have, if the queue exists. 0 or -errno. */
static int settle(uint32_t id, uint32_t *gpu_id, bool *off)
{
	struct queue *q = &agent.queues[id];
	int result = 0;

	pthread_mutex_lock(&q->lock);
	*gpu_id = q->gpu_id;
	*off = false;
	if (q->live) {
		const bool held = is_held(q->gpu_id, q->type);
		struct update_queue update = q->wanted;

		update.percentage = allowed(update.percentage, held);
		if (update.percentage != q->sent) {
			const int fd = own_descriptor();

			result = fd < 0 ? fd
					: call(fd, _IOW(GPUSEG_KFD_TYPE, UPDATE_QUEUE, struct update_queue), &update);
			if (result == 0)
				q->sent = update.percentage;
		}
		*off = held && result == 0;
	}
	pthread_mutex_unlock(&q->lock);
	return result;
}

/* ---- the thread ---- */

static long futex(uint32_t *word, int operation, uint32_t value, const struct timespec *timeout)
{
	return syscall(SYS_futex, word, operation, value, timeout, NULL, 0);
}

static void take_order(struct hold *h, const struct gpuseg_kfd_agent_slot *slot, uint32_t order, int64_t at_ns)
{
	int64_t period_ms = slot->period_ms;

	if (period_ms < GPUSEG_KFD_AGENT_PERIOD_MIN_MS)
		period_ms = GPUSEG_KFD_AGENT_PERIOD_MIN_MS;
	if (period_ms > GPUSEG_KFD_AGENT_PERIOD_MAX_MS)
		period_ms = GPUSEG_KFD_AGENT_PERIOD_MAX_MS;
	h->order = order;
	h->beat = __atomic_load_n(&slot->beat, __ATOMIC_ACQUIRE);
	h->beat_ns = at_ns;
	h->limit_ns = period_ms * NS_PER_MS * 3 / 4;
	h->answer = true;
	h->refused = (order & GPUSEG_KFD_AGENT_HOLD) && __atomic_load_n(&agent.several, __ATOMIC_ACQUIRE);
	pthread_mutex_lock(&holds_lock);
	h->on = (order & GPUSEG_KFD_AGENT_HOLD) && !h->refused;
	h->gpu_id = slot->gpu_id;
	h->flags = slot->flags;
	pthread_mutex_unlock(&holds_lock);
}

/* Reads the page. True if a hold began or ended; *next_ns: when to look again at the latest. create_lock held. */
static bool read_orders(int64_t *next_ns)
{
	const int64_t at_ns = now_ns();
	bool changed = false;

	for (unsigned i = 0; i < GPUSEG_KFD_AGENT_SLOTS; i++) {
		struct gpuseg_kfd_agent_slot *slot = &agent.page->slots[i];
		/* acquire; pairs with the release in AgentPage.order */
		const uint32_t order = __atomic_load_n(&slot->order, __ATOMIC_ACQUIRE);
		const uint32_t beat = __atomic_load_n(&slot->beat, __ATOMIC_ACQUIRE);
		struct hold *h = &agent.holds[i];

		if (order != h->order) {
			take_order(h, slot, order, at_ns);
			changed = true;
		} else if (h->on && beat != h->beat) {
			h->beat = beat;
			h->beat_ns = at_ns;
		} else if (h->on && at_ns - h->beat_ns >= h->limit_ns) {
			pthread_mutex_lock(&holds_lock);
			h->on = false;
			pthread_mutex_unlock(&holds_lock);
			__atomic_add_fetch(&slot->lapses, 1, __ATOMIC_RELEASE);
			changed = true;
		}
		if (h->on && at_ns + h->limit_ns / 4 < *next_ns)
			*next_ns = at_ns + h->limit_ns / 4;
	}
	return changed;
}

static void answer(unsigned index, int result, uint32_t queue, uint32_t held)
{
	struct gpuseg_kfd_agent_slot *slot = &agent.page->slots[index];
	struct hold *h = &agent.holds[index];

	slot->result = h->refused ? -EOPNOTSUPP : result;
	slot->queue = queue;
	slot->held = held;
	/* release; pairs with the acquire in AgentPage.hasAnswered */
	__atomic_store_n(&slot->answered, h->order, __ATOMIC_RELEASE);
	futex(&slot->answered, FUTEX_WAKE, INT_MAX, NULL);
	h->answer = false;
}

/* Sets every queue as it should be. False if a release failed and must be tried again. */
static bool follow(void)
{
	int result[GPUSEG_KFD_AGENT_SLOTS] = {0};
	uint32_t failed[GPUSEG_KFD_AGENT_SLOTS] = {0}, held[GPUSEG_KFD_AGENT_SLOTS] = {0};
	const uint32_t end = __atomic_load_n(&agent.highest, __ATOMIC_ACQUIRE);
	bool stuck = false, holding = false;

	for (uint32_t id = 0; id < end; id++) {
		uint32_t gpu_id;
		bool off;
		const int rc = settle(id, &gpu_id, &off);

		for (unsigned i = 0; i < GPUSEG_KFD_AGENT_SLOTS; i++) {
			const struct hold *h = &agent.holds[i];

			if (h->gpu_id != gpu_id || (!h->on && rc == 0))
				continue;
			if (rc != 0 && result[i] == 0) {
				result[i] = rc;
				failed[i] = id;
			}
			held[i] += off;
			stuck |= rc != 0 && !h->on;
		}
	}
	for (unsigned i = 0; i < GPUSEG_KFD_AGENT_SLOTS; i++) {
		if (agent.holds[i].answer)
			answer(i, result[i], failed[i], held[i]);
		holding |= agent.holds[i].on;
	}
	if (!holding && !stuck)
		descriptor_close(&agent.held);
	return !stuck;
}

static bool become_real_time(void)
{
	const char *text = getenv("GPUSEG_AGENT_PRIORITY");
	struct sched_param wanted = {.sched_priority = text ? atoi(text) : PRIORITY_DEFAULT};
	struct rlimit limit;

	if (pthread_setschedparam(pthread_self(), SCHED_FIFO, &wanted) == 0)
		return true;
	if (getrlimit(RLIMIT_RTPRIO, &limit) != 0 || limit.rlim_cur == 0 ||
	    limit.rlim_cur > (rlim_t)wanted.sched_priority)
		return false;
	wanted.sched_priority = (int)limit.rlim_cur;
	return pthread_setschedparam(pthread_self(), SCHED_FIFO, &wanted) == 0;
}

static void *run(void *unused)
{
	struct gpuseg_kfd_agent *page = agent.page;
	bool retry = false;

	(void)unused;
	pthread_setname_np(pthread_self(), "gpuseg-kfd");
	if (become_real_time())
		__atomic_or_fetch(&page->flags, GPUSEG_KFD_AGENT_REAL_TIME, __ATOMIC_RELAXED);
	for (;;) {
		const uint32_t bell = __atomic_load_n(&page->doorbell, __ATOMIC_ACQUIRE);
		int64_t next_ns = NEVER, wait_ns;
		struct timespec wait;
		bool changed;

		/* a queue that is being created is recorded before a hold begins */
		pthread_mutex_lock(&create_lock);
		changed = read_orders(&next_ns);
		pthread_mutex_unlock(&create_lock);
		if (changed || retry)
			retry = !follow();
		wait_ns = retry ? RETRY_NS : NEVER;
		if (next_ns != NEVER && next_ns - now_ns() < wait_ns)
			wait_ns = next_ns - now_ns() > 0 ? next_ns - now_ns() : 1;
		wait = (struct timespec){.tv_sec = wait_ns / 1000000000LL, .tv_nsec = wait_ns % 1000000000LL};
		futex(&page->doorbell, FUTEX_WAIT, bell, wait_ns == NEVER ? NULL : &wait);
	}
	return NULL;
}

static int start_thread(size_t stack)
{
	sigset_t all, before;
	pthread_attr_t attributes;
	pthread_t thread;
	int result;

	sigfillset(&all);
	pthread_attr_init(&attributes);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	if (stack > 0)
		pthread_attr_setstacksize(&attributes, stack);
	pthread_sigmask(SIG_SETMASK, &all,
			&before); /* signals belong to the application; the thread inherits this mask */
	result = pthread_create(&thread, &attributes, run, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attributes);
	return result;
}

/* ---- start ---- */

static void init_lock(pthread_mutex_t *lock)
{
	pthread_mutexattr_t attributes;

	pthread_mutexattr_init(&attributes);
	pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT);
	pthread_mutex_init(lock, &attributes);
	pthread_mutexattr_destroy(&attributes);
}

/* A forked child has neither its parent's queues nor its thread. */
static void let_go(void)
{
	struct stat file;

	if (agent.page)
		munmap(agent.page, GPUSEG_KFD_AGENT_BYTES);
	if (agent.page_fd >= 0 && fstat(agent.page_fd, &file) == 0 && file.st_dev == agent.page_device &&
	    file.st_ino == agent.page_inode)
		close(agent.page_fd);
	descriptor_close(&agent.held);
	agent.page = NULL;
	agent.page_fd = agent.app_fd = -1;
	agent.pid = 0;
}

static void on_fork(void)
{
	pthread_mutex_init(&start_lock, NULL);
	let_go();
}

static void begin_anew(void)
{
	let_go();
	memset(&agent, 0, sizeof(agent));
	agent.page_fd = agent.app_fd = agent.held.number = -1;
	init_lock(&create_lock);
	init_lock(&holds_lock);
	for (unsigned i = 0; i < QUEUES; i++)
		init_lock(&agent.queues[i].lock);
	agent.pid = getpid();
}

__attribute__((constructor)) static void prepare(void)
{
	pthread_atfork(NULL, NULL, on_fork);
}

static void make_page(void)
{
	const int fd = memfd_create(GPUSEG_KFD_AGENT_NAME, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	struct stat file;
	void *map;

	if (fd < 0)
		return;
	if (ftruncate(fd, GPUSEG_KFD_AGENT_BYTES) != 0 ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0 || fstat(fd, &file) != 0) {
		close(fd);
		return;
	}
	map = mmap(NULL, GPUSEG_KFD_AGENT_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED) {
		close(fd);
		return;
	}
	/* The descriptor stays open, because the daemon finds the page through it. */
	agent.page = map;
	agent.page_fd = fd;
	agent.page_device = file.st_dev;
	agent.page_inode = file.st_ino;
	agent.page->magic = GPUSEG_KFD_AGENT_MAGIC;
	agent.page->pid = (int32_t)agent.pid;
	if (start_thread(STACK_BYTES) == 0 || start_thread(0) == 0) {
		/* release: orders are answered from now on. The page exists before the first queue does */
		__atomic_store_n(&agent.page->version, GPUSEG_KFD_AGENT_VERSION, __ATOMIC_RELEASE);
	} else {
		munmap(map, GPUSEG_KFD_AGENT_BYTES);
		close(fd);
		agent.page = NULL;
		agent.page_fd = -1;
	}
}

/* Starts recording in this process, and starts the thread if a queue is about to be created. */
static void begin(gpuseg_ioctl_fn next, bool with_thread)
{
	pthread_mutex_lock(&start_lock);
	if (agent.pid != getpid())
		begin_anew();
	if (agent.next != next)
		agent.next = next;
	if (with_thread && !agent.tried) {
		const char *wish = getenv("GPUSEG_KFD_AGENT");

		agent.tried = true;
		if (!wish || strcmp(wish, "0") != 0)
			make_page();
	}
	pthread_mutex_unlock(&start_lock);
}

/* ---- calls of the application ---- */

/* A copy of an argument, in `small` if it fits. Bytes beyond the caller's size are zero, as in the kernel. */
static void *copy_of(const void *argument, size_t size, void *small, size_t small_size)
{
	void *copy = size <= small_size ? small : malloc(size);

	memset(small, 0, small_size);
	if (copy)
		memcpy(copy, argument, size);
	else
		errno = ENOMEM;
	return copy;
}

static void note_queue(int fd, const struct create_queue *made, uint32_t wanted)
{
	const uint32_t id = made->queue_id;
	struct queue *q;

	__atomic_store_n(&agent.app_fd, fd, __ATOMIC_RELEASE);
	if (id >= QUEUES) {
		if (agent.page)
			__atomic_add_fetch(&agent.page->missed, 1, __ATOMIC_RELAXED);
		return;
	}
	q = &agent.queues[id];
	pthread_mutex_lock(&q->lock);
	if (!q->live && agent.page)
		__atomic_add_fetch(&agent.page->known, 1, __ATOMIC_RELAXED);
	q->live = true;
	q->gpu_id = made->gpu_id;
	q->type = made->type;
	q->sent = made->percentage;
	q->wanted = (struct update_queue){.ring_base = made->ring_base,
					  .queue_id = id,
					  .ring_size = made->ring_size,
					  .percentage = wanted,
					  .priority = made->priority};
	pthread_mutex_unlock(&q->lock);
	if (id >= agent.highest)
		__atomic_store_n(&agent.highest, id + 1, __ATOMIC_RELEASE);
}

static int create_queue(gpuseg_ioctl_fn next, int fd, unsigned long request, void *argument)
{
	const size_t size = _IOC_SIZE(request);
	uint64_t small[24];
	struct create_queue *c;
	uint32_t wanted;
	int result, kept;
	void *copy;

	if (size < sizeof(*c)) /* no room for the answer: no usable queue */
		return next(fd, request, argument);
	copy = copy_of(argument, size, small, sizeof(small));
	if (!copy)
		return -1;
	c = copy;
	wanted = c->percentage;
	pthread_mutex_lock(&create_lock);
	c->percentage = allowed(wanted, is_held(c->gpu_id, c->type));
	result = next(fd, request, copy);
	kept = errno;
	if (result == 0)
		note_queue(fd, c, wanted);
	pthread_mutex_unlock(&create_lock);
	c->percentage = wanted;
	memcpy(argument, copy, size); /* the kernel writes it back whatever the result is */
	if (copy != (void *)small)
		free(copy);
	errno = kept;
	return result;
}

static int destroy_queue(gpuseg_ioctl_fn next, int fd, unsigned long request, void *argument)
{
	uint32_t id = 0;
	struct queue *q;
	int result, kept;

	memcpy(&id, argument, _IOC_SIZE(request) < sizeof(id) ? _IOC_SIZE(request) : sizeof(id));
	if (id >= QUEUES)
		return next(fd, request, argument);
	q = &agent.queues[id];
	pthread_mutex_lock(&q->lock); /* until it is removed: the kernel may reuse its number at once */
	result = next(fd, request, argument);
	kept = errno;
	if (result == 0 && q->live) {
		q->live = false;
		if (agent.page)
			__atomic_sub_fetch(&agent.page->known, 1, __ATOMIC_RELAXED);
	}
	pthread_mutex_unlock(&q->lock);
	errno = kept;
	return result;
}

static int update_queue(gpuseg_ioctl_fn next, int fd, unsigned long request, void *argument)
{
	const size_t size = _IOC_SIZE(request);
	uint64_t small[16];
	void *copy = copy_of(argument, size, small, sizeof(small));
	struct update_queue wanted = {0};
	struct queue *q;
	int result, kept;

	if (!copy)
		return -1;
	memcpy(&wanted, copy, size < sizeof(wanted) ? size : sizeof(wanted));
	q = wanted.queue_id < QUEUES ? &agent.queues[wanted.queue_id] : NULL;
	if (q) {
		struct update_queue sent = wanted;

		pthread_mutex_lock(&q->lock);
		sent.percentage = allowed(wanted.percentage, q->live && is_held(q->gpu_id, q->type));
		memcpy(copy, &sent, size < sizeof(sent) ? size : sizeof(sent));
		result = next(fd, request, copy);
		kept = errno;
		if (result == 0) {
			q->wanted = wanted;
			q->sent = sent.percentage;
		}
		pthread_mutex_unlock(&q->lock);
	} else {
		result = next(fd, request, copy);
		kept = errno;
	}
	if (copy != (void *)small)
		free(copy);
	errno = kept;
	return result;
}

int gpuseg_kfd_ioctl(gpuseg_ioctl_fn next, int fd, unsigned long request, void *argument)
{
	const unsigned int number = _IOC_NR(request);
	int result;

	if ((number != CREATE_QUEUE && number != DESTROY_QUEUE && number != UPDATE_QUEUE && number != CREATE_PROCESS) ||
	    (!argument && number != CREATE_PROCESS) || !is_kfd(fd))
		return next(fd, request, argument);
	begin(next, number == CREATE_QUEUE);
	switch (number) {
	case CREATE_QUEUE:
		return create_queue(next, fd, request, argument);
	case DESTROY_QUEUE:
		return destroy_queue(next, fd, request, argument);
	case UPDATE_QUEUE:
		return update_queue(next, fd, request, argument);
	default:
		result = next(fd, request, argument);
		if (result == 0)
			__atomic_store_n(&agent.several, true, __ATOMIC_RELEASE);
		return result;
	}
}
