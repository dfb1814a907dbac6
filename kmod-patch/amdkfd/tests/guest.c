// SPDX-License-Identifier: GPL-2.0-only
/*
 * The whole user space of the test machine: it is /init. Loads gpuseg_fake.ko and tests /dev/gpuseg-kfd with real
 * processes as the owners of queues. The kernel command line says what to do:
 *   gpuseg.seed=S gpuseg.sequences=N
 *                            interface, refusals, deaths, watchdog, faults, unloading (with gpuseg.long=1 the test with
 *                            hundreds of processes too), then N random sequences, compared with a model after each step
 *   gpuseg.part=module       loads what /order lists (the patched amdgpu module) and tests what needs no GPU
 * Prints "ok NAME" or "not ok NAME: why", then "guest: P passed, F failed", and ends the machine.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "fake_amdgpu.h"
#include "gpuseg_kfd.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define ALL GPUSEG_KFD_ALL_QUEUES

_Static_assert(sizeof(struct gpuseg_kfd_info) == 24, "ABI");
_Static_assert(sizeof(struct gpuseg_kfd_gpu) == 80, "ABI");
_Static_assert(sizeof(struct gpuseg_kfd_entry) == 40, "ABI");
_Static_assert(offsetof(struct gpuseg_kfd_entry, start_ticks) == 8, "ABI");
_Static_assert(offsetof(struct gpuseg_kfd_entry, result) == 28, "ABI");
_Static_assert(sizeof(struct gpuseg_kfd_apply) == 32, "ABI");
_Static_assert(sizeof(struct gpuseg_kfd_watchdog) == 8, "ABI");
_Static_assert(sizeof(struct gpuseg_kfd_queue) == 16, "ABI");
_Static_assert(sizeof(struct gpuseg_kfd_query) == 24, "ABI");
_Static_assert(GPUSEG_KFD_IOC_INFO == 0x80184740u, "ABI");
_Static_assert(GPUSEG_KFD_IOC_GPU == 0xc0504741u, "ABI");
_Static_assert(GPUSEG_KFD_IOC_APPLY == 0xc0204742u, "ABI");
_Static_assert(GPUSEG_KFD_IOC_WATCHDOG == 0xc0084743u, "ABI");
_Static_assert(GPUSEG_KFD_IOC_KICK == 0x4744u, "ABI");
_Static_assert(GPUSEG_KFD_IOC_QUERY == 0xc0184745u, "ABI");

/* ------------------------------------------------------------------------------------------- checking */

static int passed, failed;
static const char *test_name;
static bool test_failed;

static void fail(const char *format, ...)
{
	va_list args;

	if (!test_failed) {
		printf("not ok %s: ", test_name);
		va_start(args, format);
		vprintf(format, args);
		va_end(args);
		printf("\n");
	}
	test_failed = true;
}

#define CHECK(condition)                                                                                                                   \
	do {                                                                                                                               \
		if (!(condition))                                                                                                          \
			fail("line %d: %s (errno %d)", __LINE__, #condition, errno);                                                       \
	} while (0)

#define CHECK_EQ(actual, expected)                                                                                                         \
	do {                                                                                                                               \
		long long actual_ = (long long)(actual), expected_ = (long long)(expected);                                                \
		if (actual_ != expected_)                                                                                                  \
			fail("line %d: %s is %lld, expected %lld", __LINE__, #actual, actual_, expected_);                                 \
	} while (0)

static void run_test(const char *name, void (*test)(void))
{
	test_name = name;
	test_failed = false;
	test();
	if (test_failed) {
		failed++;
	} else {
		passed++;
		printf("ok %s\n", name);
	}
	fflush(stdout);
}

static int64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void sleep_ms(int ms)
{
	struct timespec t = { ms / 1000, (ms % 1000) * 1000000L };

	while (nanosleep(&t, &t) && errno == EINTR)
		;
}

/* ioctl that gives -errno. */
static int call(int fd, unsigned long request, void *argument)
{
	return ioctl(fd, request, argument) < 0 ? -errno : 0;
}

/* ------------------------------------------------------------------------------- processes with queues */

/* A child that does what it is told, as an application would: the driver wants queues made by their owner. */
struct order {
	uint32_t command;
	struct fake_queue queue;
};

enum { ORDER_CREATE, ORDER_DESTROY, ORDER_UPDATE, ORDER_LONG, ORDER_CONTEXT };

struct worker {
	pid_t pid;
	uint64_t start_ticks;
	int orders;
	int answers;
};

static uint64_t start_ticks_of(pid_t pid)
{
	char path[64], text[1024], *at;
	unsigned long long ticks = 0;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[n > 0 ? n : 0] = 0;
	at = strrchr(text, ')');
	if (at)
		sscanf(at + 2, "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu", &ticks);
	return ticks;
}

static int worker_orders, worker_answers, worker_fd, worker_other_fd = -1;
static volatile uint64_t worker_wptr = 0x5157505452u;

/* What follows concerns the process's other KFD context, which is made at the first call. */
static int switch_context(void)
{
	int fd = worker_fd, r = 0;

	if (worker_other_fd < 0) {
		worker_other_fd = open("/dev/fake-kfd", O_RDWR | O_CLOEXEC);
		r = worker_other_fd < 0 ? -errno : call(worker_other_fd, FAKE_CONTEXT, NULL);
	}
	worker_fd = worker_other_fd;
	worker_other_fd = fd;
	return r;
}

static void *serve_orders(void *unused)
{
	struct order order;
	struct {
		int result;
		uint32_t queue_id;
	} answer;

	(void)unused;
	while (read(worker_orders, &order, sizeof(order)) == (ssize_t)sizeof(order)) {
		struct fake_process wait = { .ms = order.queue.percent };

		order.queue.wptr = (uintptr_t)&worker_wptr;
		switch (order.command) {
		case ORDER_CREATE:
			answer.result = call(worker_fd, FAKE_CREATE, &order.queue);
			break;
		case ORDER_DESTROY:
			answer.result = call(worker_fd, FAKE_DESTROY, &order.queue);
			break;
		case ORDER_UPDATE:
			answer.result = call(worker_fd, FAKE_UPDATE, &order.queue);
			break;
		case ORDER_LONG:
			answer.result = call(worker_fd, FAKE_LONG, &wait);
			break;
		case ORDER_CONTEXT:
			answer.result = switch_context();
			break;
		default:
			answer.result = -EINVAL;
		}
		answer.queue_id = order.queue.queue_id;
		if (write(worker_answers, &answer, sizeof(answer)) != (ssize_t)sizeof(answer))
			break;
	}
	_exit(0);
}

/* @threaded: a second thread serves and the leading thread ends, as some runtimes do. */
static struct worker start_worker(bool threaded)
{
	struct worker worker = { 0 };
	int orders[2], answers[2];
	char ready;

	if (pipe2(orders, O_CLOEXEC) || pipe2(answers, O_CLOEXEC)) {
		fail("pipe: %d", errno);
		return worker;
	}
	fflush(stdout);
	worker.pid = fork();
	if (worker.pid == 0) {
		worker_orders = orders[0];
		worker_answers = answers[1];
		/* A control file that lived on here would not end when the test closes it. */
		for (int fd = 3; fd < 64; fd++)
			if (fd != worker_orders && fd != worker_answers)
				close(fd);
		worker_fd = open("/dev/fake-kfd", O_RDWR | O_CLOEXEC);
		if (write(worker_answers, "", 1) != 1)
			_exit(1);
		if (threaded) {
			pthread_t thread;

			if (pthread_create(&thread, NULL, serve_orders, NULL))
				_exit(1);
			pthread_exit(NULL);
		}
		serve_orders(NULL);
	}
	close(orders[0]);
	close(answers[1]);
	worker.orders = orders[1];
	worker.answers = answers[0];
	worker.start_ticks = start_ticks_of(worker.pid);
	/* Not before it has closed what it inherited. */
	if (read(worker.answers, &ready, 1) != 1)
		fail("worker %d does not start", worker.pid);
	return worker;
}

static void kill_worker(struct worker *worker)
{
	kill(worker->pid, SIGKILL);
	waitpid(worker->pid, NULL, 0);
	close(worker->orders);
	close(worker->answers);
	worker->pid = 0;
}

static void send_order(struct worker *worker, uint32_t command, uint32_t gpu, uint32_t type, uint32_t percent, uint32_t id)
{
	struct order order = { command, { .gpu = gpu, .type = type, .percent = percent, .queue_id = id } };

	if (write(worker->orders, &order, sizeof(order)) != (ssize_t)sizeof(order))
		fail("worker %d takes no orders", worker->pid);
}

static int await_answer(struct worker *worker, uint32_t *id)
{
	struct {
		int result;
		uint32_t queue_id;
	} answer = { -EPIPE, 0 };

	if (read(worker->answers, &answer, sizeof(answer)) != (ssize_t)sizeof(answer))
		fail("worker %d does not answer", worker->pid);
	if (id)
		*id = answer.queue_id;
	return answer.result;
}

/* The new queue's ID, or -errno. */
static int create_queue(struct worker *worker, uint32_t gpu, uint32_t type, uint32_t percent)
{
	uint32_t id = 0;
	int r;

	send_order(worker, ORDER_CREATE, gpu, type, percent, 0);
	r = await_answer(worker, &id);
	return r ? r : (int)id;
}

static int destroy_queue(struct worker *worker, uint32_t id)
{
	send_order(worker, ORDER_DESTROY, 0, 0, 0, id);
	return await_answer(worker, NULL);
}

static int update_queue(struct worker *worker, uint32_t id, uint32_t percent)
{
	send_order(worker, ORDER_UPDATE, 0, 0, percent, id);
	return await_answer(worker, NULL);
}

/* --------------------------------------------------------------------------------- the two devices */

static int fake_fd = -1;

static int open_control(void)
{
	int fd = open("/dev/gpuseg-kfd", O_RDWR | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

static void set_watchdog(int fd, uint32_t ms)
{
	struct gpuseg_kfd_watchdog watchdog = { .period_ms = ms };

	CHECK_EQ(call(fd, GPUSEG_KFD_IOC_WATCHDOG, &watchdog), 0);
}

/* A control file with a watchdog that does not get in a test's way. */
static int open_patient(void)
{
	int fd = open_control();

	CHECK(fd >= 0);
	set_watchdog(fd, GPUSEG_KFD_WATCHDOG_MAX_MS);
	return fd;
}

static struct gpuseg_kfd_entry entry_for(const struct worker *worker, uint32_t op, uint32_t gpu_id, uint32_t queue_id)
{
	struct gpuseg_kfd_entry e = { .pid = worker->pid, .op = op, .start_ticks = worker->start_ticks, .gpu_id = gpu_id, .queue_id = queue_id };

	return e;
}

static int apply(int fd, struct gpuseg_kfd_entry *entries, uint32_t n, struct gpuseg_kfd_apply *out)
{
	struct gpuseg_kfd_apply a = { .entries = (uintptr_t)entries, .n_entries = n };
	int r = call(fd, GPUSEG_KFD_IOC_APPLY, &a);

	if (out)
		*out = a;
	return r;
}

/* One entry; its result, or the error of the call. */
static int apply_one(int fd, const struct worker *worker, uint32_t op, uint32_t gpu_id, uint32_t queue_id)
{
	struct gpuseg_kfd_entry e = entry_for(worker, op, gpu_id, queue_id);
	int r = apply(fd, &e, 1, NULL);

	return r ? r : e.result;
}

static struct fake_queue_state state_queues[FAKE_MAX_STATE];

static struct fake_state get_state(uint32_t gpu)
{
	struct fake_state state = { .gpu = gpu, .n_queues = FAKE_MAX_STATE, .queues = (uintptr_t)state_queues };

	CHECK_EQ(call(fake_fd, FAKE_STATE, &state), 0);
	return state;
}

static struct fake_queue_state queue_state(uint32_t gpu, pid_t pid, uint32_t id)
{
	struct fake_queue_state none = { 0 };
	struct fake_state state = get_state(gpu);
	uint32_t i;

	for (i = 0; i < state.n_queues; i++)
		if (state_queues[i].pid == pid && state_queues[i].queue_id == id)
			return state_queues[i];
	fail("process %d has no queue %u on GPU %u", pid, id, gpu);
	return none;
}

static bool runs(uint32_t gpu, const struct worker *worker, uint32_t id)
{
	struct fake_queue_state q = queue_state(gpu, worker->pid, id);

	if (q.on_hardware != q.is_active)
		fail("queue %u of %d: the driver says active=%u, the hardware %u", id, worker->pid, q.is_active, q.on_hardware);
	return q.on_hardware;
}

static int evict(const struct worker *worker, uint32_t gpu, bool restore)
{
	struct fake_process p = { .pid = worker->pid, .gpu = gpu };

	return call(fake_fd, restore ? FAKE_RESTORE : FAKE_EVICT, &p);
}

static void set_fault(struct fake_fault fault)
{
	CHECK_EQ(call(fake_fd, FAKE_FAULT, &fault), 0);
}

static bool mes_leaks;

/* After a test: nothing is left of it, and nothing happened that may not. */
static void check_clean(void)
{
	uint32_t gpu;
	struct fake_state state;

	for (gpu = 0; gpu < FAKE_GPUS; gpu++) {
		state = get_state(gpu);
		CHECK_EQ(state.n_queues, 0);
		CHECK_EQ(state.on_hardware, 0);
		CHECK_EQ(state.total_queue_count, 0);
		CHECK_EQ(state.processes_count, 0);
		CHECK_EQ(state.rule_breaks, 0);
		CHECK_EQ(state.live_processes, 0);
		if (!mes_leaks || gpu != FAKE_MES_GFX11)
			CHECK_EQ(state.active_queue_count, 0);
	}
}

/* ------------------------------------------------------------------------------- who may, and the ABI */

static int in_child(int (*body)(void))
{
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid == 0)
		_exit(body());
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int drop_sys_admin(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2];

	if (syscall(SYS_capget, &header, data))
		return -1;
	data[0].effective &= ~(1u << CAP_SYS_ADMIN);
	data[0].permitted &= ~(1u << CAP_SYS_ADMIN);
	return (int)syscall(SYS_capset, &header, data);
}

static int inherited_fd;

static int body_non_root_open(void)
{
	if (setresuid(1000, 1000, 1000))
		return 99;
	return -open_control();
}

static int body_non_root_open_0666(void)
{
	if (chmod("/dev/gpuseg-kfd", 0666) || setresuid(1000, 1000, 1000))
		return 99;
	return -open_control();
}

static int body_no_cap_open(void)
{
	return drop_sys_admin() ? 99 : -open_control();
}

static int body_no_cap_ioctl(void)
{
	struct gpuseg_kfd_info info;

	return drop_sys_admin() ? 99 : -call(inherited_fd, GPUSEG_KFD_IOC_INFO, &info);
}

static int body_no_cap_kick(void)
{
	return drop_sys_admin() ? 99 : -call(inherited_fd, GPUSEG_KFD_IOC_KICK, NULL);
}

static void should_refuse_users_other_than_root(void)
{
	struct stat st;

	CHECK_EQ(stat("/dev/gpuseg-kfd", &st), 0);
	CHECK_EQ(st.st_mode & 07777, 0600);
	CHECK_EQ(in_child(body_non_root_open), EACCES);
	/* Even where an administrator has opened the node to all users. */
	CHECK_EQ(in_child(body_non_root_open_0666), EPERM);
	CHECK_EQ(chmod("/dev/gpuseg-kfd", 0600), 0);
}

static void should_refuse_root_without_cap_sys_admin(void)
{
	CHECK_EQ(in_child(body_no_cap_open), EPERM);
}

static void should_refuse_a_passed_on_file_without_cap_sys_admin(void)
{
	inherited_fd = open_control();
	CHECK(inherited_fd >= 0);
	CHECK_EQ(in_child(body_no_cap_ioctl), EPERM);
	CHECK_EQ(in_child(body_no_cap_kick), EPERM);
	close(inherited_fd);
}

static void should_refuse_unknown_ioctls(void)
{
	int fd = open_control();
	struct gpuseg_kfd_info info;

	CHECK_EQ(call(fd, _IO('G', 0x7f), NULL), -ENOTTY);
	CHECK_EQ(call(fd, _IOR('K', 0x40, struct gpuseg_kfd_info), &info), -ENOTTY);
	CHECK_EQ(call(fd, _IOR('G', 0x40, char[4096]), &info), -ENOTTY);
	CHECK_EQ(call(fd, _IOW('G', 0x42, struct gpuseg_kfd_apply), &info), -ENOTTY);
	close(fd);
}

static void should_tell_what_it_is(void)
{
	int fd = open_control();
	struct gpuseg_kfd_info info = { .n_gpus = 77 };

	CHECK_EQ(call(fd, GPUSEG_KFD_IOC_INFO, &info), 0);
	CHECK_EQ(info.abi, GPUSEG_KFD_ABI);
	CHECK_EQ(info.n_holds, 0);
	CHECK_EQ(info.watchdog_ms, GPUSEG_KFD_WATCHDOG_DEFAULT_MS);
	CHECK_EQ(info.lapses, 0);
	CHECK_EQ(info.reserved, 0);
	if (fake_fd >= 0)
		CHECK_EQ(info.n_gpus, FAKE_GPUS);
	close(fd);
}

static void should_answer_bad_pointers_with_efault(void)
{
	int fd = open_control();
	struct gpuseg_kfd_apply a = { .entries = 8, .n_entries = 1 };
	struct gpuseg_kfd_query q = { .pid = getpid(), .start_ticks = start_ticks_of(getpid()), .queues = 8, .n_queues = 4 };

	CHECK_EQ(call(fd, GPUSEG_KFD_IOC_INFO, (void *)8), -EFAULT);
	CHECK_EQ(call(fd, GPUSEG_KFD_IOC_APPLY, (void *)8), -EFAULT);
	CHECK_EQ(call(fd, GPUSEG_KFD_IOC_APPLY, NULL), -EFAULT);
	CHECK_EQ(call(fd, GPUSEG_KFD_IOC_GPU, (void *)-4096L), -EFAULT);
	CHECK_EQ(call(fd, GPUSEG_KFD_IOC_APPLY, &a), -EFAULT);
	a.entries = UINT64_MAX - 8;
	CHECK_EQ(call(fd, GPUSEG_KFD_IOC_APPLY, &a), -EFAULT);
	/* No queues, so nothing to write: the bad array does not matter. */
	CHECK_EQ(call(fd, GPUSEG_KFD_IOC_QUERY, &q), 0);
	CHECK_EQ(q.n_queues, 0);
	close(fd);
}

static void should_do_nothing_of_a_batch_whose_end_is_unreadable(void)
{
	long page = sysconf(_SC_PAGESIZE);
	struct worker worker = start_worker(false);
	char *two = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct gpuseg_kfd_entry *entries = (void *)(two + page - sizeof(*entries));
	struct gpuseg_kfd_info info;
	int fd = open_patient();

	CHECK_EQ(munmap(two + page, page), 0);
	entries[0] = entry_for(&worker, GPUSEG_KFD_HOLD, 0, ALL);
	CHECK_EQ(apply(fd, entries, 2, NULL), -EFAULT);
	CHECK_EQ(call(fd, GPUSEG_KFD_IOC_INFO, &info), 0);
	CHECK_EQ(info.n_holds, 0);
	CHECK_EQ(apply(fd, entries, 1, NULL), 0);
	munmap(two, page);
	close(fd);
	kill_worker(&worker);
}

static void should_refuse_malformed_batches(void)
{
	int fd = open_control();
	struct worker self = { .pid = getpid(), .start_ticks = start_ticks_of(getpid()) };
	struct gpuseg_kfd_entry many[GPUSEG_KFD_MAX_BATCH + 1], e;
	struct gpuseg_kfd_apply a;
	uint32_t i;

	for (i = 0; i < COUNT(many); i++)
		many[i] = entry_for(&self, GPUSEG_KFD_RELEASE_PROCESS, 0, ALL);
	CHECK_EQ(apply(fd, many, COUNT(many), NULL), -E2BIG);
	CHECK_EQ(apply(fd, many, UINT32_MAX, NULL), -E2BIG);
	CHECK_EQ(apply(fd, many, 0, NULL), -EINVAL);
	CHECK_EQ(apply(fd, many, GPUSEG_KFD_MAX_BATCH, &a), 0);
	CHECK_EQ(a.n_failed, GPUSEG_KFD_MAX_BATCH);
	CHECK_EQ(many[0].result, -ENOENT);

	a = (struct gpuseg_kfd_apply){ .entries = (uintptr_t)many, .n_entries = 1, .flags = 1 };
	CHECK_EQ(call(fd, GPUSEG_KFD_IOC_APPLY, &a), -EINVAL);
	a = (struct gpuseg_kfd_apply){ .entries = (uintptr_t)many, .n_entries = 1, .reserved = 1 };
	CHECK_EQ(call(fd, GPUSEG_KFD_IOC_APPLY, &a), -EINVAL);

	e = entry_for(&self, 0, 0, ALL);
	CHECK_EQ(apply(fd, &e, 1, NULL), -EINVAL);
	e = entry_for(&self, 4, 0, ALL);
	CHECK_EQ(apply(fd, &e, 1, NULL), -EINVAL);
	e = entry_for(&self, GPUSEG_KFD_HOLD, 0, ALL);
	e.flags = 2;
	CHECK_EQ(apply(fd, &e, 1, NULL), -EINVAL);
	e.flags = GPUSEG_KFD_COMPUTE_ONLY;
	e.gpu_id = FAKE_GPU_ID(0);
	e.queue_id = 0;
	CHECK_EQ(apply(fd, &e, 1, NULL), -EINVAL);
	e = entry_for(&self, GPUSEG_KFD_HOLD, 0, 3);
	CHECK_EQ(apply(fd, &e, 1, NULL), -EINVAL);
	e = entry_for(&self, GPUSEG_KFD_RELEASE, 0, ALL);
	e.flags = GPUSEG_KFD_COMPUTE_ONLY;
	CHECK_EQ(apply(fd, &e, 1, NULL), -EINVAL);
	e = entry_for(&self, GPUSEG_KFD_RELEASE_PROCESS, FAKE_GPU_ID(0), ALL);
	CHECK_EQ(apply(fd, &e, 1, NULL), -EINVAL);
	e = entry_for(&self, GPUSEG_KFD_HOLD, 0, ALL);
	e.pid = 0;
	CHECK_EQ(apply(fd, &e, 1, NULL), -EINVAL);
	e.pid = -1;
	CHECK_EQ(apply(fd, &e, 1, NULL), -EINVAL);
	close(fd);
}

static void should_refuse_processes_that_are_not_the_ones_meant(void)
{
	struct worker worker = start_worker(false), other = worker;
	int fd = open_patient();

	other.start_ticks++;
	CHECK_EQ(apply_one(fd, &other, GPUSEG_KFD_HOLD, 0, ALL), -ESRCH);
	other.start_ticks = 0;
	CHECK_EQ(apply_one(fd, &other, GPUSEG_KFD_HOLD, 0, ALL), -ESRCH);
	other = worker;
	other.pid = 4000000;
	CHECK_EQ(apply_one(fd, &other, GPUSEG_KFD_HOLD, 0, ALL), -ESRCH);
	CHECK_EQ(apply_one(fd, &worker, GPUSEG_KFD_HOLD, 0, ALL), 0);
	other = worker;
	kill_worker(&worker);
	CHECK_EQ(apply_one(fd, &other, GPUSEG_KFD_HOLD, 0, ALL), -ESRCH);
	close(fd);
}

static void should_refuse_bad_watchdog_periods_and_queries(void)
{
	int fd = open_control();
	struct gpuseg_kfd_watchdog watchdog = { .period_ms = 0 };
	struct gpuseg_kfd_query query = { .pid = 0 };
	struct gpuseg_kfd_gpu gpu = { .index = 1000 };

	CHECK_EQ(call(fd, GPUSEG_KFD_IOC_WATCHDOG, &watchdog), -EINVAL);
	watchdog.period_ms = GPUSEG_KFD_WATCHDOG_MIN_MS - 1;
	CHECK_EQ(call(fd, GPUSEG_KFD_IOC_WATCHDOG, &watchdog), -EINVAL);
	watchdog.period_ms = GPUSEG_KFD_WATCHDOG_MAX_MS + 1;
	CHECK_EQ(call(fd, GPUSEG_KFD_IOC_WATCHDOG, &watchdog), -EINVAL);
	CHECK_EQ(call(fd, GPUSEG_KFD_IOC_QUERY, &query), -EINVAL);
	query.pid = getpid();
	CHECK_EQ(call(fd, GPUSEG_KFD_IOC_QUERY, &query), -ESRCH);
	query.start_ticks = start_ticks_of(getpid());
	query.n_queues = GPUSEG_KFD_MAX_QUERY + 1;
	CHECK_EQ(call(fd, GPUSEG_KFD_IOC_QUERY, &query), -E2BIG);
	CHECK_EQ(call(fd, GPUSEG_KFD_IOC_GPU, &gpu), -ENODEV);
	CHECK_EQ(call(fd, GPUSEG_KFD_IOC_KICK, NULL), 0);
	close(fd);
}

/* ------------------------------------------------------------------------------- holding and releasing */

static const uint32_t can_hold[] = { FAKE_NO_HWS_GFX9, FAKE_HWS_GFX9, FAKE_MES_GFX11 };

static void should_describe_each_gpu(void)
{
	static const struct {
		uint32_t mode, preemption, reason;
	} expected[FAKE_GPUS] = {
		{ GPUSEG_KFD_NO_HWS, GPUSEG_KFD_PREEMPT_SAVE, GPUSEG_KFD_OK },
		{ GPUSEG_KFD_HWS, GPUSEG_KFD_PREEMPT_SAVE, GPUSEG_KFD_OK },
		{ GPUSEG_KFD_MES, GPUSEG_KFD_PREEMPT_SAVE, GPUSEG_KFD_OK },
		{ GPUSEG_KFD_NO_HWS, GPUSEG_KFD_PREEMPT_NONE, GPUSEG_KFD_NO_HWS_ON_MES_GPU },
	};
	int fd = open_control();
	uint32_t i;

	for (i = 0; i < FAKE_GPUS; i++) {
		struct gpuseg_kfd_gpu gpu = { .index = i };

		CHECK_EQ(call(fd, GPUSEG_KFD_IOC_GPU, &gpu), 0);
		CHECK_EQ(gpu.gpu_id, FAKE_GPU_ID(i));
		CHECK_EQ(gpu.mode, expected[i].mode);
		CHECK_EQ(gpu.preemption, expected[i].preemption);
		CHECK_EQ(gpu.reason, expected[i].reason);
		CHECK_EQ(gpu.gfx_version, i < 2 ? 90010 : 110000);
		CHECK_EQ(gpu.n_queues, 0);
	}
	close(fd);
}

static void should_take_a_process_off_each_kind_of_gpu_and_put_it_back(void)
{
	int fd = open_patient();
	uint32_t i;

	for (i = 0; i < COUNT(can_hold); i++) {
		uint32_t gpu = can_hold[i];
		struct worker held = start_worker(false), other = start_worker(false);
		int a = create_queue(&held, gpu, FAKE_COMPUTE, 100), b = create_queue(&held, gpu, FAKE_COMPUTE, 100);
		int c = create_queue(&other, gpu, FAKE_COMPUTE, 100);
		struct gpuseg_kfd_entry e = entry_for(&held, GPUSEG_KFD_HOLD, FAKE_GPU_ID(gpu), ALL);

		CHECK(runs(gpu, &held, a) && runs(gpu, &held, b) && runs(gpu, &other, c));
		CHECK_EQ(apply(fd, &e, 1, NULL), 0);
		CHECK_EQ(e.result, 0);
		CHECK_EQ(e.n_queues, 2);
		CHECK_EQ(e.n_held, 2);
		CHECK(!runs(gpu, &held, a) && !runs(gpu, &held, b) && runs(gpu, &other, c));
		/* Twice is once. */
		CHECK_EQ(apply_one(fd, &held, GPUSEG_KFD_HOLD, FAKE_GPU_ID(gpu), ALL), 0);
		CHECK_EQ(apply_one(fd, &held, GPUSEG_KFD_RELEASE, FAKE_GPU_ID(gpu), ALL), 0);
		CHECK(runs(gpu, &held, a) && runs(gpu, &held, b) && runs(gpu, &other, c));
		CHECK_EQ(apply_one(fd, &held, GPUSEG_KFD_RELEASE, FAKE_GPU_ID(gpu), ALL), -ENOENT);
		kill_worker(&held);
		kill_worker(&other);
	}
	close(fd);
	check_clean();
}

static void should_write_one_runlist_for_a_batch_over_processes(void)
{
	struct gpuseg_kfd_entry entries[6];
	struct worker workers[6];
	int fd = open_patient();
	uint32_t i, before;

	for (i = 0; i < COUNT(workers); i++) {
		workers[i] = start_worker(false);
		CHECK(create_queue(&workers[i], FAKE_HWS_GFX9, FAKE_COMPUTE, 100) == 0);
		CHECK(create_queue(&workers[i], FAKE_HWS_GFX9, FAKE_COMPUTE, 100) == 1);
	}
	before = get_state(FAKE_HWS_GFX9).runlists;
	for (i = 0; i < 5; i++)
		entries[i] = entry_for(&workers[i], GPUSEG_KFD_HOLD, 0, ALL);
	CHECK_EQ(apply(fd, entries, 5, NULL), 0);
	CHECK_EQ(get_state(FAKE_HWS_GFX9).runlists, before + 1);
	CHECK_EQ(get_state(FAKE_HWS_GFX9).on_hardware, 2);
	/* A swap as at a change of segment: the sixth off, the first on. */
	entries[0] = entry_for(&workers[5], GPUSEG_KFD_HOLD, 0, ALL);
	entries[1] = entry_for(&workers[0], GPUSEG_KFD_RELEASE, 0, ALL);
	CHECK_EQ(apply(fd, entries, 2, NULL), 0);
	CHECK_EQ(get_state(FAKE_HWS_GFX9).runlists, before + 2);
	CHECK(runs(FAKE_HWS_GFX9, &workers[0], 0) && !runs(FAKE_HWS_GFX9, &workers[5], 0));
	/* Nothing to change, nothing written. */
	CHECK_EQ(apply_one(fd, &workers[5], GPUSEG_KFD_HOLD, 0, ALL), 0);
	CHECK_EQ(get_state(FAKE_HWS_GFX9).runlists, before + 2);
	close(fd);
	for (i = 0; i < COUNT(workers); i++)
		kill_worker(&workers[i]);
	check_clean();
}

static void should_start_queues_of_a_held_process_held(void)
{
	int fd = open_patient();
	uint32_t i;

	for (i = 0; i < COUNT(can_hold); i++) {
		struct worker worker = start_worker(false);
		uint32_t gpu = can_hold[i];
		int a, b;

		/* Held before it has any queue. */
		CHECK_EQ(apply_one(fd, &worker, GPUSEG_KFD_HOLD, 0, ALL), 0);
		a = create_queue(&worker, gpu, FAKE_COMPUTE, 100);
		b = create_queue(&worker, gpu, FAKE_COMPUTE, 0);
		CHECK(!runs(gpu, &worker, a) && !runs(gpu, &worker, b));
		/* Its own updates change nothing of that. */
		CHECK_EQ(update_queue(&worker, a, 0), 0);
		CHECK_EQ(update_queue(&worker, a, 100), 0);
		CHECK_EQ(update_queue(&worker, b, 100), 0);
		CHECK(!runs(gpu, &worker, a) && !runs(gpu, &worker, b));
		CHECK_EQ(update_queue(&worker, b, 0), 0);
		CHECK_EQ(apply_one(fd, &worker, GPUSEG_KFD_RELEASE, 0, ALL), 0);
		CHECK(runs(gpu, &worker, a) && !runs(gpu, &worker, b));
		kill_worker(&worker);
	}
	close(fd);
	check_clean();
}

static int switch_context_of(struct worker *worker)
{
	send_order(worker, ORDER_CONTEXT, 0, 0, 0, 0);
	return await_answer(worker, NULL);
}

/* How many queues of a process are on the hardware, in all of its contexts. */
static int running_queues(uint32_t gpu, const struct worker *worker)
{
	struct fake_state state = get_state(gpu);
	int n = 0;

	for (uint32_t i = 0; i < state.n_queues; i++)
		n += state_queues[i].pid == worker->pid && state_queues[i].on_hardware;
	return n;
}

static void should_hold_all_contexts_of_a_process_and_refuse_an_id_that_two_of_them_have(void)
{
	int fd = open_patient();

	for (uint32_t gpu = FAKE_NO_HWS_GFX9; gpu <= FAKE_MES_GFX11; gpu++) {
		struct worker worker = start_worker(false);
		uint32_t id = FAKE_GPU_ID(gpu);
		int both = create_queue(&worker, gpu, FAKE_COMPUTE, 100), one;

		CHECK_EQ(switch_context_of(&worker), 0);
		CHECK_EQ(create_queue(&worker, gpu, FAKE_COMPUTE, 100), both);
		one = create_queue(&worker, gpu, FAKE_COMPUTE, 100);
		CHECK_EQ(running_queues(gpu, &worker), 3);

		CHECK_EQ(apply_one(fd, &worker, GPUSEG_KFD_HOLD, id, both), -ENOTUNIQ);
		CHECK_EQ(running_queues(gpu, &worker), 3);
		CHECK_EQ(apply_one(fd, &worker, GPUSEG_KFD_HOLD, id, one), 0);
		CHECK(!runs(gpu, &worker, one) && running_queues(gpu, &worker) == 2);
		CHECK_EQ(apply_one(fd, &worker, GPUSEG_KFD_HOLD, id, ALL), 0);
		CHECK_EQ(running_queues(gpu, &worker), 0);
		/* A queue that is made meanwhile starts held, in either context. */
		CHECK(create_queue(&worker, gpu, FAKE_COMPUTE, 100) >= 0);
		CHECK_EQ(switch_context_of(&worker), 0);
		CHECK(create_queue(&worker, gpu, FAKE_COMPUTE, 100) >= 0);
		CHECK_EQ(running_queues(gpu, &worker), 0);
		CHECK_EQ(apply_one(fd, &worker, GPUSEG_KFD_RELEASE, id, ALL), 0);
		CHECK_EQ(running_queues(gpu, &worker), 4);
		CHECK_EQ(apply_one(fd, &worker, GPUSEG_KFD_RELEASE, id, one), 0);
		CHECK_EQ(running_queues(gpu, &worker), 5);
		kill_worker(&worker);
	}
	close(fd);
	check_clean();
}

static void should_hold_one_queue_and_not_the_one_that_inherits_its_id(void)
{
	struct worker worker = start_worker(false);
	int a = create_queue(&worker, FAKE_NO_HWS_GFX9, FAKE_COMPUTE, 100);
	int b = create_queue(&worker, FAKE_NO_HWS_GFX9, FAKE_COMPUTE, 100);
	uint32_t id = FAKE_GPU_ID(FAKE_NO_HWS_GFX9);
	int fd = open_patient();

	CHECK_EQ(apply_one(fd, &worker, GPUSEG_KFD_HOLD, id, 99), -ENOENT);
	CHECK_EQ(apply_one(fd, &worker, GPUSEG_KFD_HOLD, FAKE_GPU_ID(FAKE_HWS_GFX9), a), -ENOENT);
	CHECK_EQ(apply_one(fd, &worker, GPUSEG_KFD_HOLD, id, a), 0);
	CHECK(!runs(FAKE_NO_HWS_GFX9, &worker, a) && runs(FAKE_NO_HWS_GFX9, &worker, b));
	CHECK_EQ(destroy_queue(&worker, a), 0);
	CHECK_EQ(create_queue(&worker, FAKE_NO_HWS_GFX9, FAKE_COMPUTE, 100), a);
	CHECK(runs(FAKE_NO_HWS_GFX9, &worker, a));
	CHECK_EQ(apply_one(fd, &worker, GPUSEG_KFD_RELEASE, id, a), 0);
	CHECK_EQ(apply_one(fd, &worker, GPUSEG_KFD_HOLD, id, a), 0);
	CHECK(!runs(FAKE_NO_HWS_GFX9, &worker, a));
	CHECK_EQ(apply_one(fd, &worker, GPUSEG_KFD_HOLD, 0, ALL), 0);
	CHECK(!runs(FAKE_NO_HWS_GFX9, &worker, b));
	CHECK_EQ(apply_one(fd, &worker, GPUSEG_KFD_RELEASE, 0, ALL), 0);
	CHECK(!runs(FAKE_NO_HWS_GFX9, &worker, a) && runs(FAKE_NO_HWS_GFX9, &worker, b));
	CHECK_EQ(apply_one(fd, &worker, GPUSEG_KFD_RELEASE_PROCESS, 0, ALL), 0);
	CHECK(runs(FAKE_NO_HWS_GFX9, &worker, a));
	close(fd);
	kill_worker(&worker);
	check_clean();
}

static void should_let_copies_go_on_where_asked(void)
{
	struct worker worker = start_worker(false);
	int compute = create_queue(&worker, FAKE_NO_HWS_GFX9, FAKE_COMPUTE, 100);
	int copies = create_queue(&worker, FAKE_NO_HWS_GFX9, FAKE_SDMA, 100);
	struct gpuseg_kfd_entry e = entry_for(&worker, GPUSEG_KFD_HOLD, 0, ALL);
	int fd = open_patient();

	e.flags = GPUSEG_KFD_COMPUTE_ONLY;
	CHECK_EQ(apply(fd, &e, 1, NULL), 0);
	CHECK_EQ(e.n_queues, 2);
	CHECK_EQ(e.n_held, 1);
	CHECK(!runs(FAKE_NO_HWS_GFX9, &worker, compute) && runs(FAKE_NO_HWS_GFX9, &worker, copies));
	/* The same hold again, without the flag. */
	CHECK_EQ(apply_one(fd, &worker, GPUSEG_KFD_HOLD, 0, ALL), 0);
	CHECK(!runs(FAKE_NO_HWS_GFX9, &worker, copies));
	/* Its write pointer is read as its owner would: the stand-in objects otherwise. */
	CHECK_EQ(apply_one(fd, &worker, GPUSEG_KFD_RELEASE, 0, ALL), 0);
	CHECK(runs(FAKE_NO_HWS_GFX9, &worker, compute) && runs(FAKE_NO_HWS_GFX9, &worker, copies));
	close(fd);
	kill_worker(&worker);
	check_clean();
}

static void should_nest_with_evictions_in_any_order(void)
{
	int fd = open_patient();
	uint32_t i;

	for (i = 0; i < COUNT(can_hold); i++) {
		struct worker worker = start_worker(false);
		uint32_t gpu = can_hold[i];
		int q = create_queue(&worker, gpu, FAKE_COMPUTE, 100), late;

		CHECK_EQ(apply_one(fd, &worker, GPUSEG_KFD_HOLD, 0, ALL), 0);
		CHECK_EQ(evict(&worker, gpu, false), 0);
		CHECK_EQ(evict(&worker, gpu, false), 0);
		CHECK_EQ(apply_one(fd, &worker, GPUSEG_KFD_RELEASE, 0, ALL), 0);
		CHECK(!runs(gpu, &worker, q));
		late = create_queue(&worker, gpu, FAKE_COMPUTE, 100);
		CHECK(!runs(gpu, &worker, late));
		CHECK_EQ(evict(&worker, gpu, true), 0);
		CHECK(!runs(gpu, &worker, q));
		CHECK_EQ(apply_one(fd, &worker, GPUSEG_KFD_HOLD, 0, ALL), 0);
		CHECK_EQ(evict(&worker, gpu, true), 0);
		CHECK(!runs(gpu, &worker, q) && !runs(gpu, &worker, late));
		CHECK_EQ(apply_one(fd, &worker, GPUSEG_KFD_RELEASE, 0, ALL), 0);
		CHECK(runs(gpu, &worker, q) && runs(gpu, &worker, late));
		kill_worker(&worker);
	}
	close(fd);
	check_clean();
}

static void should_not_let_a_queue_miss_an_eviction_or_a_hold_while_it_is_created(void)
{
	int fd = open_patient();
	uint32_t i;

	/* The driver gives up its lock while it allocates. With MES and HWS it allocates before it looks. */
	for (i = 0; i < COUNT(can_hold); i++) {
		struct worker worker = start_worker(false);
		uint32_t gpu = can_hold[i], id = 0;
		int first = create_queue(&worker, gpu, FAKE_COMPUTE, 100);

		set_fault((struct fake_fault){ .gpu = gpu, .allocate_us = 300000 });
		send_order(&worker, ORDER_CREATE, gpu, FAKE_COMPUTE, 100, 0);
		sleep_ms(100);
		CHECK_EQ(evict(&worker, gpu, false), 0);
		CHECK_EQ(await_answer(&worker, &id), 0);
		CHECK(!runs(gpu, &worker, first) && !runs(gpu, &worker, id));
		CHECK_EQ(evict(&worker, gpu, true), 0);
		CHECK(runs(gpu, &worker, first) && runs(gpu, &worker, id));
		CHECK_EQ(destroy_queue(&worker, id), 0);

		send_order(&worker, ORDER_CREATE, gpu, FAKE_COMPUTE, 100, 0);
		sleep_ms(100);
		CHECK_EQ(apply_one(fd, &worker, GPUSEG_KFD_HOLD, 0, ALL), 0);
		CHECK_EQ(await_answer(&worker, &id), 0);
		CHECK(!runs(gpu, &worker, first) && !runs(gpu, &worker, id));
		CHECK_EQ(apply_one(fd, &worker, GPUSEG_KFD_RELEASE, 0, ALL), 0);
		CHECK(runs(gpu, &worker, first) && runs(gpu, &worker, id));
		set_fault((struct fake_fault){ .gpu = gpu });
		kill_worker(&worker);
	}
	close(fd);
	check_clean();
}

static void should_run_only_when_no_file_holds(void)
{
	struct worker worker = start_worker(false);
	int q = create_queue(&worker, FAKE_HWS_GFX9, FAKE_COMPUTE, 100);
	int one = open_patient(), two = open_patient();

	CHECK_EQ(apply_one(one, &worker, GPUSEG_KFD_HOLD, 0, ALL), 0);
	CHECK_EQ(apply_one(two, &worker, GPUSEG_KFD_HOLD, FAKE_GPU_ID(FAKE_HWS_GFX9), q), 0);
	CHECK_EQ(apply_one(one, &worker, GPUSEG_KFD_RELEASE, 0, ALL), 0);
	CHECK(!runs(FAKE_HWS_GFX9, &worker, q));
	CHECK_EQ(apply_one(one, &worker, GPUSEG_KFD_RELEASE, FAKE_GPU_ID(FAKE_HWS_GFX9), q), -ENOENT);
	close(two);
	CHECK(runs(FAKE_HWS_GFX9, &worker, q));
	close(one);
	kill_worker(&worker);
	check_clean();
}

static void should_refuse_no_hws_on_gfx11_with_a_reason(void)
{
	struct worker worker = start_worker(false);
	uint32_t gpu = FAKE_NO_HWS_GFX11;
	int q = create_queue(&worker, gpu, FAKE_COMPUTE, 100), other = create_queue(&worker, FAKE_MES_GFX11, FAKE_COMPUTE, 100);
	struct gpuseg_kfd_entry e;
	int fd = open_patient();

	CHECK_EQ(apply_one(fd, &worker, GPUSEG_KFD_HOLD, FAKE_GPU_ID(gpu), ALL), -EOPNOTSUPP);
	CHECK_EQ(apply_one(fd, &worker, GPUSEG_KFD_HOLD, FAKE_GPU_ID(gpu), q), -EOPNOTSUPP);
	CHECK_EQ(apply_one(fd, &worker, GPUSEG_KFD_HOLD, 0xdead, ALL), -ENODEV);
	e = entry_for(&worker, GPUSEG_KFD_HOLD, 0, ALL);
	CHECK_EQ(apply(fd, &e, 1, NULL), 0);
	CHECK_EQ(e.result, -EOPNOTSUPP);
	CHECK_EQ(e.n_queues, 2);
	CHECK_EQ(e.n_held, 1);
	CHECK(runs(gpu, &worker, q) && !runs(FAKE_MES_GFX11, &worker, other));
	CHECK(runs(gpu, &worker, create_queue(&worker, gpu, FAKE_COMPUTE, 100)));
	close(fd);
	kill_worker(&worker);
	check_clean();
}

static void should_list_the_queues_of_a_process(void)
{
	struct worker worker = start_worker(false);
	struct gpuseg_kfd_queue queues[4];
	struct gpuseg_kfd_query query = { .pid = worker.pid, .start_ticks = worker.start_ticks, .queues = (uintptr_t)queues, .n_queues = 4 };
	int fd = open_patient();

	create_queue(&worker, FAKE_NO_HWS_GFX9, FAKE_COMPUTE, 100);
	create_queue(&worker, FAKE_NO_HWS_GFX9, FAKE_SDMA, 100);
	create_queue(&worker, FAKE_HWS_GFX9, FAKE_COMPUTE, 100);
	CHECK_EQ(apply_one(fd, &worker, GPUSEG_KFD_HOLD, FAKE_GPU_ID(FAKE_HWS_GFX9), ALL), 0);
	CHECK_EQ(call(fd, GPUSEG_KFD_IOC_QUERY, &query), 0);
	CHECK_EQ(query.n_queues, 3);
	CHECK_EQ(queues[0].flags | queues[1].flags, GPUSEG_KFD_QUEUE_ACTIVE | GPUSEG_KFD_QUEUE_SDMA);
	CHECK_EQ(queues[2].flags, GPUSEG_KFD_QUEUE_HELD);
	CHECK_EQ(queues[2].gpu_id, FAKE_GPU_ID(FAKE_HWS_GFX9));
	CHECK_EQ(queues[2].queue_id, 2);
	query.n_queues = 1;
	CHECK_EQ(call(fd, GPUSEG_KFD_IOC_QUERY, &query), 0);
	CHECK_EQ(query.n_queues, 3);
	query.queues = 8;
	CHECK_EQ(call(fd, GPUSEG_KFD_IOC_QUERY, &query), -EFAULT);
	close(fd);
	kill_worker(&worker);
	check_clean();
}

static void should_release_a_process_whose_leading_thread_has_ended(void)
{
	struct worker worker = start_worker(true);
	int q = create_queue(&worker, FAKE_NO_HWS_GFX9, FAKE_COMPUTE, 100);
	int s = create_queue(&worker, FAKE_NO_HWS_GFX9, FAKE_SDMA, 100);
	int fd = open_patient();

	CHECK(runs(FAKE_NO_HWS_GFX9, &worker, q));
	CHECK_EQ(apply_one(fd, &worker, GPUSEG_KFD_HOLD, 0, ALL), 0);
	CHECK(!runs(FAKE_NO_HWS_GFX9, &worker, q) && !runs(FAKE_NO_HWS_GFX9, &worker, s));
	CHECK_EQ(apply_one(fd, &worker, GPUSEG_KFD_RELEASE, 0, ALL), 0);
	CHECK(runs(FAKE_NO_HWS_GFX9, &worker, q) && runs(FAKE_NO_HWS_GFX9, &worker, s));
	close(fd);
	kill_worker(&worker);
	check_clean();
}

/* ---------------------------------------------------------------------------------- failures of all kinds */

static void should_release_when_the_owner_closes_or_dies(void)
{
	uint32_t i;

	for (i = 0; i < COUNT(can_hold); i++) {
		struct worker worker = start_worker(false);
		uint32_t gpu = can_hold[i];
		int q = create_queue(&worker, gpu, FAKE_COMPUTE, 100);
		int fd = open_patient(), pipe_fds[2];
		char byte = 0;
		pid_t owner;

		CHECK_EQ(apply_one(fd, &worker, GPUSEG_KFD_HOLD, 0, ALL), 0);
		CHECK(!runs(gpu, &worker, q));
		close(fd);
		CHECK(runs(gpu, &worker, q));

		CHECK_EQ(pipe(pipe_fds), 0);
		fflush(stdout);
		owner = fork();
		if (owner == 0) {
			fd = open_patient();
			byte = apply_one(fd, &worker, GPUSEG_KFD_HOLD, 0, ALL) ? 'n' : 'y';
			if (write(pipe_fds[1], &byte, 1) != 1)
				_exit(1);
			for (;;)
				pause();
		}
		CHECK_EQ(read(pipe_fds[0], &byte, 1), 1);
		CHECK_EQ(byte, 'y');
		CHECK(!runs(gpu, &worker, q));
		kill(owner, SIGKILL);
		waitpid(owner, NULL, 0);
		CHECK(runs(gpu, &worker, q));
		close(pipe_fds[0]);
		close(pipe_fds[1]);
		kill_worker(&worker);
	}
	check_clean();
}

static void should_release_when_the_watchdog_lapses_and_say_so(void)
{
	struct worker worker = start_worker(false);
	int q = create_queue(&worker, FAKE_NO_HWS_GFX9, FAKE_COMPUTE, 100);
	int s = create_queue(&worker, FAKE_NO_HWS_GFX9, FAKE_SDMA, 100);
	struct gpuseg_kfd_watchdog watchdog = { 0 };
	struct gpuseg_kfd_entry both[2];
	struct gpuseg_kfd_info info;
	int fd = open_control(), i;

	/* Long enough for a busy host that stops this machine for a second. */
	set_watchdog(fd, 2500);
	CHECK_EQ(apply_one(fd, &worker, GPUSEG_KFD_HOLD, 0, ALL), 0);
	/* Kicked, it holds longer than a period. */
	for (i = 0; i < 12; i++) {
		sleep_ms(250);
		CHECK_EQ(call(fd, GPUSEG_KFD_IOC_KICK, NULL), 0);
	}
	CHECK(!runs(FAKE_NO_HWS_GFX9, &worker, q));
	for (i = 0; i < 600 && !runs(FAKE_NO_HWS_GFX9, &worker, q); i++)
		sleep_ms(50);
	CHECK(runs(FAKE_NO_HWS_GFX9, &worker, q) && runs(FAKE_NO_HWS_GFX9, &worker, s));
	CHECK_EQ(call(fd, GPUSEG_KFD_IOC_KICK, NULL), -ESTALE);
	CHECK_EQ(apply_one(fd, &worker, GPUSEG_KFD_HOLD, 0, ALL), -ESTALE);
	CHECK_EQ(apply_one(fd, &worker, GPUSEG_KFD_RELEASE, 0, ALL), -ENOENT);
	both[0] = entry_for(&worker, GPUSEG_KFD_RELEASE, 0, ALL);
	both[1] = entry_for(&worker, GPUSEG_KFD_HOLD, 0, ALL);
	CHECK_EQ(apply(fd, both, 2, NULL), -ESTALE);
	CHECK_EQ(call(fd, GPUSEG_KFD_IOC_INFO, &info), 0);
	CHECK_EQ(info.lapses, 1);
	CHECK_EQ(info.n_holds, 0);
	watchdog.period_ms = 60000;
	CHECK_EQ(call(fd, GPUSEG_KFD_IOC_WATCHDOG, &watchdog), 0);
	CHECK_EQ(watchdog.lapses, 1);
	CHECK_EQ(apply_one(fd, &worker, GPUSEG_KFD_HOLD, 0, ALL), 0);
	CHECK(!runs(FAKE_NO_HWS_GFX9, &worker, q));
	close(fd);
	kill_worker(&worker);
	check_clean();
}

static void should_not_wait_for_a_process_in_a_long_ioctl(void)
{
	struct worker worker = start_worker(false);
	int q = create_queue(&worker, FAKE_HWS_GFX9, FAKE_COMPUTE, 100);
	int fd = open_patient();
	struct gpuseg_kfd_entry e = entry_for(&worker, GPUSEG_KFD_HOLD, 0, ALL);
	int64_t start;

	send_order(&worker, ORDER_LONG, 0, 0, 60000, 0);
	sleep_ms(200);
	start = now_ns();
	CHECK_EQ(apply(fd, &e, 1, NULL), 0);
	CHECK_EQ(e.n_held, 1);
	CHECK(now_ns() - start < 30000 * 1000000LL);
	CHECK(!runs(FAKE_HWS_GFX9, &worker, q));
	kill_worker(&worker);
	close(fd);
	check_clean();
}

static void should_survive_the_death_of_held_processes(void)
{
	int fd = open_patient();
	struct gpuseg_kfd_info info;
	uint32_t i;

	for (i = 0; i < COUNT(can_hold); i++) {
		struct worker worker = start_worker(false);

		create_queue(&worker, can_hold[i], FAKE_COMPUTE, 100);
		create_queue(&worker, can_hold[i], FAKE_COMPUTE, 100);
		CHECK_EQ(apply_one(fd, &worker, GPUSEG_KFD_HOLD, 0, ALL), 0);
		kill_worker(&worker);
	}
	CHECK_EQ(call(fd, GPUSEG_KFD_IOC_INFO, &info), 0);
	CHECK_EQ(info.n_holds, COUNT(can_hold));
	close(fd);
	check_clean();
}

static void should_make_room_by_forgetting_the_dead(void)
{
	struct worker worker = { 0 }, late = start_worker(false);
	int fd = open_patient();
	struct gpuseg_kfd_entry batch[GPUSEG_KFD_MAX_BATCH];
	struct gpuseg_kfd_apply out;
	struct worker dead[GPUSEG_KFD_MAX_BATCH];
	struct gpuseg_kfd_info info;
	uint32_t i, round;

	/* A process may be held once per GPU and once on all: fill with processes that end. */
	for (round = 0; round < GPUSEG_KFD_MAX_HOLDS / (4 * GPUSEG_KFD_MAX_BATCH) && !test_failed; round++) {
		for (i = 0; i < COUNT(dead); i++)
			dead[i] = start_worker(false);
		for (uint32_t kind = 0; kind < 4; kind++) {
			for (i = 0; i < COUNT(dead); i++)
				batch[i] = entry_for(&dead[i], GPUSEG_KFD_HOLD, kind == 3 ? 0 : FAKE_GPU_ID(kind), ALL);
			CHECK_EQ(apply(fd, batch, COUNT(batch), &out), 0);
			CHECK_EQ(out.n_failed, 0);
		}
		if (round)
			for (i = 0; i < COUNT(dead); i++)
				kill_worker(&dead[i]);
		else
			worker = dead[0];
		if (!round)
			for (i = 1; i < COUNT(dead); i++)
				kill_worker(&dead[i]);
	}
	CHECK_EQ(call(fd, GPUSEG_KFD_IOC_INFO, &info), 0);
	CHECK_EQ(info.n_holds, GPUSEG_KFD_MAX_HOLDS);
	CHECK_EQ(apply_one(fd, &late, GPUSEG_KFD_HOLD, 0, ALL), 0);
	CHECK_EQ(call(fd, GPUSEG_KFD_IOC_INFO, &info), 0);
	CHECK_EQ(info.n_holds, 5);
	close(fd);
	kill_worker(&worker);
	kill_worker(&late);
	check_clean();
}

static void should_tell_of_a_queue_that_stays_and_take_it_next_time(void)
{
	struct worker worker = start_worker(false);
	uint32_t gpu = FAKE_NO_HWS_GFX9;
	int a = create_queue(&worker, gpu, FAKE_COMPUTE, 100), b = create_queue(&worker, gpu, FAKE_COMPUTE, 100);
	struct gpuseg_kfd_entry e = entry_for(&worker, GPUSEG_KFD_HOLD, 0, ALL);
	struct gpuseg_kfd_query query;
	struct gpuseg_kfd_queue queues[2];
	int fd = open_patient();

	set_fault((struct fake_fault){ .gpu = gpu, .destroy_timeouts = 1 });
	CHECK_EQ(apply(fd, &e, 1, NULL), 0);
	CHECK_EQ(e.result, -ETIME);
	CHECK_EQ(e.n_held, 1);
	CHECK(runs(gpu, &worker, a) != runs(gpu, &worker, b));
	query = (struct gpuseg_kfd_query){ .pid = worker.pid, .start_ticks = worker.start_ticks, .queues = (uintptr_t)queues, .n_queues = 2 };
	CHECK_EQ(call(fd, GPUSEG_KFD_IOC_QUERY, &query), 0);
	CHECK_EQ((queues[0].flags | queues[1].flags) & GPUSEG_KFD_QUEUE_STUCK, GPUSEG_KFD_QUEUE_STUCK);
	/* The hold stands: once more takes it. */
	CHECK_EQ(apply(fd, &e, 1, NULL), 0);
	CHECK_EQ(e.result, 0);
	CHECK_EQ(e.n_held, 2);
	CHECK(!runs(gpu, &worker, a) && !runs(gpu, &worker, b));
	CHECK_EQ(apply_one(fd, &worker, GPUSEG_KFD_RELEASE, 0, ALL), 0);
	CHECK(runs(gpu, &worker, a) && runs(gpu, &worker, b));
	close(fd);
	kill_worker(&worker);
	check_clean();
}

static void should_put_back_a_queue_that_left_too_late(void)
{
	struct worker worker = start_worker(false);
	uint32_t gpu = FAKE_NO_HWS_GFX9;
	int q = create_queue(&worker, gpu, FAKE_COMPUTE, 100);
	int fd = open_patient();

	/* The driver is told that it stayed, and it leaves after all: nothing would load it again. */
	set_fault((struct fake_fault){ .gpu = gpu, .destroy_late = 1 });
	CHECK_EQ(apply_one(fd, &worker, GPUSEG_KFD_HOLD, 0, ALL), -ETIME);
	CHECK_EQ(queue_state(gpu, worker.pid, q).on_hardware, 0);
	CHECK_EQ(apply_one(fd, &worker, GPUSEG_KFD_RELEASE, 0, ALL), 0);
	CHECK(runs(gpu, &worker, q));
	close(fd);
	kill_worker(&worker);
	check_clean();
}

static void should_keep_a_queue_that_cannot_be_loaded_and_try_again(void)
{
	struct worker worker = start_worker(false), other = start_worker(false);
	uint32_t gpu = FAKE_NO_HWS_GFX9;
	int q = create_queue(&worker, gpu, FAKE_COMPUTE, 100);
	struct gpuseg_kfd_entry e = entry_for(&worker, GPUSEG_KFD_HOLD, 0, ALL);
	struct gpuseg_kfd_gpu info = { .index = gpu };
	int fd = open_patient();

	CHECK_EQ(apply(fd, &e, 1, NULL), 0);
	set_fault((struct fake_fault){ .gpu = gpu, .load_failures = 1 });
	e = entry_for(&worker, GPUSEG_KFD_RELEASE, 0, ALL);
	CHECK_EQ(apply(fd, &e, 1, NULL), 0);
	CHECK_EQ(e.result, -EIO);
	CHECK_EQ(e.n_held, 1);
	CHECK(!runs(gpu, &worker, q));
	CHECK_EQ(call(fd, GPUSEG_KFD_IOC_GPU, &info), 0);
	CHECK(info.failures > 0 && info.unloads > 0);
	/* Any later change of that GPU tries again. */
	CHECK_EQ(apply_one(fd, &other, GPUSEG_KFD_HOLD, 0, ALL), 0);
	CHECK(runs(gpu, &worker, q));
	close(fd);
	kill_worker(&worker);
	kill_worker(&other);
	check_clean();
}

static void should_come_out_of_a_gpu_reset_with_holds_in_force(void)
{
	static const uint32_t gpus[] = { FAKE_HWS_GFX9, FAKE_MES_GFX11 };
	uint32_t i;

	for (i = 0; i < COUNT(gpus); i++) {
		struct worker worker = start_worker(false), other = start_worker(false);
		uint32_t gpu = gpus[i], resets = get_state(gpu).resets;
		int q = create_queue(&worker, gpu, FAKE_COMPUTE, 100), o = create_queue(&other, gpu, FAKE_COMPUTE, 100);
		int fd = open_patient(), j;

		set_fault((struct fake_fault){ .gpu = gpu, .fence_losses = gpu == FAKE_HWS_GFX9, .mes_failures = gpu == FAKE_MES_GFX11 });
		CHECK(apply_one(fd, &worker, GPUSEG_KFD_HOLD, 0, ALL) < 0);
		for (j = 0; j < 600 && get_state(gpu).resets == resets; j++)
			sleep_ms(50);
		CHECK_EQ(get_state(gpu).resets, resets + 1);
		CHECK(!runs(gpu, &worker, q) && runs(gpu, &other, o));
		CHECK_EQ(apply_one(fd, &worker, GPUSEG_KFD_RELEASE, 0, ALL), 0);
		CHECK(runs(gpu, &worker, q) && runs(gpu, &other, o));
		close(fd);
		kill_worker(&worker);
		kill_worker(&other);
	}
	check_clean();
}

/* Evictions, creations and destructions, several owners, and kills, all at once for a while. */
struct racer {
	pthread_t thread;
	struct worker *workers;
	unsigned int seed;
	int kind;
};

static volatile bool race_over;
static pthread_mutex_t race_locks[4] = { PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER };
/* Of the contents of workers alone; not held while anybody is waited for. */
static pthread_mutex_t race_names = PTHREAD_MUTEX_INITIALIZER;

static struct worker read_worker(const struct worker *workers, uint32_t w)
{
	struct worker worker;

	pthread_mutex_lock(&race_names);
	worker = workers[w];
	pthread_mutex_unlock(&race_names);
	return worker;
}

static void write_worker(struct worker *workers, uint32_t w, struct worker worker)
{
	pthread_mutex_lock(&race_names);
	workers[w] = worker;
	pthread_mutex_unlock(&race_names);
}

static void *race(void *context)
{
	struct racer *racer = context;
	struct worker worker;
	uint32_t gpu, w;
	int fd = -1, id;

	while (!race_over) {
		w = rand_r(&racer->seed) % 4;
		gpu = can_hold[rand_r(&racer->seed) % COUNT(can_hold)];
		switch (racer->kind) {
		case 0:
			/* An owner that forgets and comes again. */
			if (fd < 0)
				fd = open_control();
			worker = read_worker(racer->workers, w);
			apply_one(fd, &worker, rand_r(&racer->seed) % 2 ? GPUSEG_KFD_HOLD : GPUSEG_KFD_RELEASE_PROCESS, 0, ALL);
			if (rand_r(&racer->seed) % 16 == 0) {
				close(fd);
				fd = -1;
			}
			break;
		case 1:
			/*
			 * One eviction at a time per process and GPU, as the driver's fences see to. Restored is who was
			 * evicted, though another may have taken its place meanwhile: that one was never evicted.
			 */
			worker = read_worker(racer->workers, w);
			if (evict(&worker, gpu, false) == 0)
				evict(&worker, gpu, true);
			break;
		default:
			pthread_mutex_lock(&race_locks[w]);
			worker = read_worker(racer->workers, w);
			id = create_queue(&worker, gpu, FAKE_COMPUTE, 100);
			if (id >= 0 && rand_r(&racer->seed) % 8)
				destroy_queue(&worker, id);
			if (rand_r(&racer->seed) % 64 == 0) {
				kill_worker(&worker);
				write_worker(racer->workers, w, start_worker(false));
			}
			pthread_mutex_unlock(&race_locks[w]);
		}
	}
	if (fd >= 0)
		close(fd);
	return NULL;
}

static void should_stand_everything_at_once(void)
{
	struct worker workers[4];
	struct racer racers[5] = { 0 };
	struct fake_state state;
	uint32_t i, gpu, active;

	race_over = false;
	for (i = 0; i < COUNT(workers); i++)
		workers[i] = start_worker(false);
	for (i = 0; i < COUNT(racers); i++) {
		racers[i] = (struct racer){ .workers = workers, .seed = i + 1, .kind = i < 2 ? 0 : (int)i - 1 };
		pthread_create(&racers[i].thread, NULL, race, &racers[i]);
	}
	sleep_ms(4000);
	race_over = true;
	for (i = 0; i < COUNT(racers); i++)
		pthread_join(racers[i].thread, NULL);
	/* No hold is left: everything runs. */
	for (gpu = 0; gpu < FAKE_GPUS; gpu++) {
		state = get_state(gpu);
		active = 0;
		for (i = 0; i < state.n_queues && i < FAKE_MAX_STATE; i++) {
			active += state_queues[i].is_active;
			CHECK_EQ(state_queues[i].is_held, 0);
			CHECK_EQ(state_queues[i].on_hardware, state_queues[i].is_active);
			CHECK_EQ(state_queues[i].is_active, 1);
		}
		if (!mes_leaks || gpu != FAKE_MES_GFX11)
			CHECK_EQ(state.active_queue_count, active);
	}
	for (i = 0; i < COUNT(workers); i++)
		kill_worker(&workers[i]);
	check_clean();
}

/* ------------------------------------------------------------------------------------- random sequences */

#define MODEL_WORKERS 4
#define MODEL_QUEUES 6
#define MODEL_FILES 3
#define MODEL_HOLDS 64

struct model_queue {
	bool exists;
	uint32_t gpu, type, percent;
	uint64_t serial;
};

struct model_worker {
	struct worker worker;
	struct model_queue queues[MODEL_QUEUES];
	uint32_t evicted[FAKE_GPUS];
	uint64_t life;
	bool known;	/* has asked KFD for something: only then memory management knows it */
};

struct model_hold {
	int file;
	uint64_t life, serial;
	uint32_t gpu_id, queue_id, flags;
};

static struct model_worker model[MODEL_WORKERS];
static struct model_hold model_holds[MODEL_HOLDS];
static uint32_t n_model_holds;
static int model_files[MODEL_FILES];
static uint64_t next_serial = 1, next_life = 1;
static uint64_t random_state;

static uint32_t pick(uint32_t n)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return (uint32_t)((random_state >> 11) % n);
}

static bool model_held(const struct model_worker *w, const struct model_queue *q)
{
	uint32_t i;

	if (q->gpu == FAKE_NO_HWS_GFX11)
		return false;
	for (i = 0; i < n_model_holds; i++) {
		const struct model_hold *h = &model_holds[i];

		if (h->life != w->life || (h->gpu_id && h->gpu_id != FAKE_GPU_ID(q->gpu)))
			continue;
		if (h->serial && h->serial != q->serial)
			continue;
		if ((h->flags & GPUSEG_KFD_COMPUTE_ONLY) && q->type == FAKE_SDMA)
			continue;
		return true;
	}
	return false;
}

static void drop_holds(int file, uint64_t life, bool all, uint32_t gpu_id, uint32_t queue_id, bool *any)
{
	uint32_t i = 0;

	*any = false;
	while (i < n_model_holds) {
		struct model_hold *h = &model_holds[i];

		if (h->file == file && (!life || h->life == life) && (all || (h->gpu_id == gpu_id && h->queue_id == queue_id))) {
			*h = model_holds[--n_model_holds];
			*any = true;
		} else {
			i++;
		}
	}
}

static void compare_with_model(const char *step)
{
	uint32_t gpu, w, i, q;

	for (gpu = 0; gpu < FAKE_GPUS; gpu++) {
		struct fake_state state = get_state(gpu);
		uint32_t queues = 0, active = 0, processes = 0;

		for (w = 0; w < MODEL_WORKERS; w++) {
			bool any = false;

			for (q = 0; q < MODEL_QUEUES; q++) {
				const struct model_queue *m = &model[w].queues[q];
				const struct fake_queue_state *s = NULL;
				bool held, runs_now;

				if (!m->exists || m->gpu != gpu)
					continue;
				any = true;
				queues++;
				held = model_held(&model[w], m);
				runs_now = m->percent && !model[w].evicted[gpu] && !held;
				active += runs_now;
				for (i = 0; i < state.n_queues; i++)
					if (state_queues[i].pid == model[w].worker.pid && state_queues[i].queue_id == q)
						s = &state_queues[i];
				if (!s)
					fail("%s: GPU %u lost queue %u of process %u", step, gpu, q, w);
				else if (s->is_held != held || s->is_active != runs_now || s->on_hardware != runs_now ||
					 s->is_evicted != !!model[w].evicted[gpu])
					fail("%s: GPU %u queue %u (type %u, serial %llu) of process %u is held=%u active=%u hardware=%u evicted=%u, expected %d %d %d %d", step, gpu,
					     q, m->type, (unsigned long long)m->serial, w, s->is_held, s->is_active, s->on_hardware, s->is_evicted, held, runs_now, runs_now,
					     !!model[w].evicted[gpu]);
				for (i = 0; test_failed && i < n_model_holds; i++)
					if (model_holds[i].life == model[w].life)
						printf("# hold by file %d on GPU %#x queue %#x (serial %llu) flags %u\n", model_holds[i].file, model_holds[i].gpu_id,
						       model_holds[i].queue_id, (unsigned long long)model_holds[i].serial, model_holds[i].flags);
			}
			processes += any;
		}
		if (state.n_queues != queues || state.total_queue_count != queues || state.processes_count != processes || state.on_hardware != active ||
		    state.rule_breaks || ((!mes_leaks || gpu != FAKE_MES_GFX11) && state.active_queue_count != active))
			fail("%s: GPU %u has %u queues, %u counted, %u active, %u processes, %u on hardware, %u rules broken; expected %u %u %u %u %u 0", step,
			     gpu, state.n_queues, state.total_queue_count, state.active_queue_count, state.processes_count, state.on_hardware,
			     state.rule_breaks, queues, queues, active, processes, active);
	}
}

static void model_new_worker(struct model_worker *w)
{
	memset(w, 0, sizeof(*w));
	w->worker = start_worker(false);
	w->life = next_life++;
}

static void random_apply(int file)
{
	struct gpuseg_kfd_entry batch[4];
	int expected[4];
	uint32_t n = 1 + pick(4), i, j;
	bool any;

	for (i = 0; i < n; i++) {
		struct model_worker *w = &model[pick(MODEL_WORKERS)];
		uint32_t gpu = pick(FAKE_GPUS), gpu_id = pick(2) ? 0 : FAKE_GPU_ID(gpu);
		uint32_t queue_id = gpu_id && pick(2) ? pick(MODEL_QUEUES) : ALL;
		uint32_t kind = pick(8), op = kind < 4 ? GPUSEG_KFD_HOLD : kind < 7 ? GPUSEG_KFD_RELEASE : GPUSEG_KFD_RELEASE_PROCESS;
		struct model_queue *q = queue_id == ALL ? NULL : &w->queues[queue_id];

		if (op == GPUSEG_KFD_RELEASE_PROCESS) {
			gpu_id = 0;
			queue_id = ALL;
		}
		batch[i] = entry_for(&w->worker, op, gpu_id, queue_id);
		if (op == GPUSEG_KFD_HOLD && queue_id == ALL && pick(4) == 0)
			batch[i].flags = GPUSEG_KFD_COMPUTE_ONLY;
		expected[i] = 0;
		if (op != GPUSEG_KFD_HOLD) {
			drop_holds(file, w->life, op == GPUSEG_KFD_RELEASE_PROCESS, gpu_id, queue_id, &any);
			expected[i] = any ? 0 : -ENOENT;
		} else if (gpu_id == FAKE_GPU_ID(FAKE_NO_HWS_GFX11)) {
			expected[i] = -EOPNOTSUPP;
		} else if (q && (!q->exists || FAKE_GPU_ID(q->gpu) != gpu_id)) {
			expected[i] = -ENOENT;
		} else {
			drop_holds(file, w->life, false, gpu_id, queue_id, &any);
			model_holds[n_model_holds++] = (struct model_hold){ file, w->life, q ? q->serial : 0, gpu_id, queue_id, batch[i].flags };
			for (j = 0; !gpu_id && j < MODEL_QUEUES; j++)
				if (w->queues[j].exists && w->queues[j].gpu == FAKE_NO_HWS_GFX11)
					expected[i] = -EOPNOTSUPP;
		}
	}
	CHECK_EQ(apply(model_files[file], batch, n, NULL), 0);
	for (i = 0; i < n; i++)
		CHECK_EQ(batch[i].result, expected[i]);
}

static const char *random_step(void)
{
	static char text[96];
	struct model_worker *w = &model[pick(MODEL_WORKERS)];
	uint32_t kind = pick(100), gpu = pick(FAKE_GPUS), q = pick(MODEL_QUEUES), file = pick(MODEL_FILES);
	bool any;
	int id;

	snprintf(text, sizeof(text), "step kind %u on process %u", kind, (uint32_t)(w - model));
	if (kind < 38) {
		/* A model file has at most 4 × (2 + 4 + 6) kinds of hold; keep within the model's table. */
		if (n_model_holds < MODEL_HOLDS - 4)
			random_apply((int)file);
	} else if (kind < 55) {
		for (q = 0; q < MODEL_QUEUES && w->queues[q].exists; q++)
			;
		if (q < MODEL_QUEUES) {
			uint32_t type = gpu <= FAKE_HWS_GFX9 && pick(4) == 0 ? FAKE_SDMA : FAKE_COMPUTE;
			uint32_t percent = pick(5) ? 100 : 0;

			id = create_queue(&w->worker, gpu, type, percent);
			CHECK_EQ(id, q);
			w->queues[q] = (struct model_queue){ true, gpu, type, percent, next_serial++ };
			w->known = true;
		}
	} else if (kind < 67) {
		if (w->queues[q].exists) {
			CHECK_EQ(destroy_queue(&w->worker, q), 0);
			w->queues[q].exists = false;
		}
	} else if (kind < 75) {
		if (w->queues[q].exists) {
			w->queues[q].percent = pick(2) * 100;
			CHECK_EQ(update_queue(&w->worker, q, w->queues[q].percent), 0);
		}
	} else if (kind < 84) {
		if (w->known && w->evicted[gpu] < 3) {
			CHECK_EQ(evict(&w->worker, gpu, false), 0);
			w->evicted[gpu]++;
		}
	} else if (kind < 94) {
		for (gpu = 0; gpu < FAKE_GPUS && !w->evicted[gpu]; gpu++)
			;
		if (gpu < FAKE_GPUS) {
			CHECK_EQ(evict(&w->worker, gpu, true), 0);
			w->evicted[gpu]--;
		}
	} else if (kind < 97) {
		close(model_files[file]);
		drop_holds((int)file, 0, true, 0, 0, &any);
		model_files[file] = open_patient();
	} else {
		kill_worker(&w->worker);
		/* Its holds stay until their file releases them, and do nothing. */
		model_new_worker(w);
	}
	return text;
}

static uint32_t random_sequences;

static void should_agree_with_the_model_after_every_step(void)
{
	uint32_t sequence, step, steps = 0, i;
	int64_t start = now_ns();
	bool any;

	CHECK(random_sequences > 0);
	for (i = 0; i < MODEL_WORKERS; i++)
		model_new_worker(&model[i]);
	for (i = 0; i < MODEL_FILES; i++)
		model_files[i] = open_patient();
	for (sequence = 0; sequence < random_sequences && !test_failed; sequence++) {
		uint32_t length = 1 + pick(6);

		for (step = 0; step < length && !test_failed; step++, steps++) {
			const char *what = random_step();

			compare_with_model(what);
		}
		/* A sequence ends with one owner gone: what only it held runs. Holds do not pile up. */
		i = pick(MODEL_FILES);
		close(model_files[i]);
		drop_holds((int)i, 0, true, 0, 0, &any);
		model_files[i] = open_patient();
		compare_with_model("end of a sequence");
	}
	printf("random: %u sequences, %u steps, %.1f s\n", sequence, steps, (double)(now_ns() - start) / 1e9);
	for (i = 0; i < MODEL_FILES; i++)
		close(model_files[i]);
	n_model_holds = 0;
	compare_with_model("after the last file was closed");
	for (i = 0; i < MODEL_WORKERS; i++)
		kill_worker(&model[i].worker);
	check_clean();
}

/* ---------------------------------------------------------------------------------------- the machine */

static int load_module(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), r;

	if (fd < 0)
		return -errno;
	r = syscall(SYS_finit_module, fd, "", 0) ? -errno : 0;
	close(fd);
	return r;
}

static int unload_module(const char *name)
{
	return syscall(SYS_delete_module, name, O_NONBLOCK) ? -errno : 0;
}

static void should_unload_only_when_no_file_is_open_and_load_again(void)
{
	int fd = open_control(), i, allocations;

	close(fake_fd);
	fake_fd = -1;
	CHECK_EQ(unload_module("gpuseg_fake"), -EAGAIN);
	close(fd);
	for (i = 0; i < 3; i++) {
		CHECK_EQ(unload_module("gpuseg_fake"), 0);
		CHECK_EQ(open_control(), -ENOENT);
		CHECK_EQ(load_module("/gpuseg_fake.ko"), 0);
	}
	fake_fd = open("/dev/fake-kfd", O_RDWR | O_CLOEXEC);
	CHECK(fake_fd >= 0);
	/* What the driver keeps per device, and no more each time. */
	allocations = (int)get_state(0).live_allocations;
	CHECK(allocations > 0 && allocations < 16);
}

static void should_leave_nothing_behind(void)
{
	char buffer[4096];
	ssize_t n;
	int fd;

	close(fake_fd);
	fake_fd = -1;
	CHECK_EQ(unload_module("gpuseg_fake"), 0);
	mount("debugfs", "/sys/kernel/debug", "debugfs", 0, NULL);
	fd = open("/sys/kernel/debug/kmemleak", O_RDWR | O_CLOEXEC);
	if (fd < 0) {
		printf("# no kmemleak in this kernel\n");
		return;
	}
	/* It reports what two scans found unreferenced and is some seconds old. */
	for (int i = 0; i < 2; i++) {
		sleep_ms(5200);
		CHECK(write(fd, "scan", 4) == 4);
	}
	n = read(fd, buffer, sizeof(buffer) - 1);
	buffer[n > 0 ? n : 0] = 0;
	if (n > 0) {
		printf("%s\n", buffer);
		CHECK(strstr(buffer, "gpuseg") == NULL && strstr(buffer, "fake_") == NULL);
	}
	close(fd);
}

static void no_complaints_of_the_kernel(void)
{
	static const char *const bad[] = { "BUG:", "WARNING:", "KASAN", "possible circular", "inconsistent lock", "possible recursive", "INFO: task", "Oops", "allocations are left", "fake-kfd:" };
	static char line[8192];
	int fd = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	ssize_t n;
	uint32_t i;

	CHECK(fd >= 0);
	while ((n = read(fd, line, sizeof(line) - 1)) > 0 || (n < 0 && errno == EPIPE)) {
		if (n < 0)
			continue;
		line[n] = 0;
		for (i = 0; i < COUNT(bad); i++)
			if (strstr(line, bad[i]) && !strstr(line, "KernelAddressSanitizer initialized"))
				fail("kernel says %.200s", line);
	}
	close(fd);
}

static char *option(const char *name)
{
	static char text[4096];
	char *at;
	ssize_t n;
	int fd = open("/proc/cmdline", O_RDONLY | O_CLOEXEC);

	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[n > 0 ? n : 0] = 0;
	for (at = strtok(text, " \n"); at; at = strtok(NULL, " \n"))
		if (!strncmp(at, name, strlen(name)) && at[strlen(name)] == '=')
			return at + strlen(name) + 1;
	return NULL;
}

static uint64_t number_option(const char *name)
{
	const char *text = option(name);

	return text ? strtoull(text, NULL, 10) : 0;
}

static void run_abi(void)
{
	run_test("should_refuse_users_other_than_root", should_refuse_users_other_than_root);
	run_test("should_refuse_root_without_cap_sys_admin", should_refuse_root_without_cap_sys_admin);
	run_test("should_refuse_a_passed_on_file_without_cap_sys_admin", should_refuse_a_passed_on_file_without_cap_sys_admin);
	run_test("should_refuse_unknown_ioctls", should_refuse_unknown_ioctls);
	run_test("should_tell_what_it_is", should_tell_what_it_is);
	run_test("should_answer_bad_pointers_with_efault", should_answer_bad_pointers_with_efault);
	run_test("should_refuse_malformed_batches", should_refuse_malformed_batches);
	run_test("should_refuse_bad_watchdog_periods_and_queries", should_refuse_bad_watchdog_periods_and_queries);
}

static void run_logic(void)
{
	run_test("should_do_nothing_of_a_batch_whose_end_is_unreadable", should_do_nothing_of_a_batch_whose_end_is_unreadable);
	run_test("should_refuse_processes_that_are_not_the_ones_meant", should_refuse_processes_that_are_not_the_ones_meant);
	run_test("should_describe_each_gpu", should_describe_each_gpu);
	run_test("should_take_a_process_off_each_kind_of_gpu_and_put_it_back", should_take_a_process_off_each_kind_of_gpu_and_put_it_back);
	run_test("should_write_one_runlist_for_a_batch_over_processes", should_write_one_runlist_for_a_batch_over_processes);
	run_test("should_start_queues_of_a_held_process_held", should_start_queues_of_a_held_process_held);
	run_test("should_hold_all_contexts_of_a_process_and_refuse_an_id_that_two_of_them_have",
		 should_hold_all_contexts_of_a_process_and_refuse_an_id_that_two_of_them_have);
	run_test("should_hold_one_queue_and_not_the_one_that_inherits_its_id", should_hold_one_queue_and_not_the_one_that_inherits_its_id);
	run_test("should_let_copies_go_on_where_asked", should_let_copies_go_on_where_asked);
	run_test("should_nest_with_evictions_in_any_order", should_nest_with_evictions_in_any_order);
	run_test("should_not_let_a_queue_miss_an_eviction_or_a_hold_while_it_is_created", should_not_let_a_queue_miss_an_eviction_or_a_hold_while_it_is_created);
	run_test("should_run_only_when_no_file_holds", should_run_only_when_no_file_holds);
	run_test("should_refuse_no_hws_on_gfx11_with_a_reason", should_refuse_no_hws_on_gfx11_with_a_reason);
	run_test("should_list_the_queues_of_a_process", should_list_the_queues_of_a_process);
	run_test("should_release_a_process_whose_leading_thread_has_ended", should_release_a_process_whose_leading_thread_has_ended);
	run_test("should_release_when_the_owner_closes_or_dies", should_release_when_the_owner_closes_or_dies);
	run_test("should_release_when_the_watchdog_lapses_and_say_so", should_release_when_the_watchdog_lapses_and_say_so);
	run_test("should_not_wait_for_a_process_in_a_long_ioctl", should_not_wait_for_a_process_in_a_long_ioctl);
	run_test("should_survive_the_death_of_held_processes", should_survive_the_death_of_held_processes);
	run_test("should_tell_of_a_queue_that_stays_and_take_it_next_time", should_tell_of_a_queue_that_stays_and_take_it_next_time);
	run_test("should_put_back_a_queue_that_left_too_late", should_put_back_a_queue_that_left_too_late);
	run_test("should_keep_a_queue_that_cannot_be_loaded_and_try_again", should_keep_a_queue_that_cannot_be_loaded_and_try_again);
	run_test("should_come_out_of_a_gpu_reset_with_holds_in_force", should_come_out_of_a_gpu_reset_with_holds_in_force);
	run_test("should_stand_everything_at_once", should_stand_everything_at_once);
	/* Hundreds of processes: too many for a kernel that checks everything. */
	if (option("gpuseg.long"))
		run_test("should_make_room_by_forgetting_the_dead", should_make_room_by_forgetting_the_dead);
	run_test("should_unload_only_when_no_file_is_open_and_load_again", should_unload_only_when_no_file_is_open_and_load_again);
}

/* The patched amdgpu module itself, and what it needs, in the order of /order. */
static void should_load_the_patched_amdgpu(void)
{
	char line[128], path[192];
	FILE *order = fopen("/order", "r");

	CHECK(order != NULL);
	while (order && fgets(line, sizeof(line), order)) {
		line[strcspn(line, "\n")] = 0;
		snprintf(path, sizeof(path), "/%s", line);
		CHECK_EQ(load_module(path), 0);
	}
	if (order)
		fclose(order);
	CHECK_EQ(access("/dev/kfd", F_OK), 0);
	CHECK_EQ(access("/dev/gpuseg-kfd", F_OK), 0);
}

static void should_unload_the_patched_amdgpu(void)
{
	int fd = open_control();

	CHECK_EQ(unload_module("amdgpu"), -EAGAIN);
	close(fd);
	CHECK_EQ(unload_module("amdgpu"), 0);
	CHECK_EQ(open_control(), -ENOENT);
}

int main(void)
{
	struct timespec booted;
	const char *part;
	int console;

	signal(SIGPIPE, SIG_IGN);
	mkdir("/proc", 0755);
	mkdir("/sys", 0755);
	mkdir("/dev", 0755);
	mount("proc", "/proc", "proc", 0, NULL);
	mount("sysfs", "/sys", "sysfs", 0, NULL);
	mount("devtmpfs", "/dev", "devtmpfs", 0, NULL);
	/* The kernel finds no console before that. */
	console = open("/dev/console", O_RDWR);
	dup2(console, 0);
	dup2(console, 1);
	dup2(console, 2);
	setvbuf(stdout, NULL, _IOLBF, 0);
	part = option("gpuseg.part");
	part = part ? strdup(part) : "";
	clock_gettime(CLOCK_BOOTTIME, &booted);
	printf("# user space runs %.1f s after the kernel began\n", booted.tv_sec + booted.tv_nsec / 1e9);

	if (!strcmp(part, "module")) {
		run_test("should_load_the_patched_amdgpu", should_load_the_patched_amdgpu);
		run_abi();
		run_test("should_unload_the_patched_amdgpu", should_unload_the_patched_amdgpu);
	} else {
		int r = load_module("/gpuseg_fake.ko");

		fake_fd = open("/dev/fake-kfd", O_RDWR | O_CLOEXEC);
		if (r || fake_fd < 0) {
			printf("not ok load: gpuseg_fake.ko: %d\n", r);
			failed++;
		} else {
			mes_leaks = ioctl(fake_fd, FAKE_MES_LEAKS) == 1;
			run_abi();
			run_logic();
			random_state = number_option("gpuseg.seed") * 0x9e3779b97f4a7c15ull + 1;
			random_sequences = (uint32_t)number_option("gpuseg.sequences");
			run_test("should_agree_with_the_model_after_every_step", should_agree_with_the_model_after_every_step);
		}
		run_test("should_leave_nothing_behind", should_leave_nothing_behind);
	}
	run_test("no_complaints_of_the_kernel", no_complaints_of_the_kernel);
	printf("guest: %d passed, %d failed\n", passed, failed);
	fflush(stdout);
	sync();
	/* Ends the emulator, which is told not to reboot. */
	reboot(RB_AUTOBOOT);
	for (;;)
		pause();
}
