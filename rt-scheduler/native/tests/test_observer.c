/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpuseg-observer against processes whose ioctls have the layout of NVIDIA's driver, on /dev/full: it is a character
 * device that hardly any program opens, and its ioctls fail without effect.
 */
#define _GNU_SOURCE
#include "observer/observer_abi.h"

#include <errno.h>
#include <fcntl.h>
#include <mntent.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base.h"
#include "tests/check.h"
#include "tests/rig.h"

#define DEVICE "/dev/full"
#define LIMIT_MS 30000
#define SLICE_US 2048
#define CLIENT 0xc1d00007u
#define RM_DEVICE 0x5c000002u
#define SUBDEVICE 0x5c000003u
#define TSG 0x5c000015u
#define CHANNEL 0x5c00001cu
#define TICK_NS UINT64_C(10000000)

struct alloc { /* RM's long form */
	uint32_t client, parent, handle, class_id;
	uint64_t params, rights;
	uint32_t params_size, flags, status, pad;
};

struct observer {
	pid_t pid;
	int records;
};

/* The next record that is no account; the test ends if there is none within the limit. */
static struct gpuseg_observer_record next(const struct observer *o)
{
	struct gpuseg_observer_record r;

	do {
		for (size_t have = 0; have < sizeof(r);) {
			struct pollfd ready = {.fd = o->records, .events = POLLIN};
			const int rc = poll(&ready, 1, LIMIT_MS);
			const ssize_t n = rc > 0 ? read(o->records, (char *)&r + have, sizeof(r) - have) : 0;

			CHECK(n > 0, "no record within %d ms, or the observer has ended", LIMIT_MS);
			have += (size_t)n;
		}
	} while (r.kind == GPUSEG_OBSERVER_GROUP || r.kind == GPUSEG_OBSERVER_GROUP_GONE);
	return r;
}

/* The next one of a process; other programs may open the device, too. */
static struct gpuseg_observer_record next_of(const struct observer *o, pid_t pid)
{
	struct gpuseg_observer_record r;

	do
		r = next(o);
	while (r.pid != (uint32_t)pid);
	return r;
}

static void require_bpf(void)
{
	static const char *const check[] = {"--check", NULL};
	const char *build = getenv("GPUSEG_TEST_BUILD");
	char path[4096], said[1024];

	snprintf(path, sizeof(path), "%s/gpuseg-observer", build ? build : "build");
	if (access(path, X_OK) != 0) {
		CHECK(getenv("CI") == NULL, "gpuseg-observer is not built: apt install clang libbpf-dev");
		SKIP("gpuseg-observer is not built: apt install clang libbpf-dev");
	}
	if (rig_run("gpuseg-observer", check, said, sizeof(said)) != 0) {
		CHECK(getenv("CI") == NULL || geteuid() != 0, "root may use BPF where CI runs, but: %s", said);
		SKIP("%s", said);
	}
}

static struct observer start_observer(const char *device)
{
	const char *const arguments[] = {"--device", device, NULL};
	struct observer o;
	struct gpuseg_observer_record hello;

	require_bpf();
	o.pid = rig_start("gpuseg-observer", arguments, &o.records);
	hello = next(&o);
	CHECK_EQ(hello.kind, GPUSEG_OBSERVER_HELLO);
	CHECK_EQ(hello.handle, GPUSEG_OBSERVER_VERSION);
	return o;
}

static int open_device(const char *path)
{
	const int fd = open(path, O_RDWR | O_CLOEXEC);

	if (fd < 0)
		_exit(99);
	return fd;
}

static void allocate_as(int fd, uint32_t parent, uint32_t handle, uint32_t class_id, uint32_t status)
{
	uint32_t params[5] = {0, 0, 0, 1, 0};
	struct alloc a = {.client = CLIENT,
			  .parent = parent,
			  .handle = handle,
			  .class_id = class_id,
			  .params = (uint64_t)(uintptr_t)params,
			  .params_size = sizeof(params),
			  .status = status};

	ioctl(fd, _IOC(_IOC_READ | _IOC_WRITE, 'F', 0x2b, sizeof(a)), &a);
}

static void allocate(int fd, uint32_t parent, uint32_t handle, uint32_t class_id)
{
	allocate_as(fd, parent, handle, class_id, 0);
}

static void free_object(int fd, uint32_t handle)
{
	uint32_t f[4] = {CLIENT, 0, handle, 0};

	ioctl(fd, _IOC(_IOC_READ | _IOC_WRITE, 'F', 0x29, sizeof(f)), f);
}

static void control(int fd, uint32_t object, uint32_t command, uint32_t status)
{
	uint32_t c[8] = {CLIENT, object, command, 0, 0, 0, 0, status};

	ioctl(fd, _IOC(_IOC_READ | _IOC_WRITE, 'F', 0x2a, sizeof(c)), c);
}

static void set_timeslice(int fd, uint32_t object, uint64_t us, uint32_t status)
{
	const uint64_t at = (uintptr_t)&us;
	uint32_t c[8] = {CLIENT, object, 0xa06c0103, 0, (uint32_t)at, (uint32_t)(at >> 32), sizeof(us), status};

	ioctl(fd, _IOC(_IOC_READ | _IOC_WRITE, 'F', 0x2a, sizeof(c)), c);
}

/* Forks; the child runs and exits with 0. */
static pid_t in_child(void (*run)(void))
{
	const pid_t pid = fork();

	CHECK(pid >= 0, "fork: %s", strerror(errno));
	if (pid == 0) {
		run();
		_exit(0);
	}
	return pid;
}

static void reap(pid_t pid)
{
	int status;

	CHECK(waitpid(pid, &status, 0) == pid, "waitpid: %s", strerror(errno));
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the process ended with 0x%x", (unsigned)status);
}

static void live_a_whole_life(void)
{
	const int fd = open_device(DEVICE);

	allocate(fd, 0, CLIENT, 0x41);
	allocate(fd, CLIENT, RM_DEVICE, 0x80);
	allocate(fd, RM_DEVICE, SUBDEVICE, 0x2080);
	allocate(fd, RM_DEVICE, TSG, 0xa06c);
	allocate(fd, TSG, CHANNEL, 0xc86f);
	control(fd, TSG, 0xa06c0101, 0x56); /* refused by RM */
	control(fd, TSG, 0xa06c0101, 0);
	set_timeslice(fd, TSG, SLICE_US, 0x56);
	set_timeslice(fd, TSG, SLICE_US, 0);
	free_object(fd, CHANNEL);
	free_object(fd, TSG);
	free_object(fd, CLIENT);
	close(fd);
}

enum { IOCTLS_OF_A_LIFE = 12 };

TEST(should_report_a_whole_life_in_order)
{
	static const struct {
		uint32_t kind, parent, handle, class_id;
	} expected[] = {
		{GPUSEG_OBSERVER_OPEN, 0, 0, 0},
		{GPUSEG_OBSERVER_ALLOC, 0, CLIENT, 0x41},
		{GPUSEG_OBSERVER_ALLOC, CLIENT, RM_DEVICE, 0x80},
		{GPUSEG_OBSERVER_ALLOC, RM_DEVICE, SUBDEVICE, 0x2080},
		{GPUSEG_OBSERVER_ALLOC, RM_DEVICE, TSG, 0xa06c},
		{GPUSEG_OBSERVER_ALLOC, TSG, CHANNEL, 0xc86f},
		{GPUSEG_OBSERVER_SCHEDULES, 0, TSG, 0}, /* also what RM refuses has begun */
		{GPUSEG_OBSERVER_SCHEDULES, 0, TSG, 0},
		{GPUSEG_OBSERVER_SCHEDULED, 0, TSG, 0},
		{GPUSEG_OBSERVER_TIMESLICE, SLICE_US, TSG, 0},
		{GPUSEG_OBSERVER_FREE, 0, CHANNEL, 0},
		{GPUSEG_OBSERVER_FREE, 0, TSG, 0},
		{GPUSEG_OBSERVER_FREE, 0, CLIENT, 0},
		{GPUSEG_OBSERVER_CLOSE, 0, 0, 0},
		{GPUSEG_OBSERVER_EXIT, 0, 0, 0},
	};
	const struct observer o = start_observer("nvidia:1:7:any");
	const int64_t before = now_ns();
	const pid_t pid = in_child(live_a_whole_life);
	const uint64_t ticks = process_start_ticks(pid); /* of a zombie, too */

	for (size_t i = 0; i < ARRAY_LENGTH(expected); i++) {
		const struct gpuseg_observer_record r = next_of(&o, pid);

		CHECK(r.kind == expected[i].kind, "record %zu is of kind %u", i, r.kind);
		CHECK(r.parent == expected[i].parent, "record %zu has parent %x", i, r.parent);
		CHECK(r.handle == expected[i].handle, "record %zu has handle %x", i, r.handle);
		CHECK(r.class_id == expected[i].class_id, "record %zu has class %x", i, r.class_id);
		CHECK(r.start_ns / TICK_NS == ticks, "start %" PRIu64, (uint64_t)r.start_ns);
		CHECK((int64_t)r.time_ns >= before && (int64_t)r.time_ns <= now_ns(), "time of record %zu", i);
		if (r.kind == GPUSEG_OBSERVER_ALLOC) {
			CHECK_EQ(r.client, CLIENT);
			CHECK_EQ(r.owner, pid);
			CHECK_EQ(r.engine, r.class_id == 0xa06c ? 1 : 0);
		}
	}
	reap(pid);
}

static void make_what_is_of_no_interest(void)
{
	const int fd = open_device(DEVICE);

	allocate_as(fd, CLIENT, TSG, 0xa06c, 0x56); /* refused by RM */
	allocate(fd, CLIENT, 0x5c000099, 0x3e);	    /* memory */
	free_object(fd, 0x5c000099);
	ioctl(fd, _IOC(_IOC_READ | _IOC_WRITE, 'G', 0x2b, 48), NULL);
	close(fd);
}

TEST(should_not_report_refusals_and_other_objects)
{
	const struct observer o = start_observer("nvidia:1:7:any");
	const pid_t pid = in_child(make_what_is_of_no_interest);

	CHECK_EQ(next_of(&o, pid).kind, GPUSEG_OBSERVER_OPEN);
	CHECK_EQ(next_of(&o, pid).kind, GPUSEG_OBSERVER_CLOSE);
	CHECK_EQ(next_of(&o, pid).kind, GPUSEG_OBSERVER_EXIT);
	reap(pid);
}

TEST(should_not_report_failed_ioctls_of_a_real_driver)
{
	const struct observer o = start_observer("nvidia:1:7");
	const pid_t pid = in_child(live_a_whole_life);

	CHECK_EQ(next_of(&o, pid).kind, GPUSEG_OBSERVER_OPEN);
	CHECK_EQ(next_of(&o, pid).kind, GPUSEG_OBSERVER_SCHEDULES); /* what was begun is known, not what came of it */
	CHECK_EQ(next_of(&o, pid).kind, GPUSEG_OBSERVER_SCHEDULES);
	CHECK_EQ(next_of(&o, pid).kind, GPUSEG_OBSERVER_CLOSE);
	CHECK_EQ(next_of(&o, pid).kind, GPUSEG_OBSERVER_EXIT);
	reap(pid);
}

/* For each pid: what is known of it so far. */
static uint8_t stages[1 << 22];

static void share_a_descriptor(void)
{
	const int fd = open_device(DEVICE);
	const pid_t child = fork();

	if (child == 0) {
		allocate(fd, 0, CLIENT, 0x41);
		allocate(fd, CLIENT, TSG, 0xa06c);
		_exit(0);
	}
	if (child < 0 || waitpid(child, NULL, 0) != child)
		_exit(98);
}

TEST(should_say_once_that_a_process_uses_what_it_did_not_open)
{
	const struct observer o = start_observer("nvidia:1:7:any");
	const pid_t parent = in_child(share_a_descriptor);
	struct gpuseg_observer_record r = next_of(&o, parent);
	uint32_t child = 0;
	int made = 0;

	CHECK_EQ(r.kind, GPUSEG_OBSERVER_OPEN);
	do {
		r = next(&o); /* other programs may open the device, too */
		CHECK(r.pid < sizeof(stages), "pid %u", r.pid);
		stages[r.pid] += r.kind == GPUSEG_OBSERVER_UNSEEN;
		if (r.kind == GPUSEG_OBSERVER_ALLOC && r.owner == (uint32_t)parent) {
			child = r.pid;
			CHECK(child != (uint32_t)parent);
			CHECK(stages[child] == 1, "an object before the warning");
			made++;
		}
	} while (!(r.kind == GPUSEG_OBSERVER_EXIT && r.pid == (uint32_t)parent));
	CHECK_EQ(made, 2);
	CHECK_EQ(stages[child], 1);
	reap(parent);
}

#ifdef __x86_64__
/* A system call by the table of 32-bit programs, which a 64-bit program may use, too; pointers below 4 GiB. */
static long compat_call(long number, long a, long b, long c)
{
	long result;

	__asm__ volatile("int $0x80"
			 : "=a"(result)
			 : "a"(number), "b"(a), "c"(b), "d"(c)
			 : "memory", "r8", "r9", "r10", "r11");
	return result;
}

enum { COMPAT_READ = 3, COMPAT_OPEN = 5, COMPAT_CLOSE = 6, COMPAT_GETPID = 20, COMPAT_IOCTL = 54 };

static void ask_for_the_pid(void)
{
	_exit(compat_call(COMPAT_GETPID, 0, 0, 0) == getpid() ? 0 : 1);
}

static void require_compat_calls(void)
{
	const pid_t pid = in_child(ask_for_the_pid);
	int status;

	CHECK(waitpid(pid, &status, 0) == pid, "waitpid: %s", strerror(errno));
	if (status != 0)
		SKIP("this kernel has no calls of 32-bit programs (IA32_EMULATION)");
}

/* Memory that both tables can name. */
static void *low_memory(void)
{
	void *at = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);

	if (at == MAP_FAILED)
		_exit(97);
	return at;
}

static void allocate_by_compat_call(int fd)
{
	struct alloc *a = low_memory();

	*a = (struct alloc){.client = CLIENT, .parent = RM_DEVICE, .handle = TSG, .class_id = 0xa06c};
	compat_call(COMPAT_IOCTL, fd, (long)_IOC(_IOC_READ | _IOC_WRITE, 'F', 0x2b, sizeof(*a)), (long)(uintptr_t)a);
}

static void open_plainly_and_allocate_by_compat_call(void)
{
	const int fd = open_device(DEVICE);

	allocate(fd, 0, CLIENT, 0x41);
	allocate_by_compat_call(fd);
	allocate_by_compat_call(fd);
	close(fd);
}

static void use_compat_calls_only(void)
{
	char *low = low_memory();
	long fd;

	strcpy(low, DEVICE);
	fd = compat_call(COMPAT_OPEN, (long)(uintptr_t)low, O_RDWR, 0);
	if (fd < 0 || compat_call(COMPAT_READ, fd, (long)(uintptr_t)low, 8) != 8) /* the number of a plain close */
		_exit(98);
	allocate_by_compat_call((int)fd);
	compat_call(COMPAT_CLOSE, fd, 0, 0);
}

static void make_a_queue_by_compat_call(void)
{
	const int fd = open_device(DEVICE);

	compat_call(COMPAT_IOCTL, fd, (long)_IOC(_IOC_READ | _IOC_WRITE, 'K', 2, 88), 0);
}

static void expect_kinds(const struct observer *o, pid_t pid, const uint32_t kinds[], size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const struct gpuseg_observer_record r = next_of(o, pid);

		CHECK(r.kind == kinds[i], "record %zu is of kind %u, not %u", i, r.kind, kinds[i]);
	}
	reap(pid);
}

/* Such a call's block may have another layout: the process is searched, as one whose descriptor was not seen. */
TEST(should_say_once_that_a_process_uses_calls_of_32_bit_programs)
{
	static const uint32_t mixed[] = {GPUSEG_OBSERVER_OPEN, GPUSEG_OBSERVER_ALLOC, GPUSEG_OBSERVER_UNSEEN,
					 GPUSEG_OBSERVER_CLOSE, GPUSEG_OBSERVER_EXIT};
	static const uint32_t only[] = {GPUSEG_OBSERVER_OPEN, GPUSEG_OBSERVER_UNSEEN, GPUSEG_OBSERVER_CLOSE,
					GPUSEG_OBSERVER_EXIT};
	static const uint32_t work[] = {GPUSEG_OBSERVER_OPEN, GPUSEG_OBSERVER_WORK, GPUSEG_OBSERVER_EXIT};
	struct observer o;

	require_compat_calls();
	o = start_observer("nvidia:1:7"); /* also where the driver refuses the call */
	expect_kinds(&o, in_child(use_compat_calls_only), only, ARRAY_LENGTH(only));
	close(o.records);
	CHECK_EQ(rig_wait(o.pid), 0);
	o = start_observer("nvidia:1:7:any");
	expect_kinds(&o, in_child(open_plainly_and_allocate_by_compat_call), mixed, ARRAY_LENGTH(mixed));
	close(o.records);
	CHECK_EQ(rig_wait(o.pid), 0);
	o = start_observer("kfd:1:7:any"); /* whose blocks are the same */
	expect_kinds(&o, in_child(make_a_queue_by_compat_call), work, ARRAY_LENGTH(work));
}
#endif

static const char *node;

static void make_a_client(void)
{
	const int fd = open_device(node);

	allocate(fd, 0, CLIENT, 0x41);
	close(fd);
}

/* Two nodes of one name: a file of the device, and /dev/null, which is not watched. */
TEST(should_recognize_a_device_by_its_number_and_not_by_its_name)
{
	static const struct {
		int minor;
		bool seen;
	} nodes[] = {{3, false}, {7, true}, {3, false}};
	const struct observer o = start_observer("nvidia:1:7:any");

	node = rig_path("nvidiactl");
	for (size_t i = 0; i < ARRAY_LENGTH(nodes); i++) {
		struct gpuseg_observer_record r;
		pid_t pid, later;
		int fd;

		unlink(node);
		if (mknod(node, S_IFCHR | 0600, (dev_t)(1 << 8 | nodes[i].minor)) != 0 ||
		    (fd = open(node, O_RDWR | O_CLOEXEC)) < 0)
			SKIP("device nodes cannot be made or used in %s: %s", rig_directory(), strerror(errno));
		close(fd);
		pid = in_child(make_a_client);
		reap(pid);
		if (nodes[i].seen) {
			CHECK_EQ(next_of(&o, pid).kind, GPUSEG_OBSERVER_OPEN);
			CHECK_EQ(next_of(&o, pid).kind, GPUSEG_OBSERVER_ALLOC);
			CHECK_EQ(next_of(&o, pid).kind, GPUSEG_OBSERVER_CLOSE);
			CHECK_EQ(next_of(&o, pid).kind, GPUSEG_OBSERVER_EXIT);
			continue;
		}
		later = in_child(live_a_whole_life); /* its records would come after those of `pid` */
		reap(later);
		do {
			r = next(&o);
			CHECK(r.pid != (uint32_t)pid, "/dev/null as %s was reported, kind %u", node, r.kind);
		} while (r.pid != (uint32_t)later || r.kind != GPUSEG_OBSERVER_EXIT);
	}
}

static void *end_at_once(void *unused)
{
	return unused;
}

static void have_threads_that_end(void)
{
	const int fd = open_device(DEVICE);
	pthread_t thread;

	for (int i = 0; i < 4; i++)
		if (pthread_create(&thread, NULL, end_at_once, NULL) != 0 || pthread_join(thread, NULL) != 0)
			_exit(98);
	allocate(fd, 0, CLIENT, 0x41);
}

TEST(should_report_the_end_of_a_process_and_not_of_its_threads)
{
	const struct observer o = start_observer("nvidia:1:7:any");
	const pid_t pid = in_child(have_threads_that_end);

	CHECK_EQ(next_of(&o, pid).kind, GPUSEG_OBSERVER_OPEN);
	CHECK_EQ(next_of(&o, pid).kind, GPUSEG_OBSERVER_ALLOC);
	CHECK_EQ(next_of(&o, pid).kind, GPUSEG_OBSERVER_EXIT);
	reap(pid);
}

static int by_size(const void *a, const void *b)
{
	const uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;

	return left < right ? -1 : left > right;
}

TEST(should_miss_none_of_a_thousand_processes)
{
	enum { MINE = 1, OPENED, ALLOCATED, ENDED };
	enum { PROCESSES = 1000, AT_ONCE = 20, DELAYS = 20 * PROCESSES };
	static uint32_t delays_ns[DELAYS];
	const struct observer o = start_observer("nvidia:1:7:any");
	pid_t pids[PROCESSES];
	size_t delays = 0;
	int ended = 0;

	for (int i = 0; i < PROCESSES; i++) {
		if (i >= AT_ONCE)
			reap(pids[i - AT_ONCE]);
		pids[i] = in_child(live_a_whole_life);
		CHECK(pids[i] < (pid_t)sizeof(stages), "pid %d", (int)pids[i]);
	}
	for (int i = PROCESSES - AT_ONCE; i < PROCESSES; i++)
		reap(pids[i]);
	for (int i = 0; i < PROCESSES; i++)
		stages[pids[i]] = MINE; /* other programs may open the device, too */
	while (ended < PROCESSES) {
		const struct gpuseg_observer_record r = next(&o);

		CHECK(r.kind != GPUSEG_OBSERVER_LOST, "%u records were lost", r.handle);
		CHECK(r.pid < sizeof(stages), "pid %u", r.pid);
		if (delays < DELAYS)
			delays_ns[delays++] = r.passed_ns;
		if (r.kind == GPUSEG_OBSERVER_OPEN && stages[r.pid] == MINE)
			stages[r.pid] = OPENED;
		else if (r.kind == GPUSEG_OBSERVER_ALLOC && r.handle == CHANNEL && stages[r.pid] == OPENED)
			stages[r.pid] = ALLOCATED;
		else if (r.kind == GPUSEG_OBSERVER_EXIT && stages[r.pid] == ALLOCATED && ++ended)
			stages[r.pid] = ENDED;
	}
	for (int i = 0; i < PROCESSES; i++)
		CHECK(stages[pids[i]] == ENDED, "pid %d was missed", (int)pids[i]);
	qsort(delays_ns, delays, sizeof(delays_ns[0]), by_size);
	printf("  from event to helper, %zu records of %d processes: p50 %.3f ms, p99 %.3f ms, longest %.3f ms\n",
	       delays, PROCESSES, delays_ns[delays / 2] / 1e6, delays_ns[delays * 99 / 100] / 1e6,
	       delays_ns[delays - 1] / 1e6);
}

static void make_more_than_fits(void)
{
	const int fd = open_device(DEVICE);

	for (uint32_t i = 0; i < 100000; i++)
		allocate(fd, TSG, 0x5c001000 + i, 0xc86f);
}

TEST(should_count_what_is_lost_and_go_on)
{
	const struct observer o = start_observer("nvidia:1:7:any");
	struct gpuseg_observer_record r;
	uint32_t arrived = 0, lost = 0;
	pid_t pid;

	CHECK(kill(o.pid, SIGSTOP) == 0, "kill: %s", strerror(errno));
	pid = in_child(make_more_than_fits);
	reap(pid);
	CHECK(kill(o.pid, SIGCONT) == 0, "kill: %s", strerror(errno));
	do {
		r = next(&o);
		arrived += r.kind == GPUSEG_OBSERVER_ALLOC && r.pid == (uint32_t)pid;
		lost += r.kind == GPUSEG_OBSERVER_LOST ? r.handle : 0;
	} while (lost + arrived < 100000);
	CHECK(lost > 0, "100000 records fit into the ring buffer: the test shows nothing");
	pid = in_child(live_a_whole_life); /* later ones arrive whole */
	while ((r = next(&o)).pid != (uint32_t)pid || r.kind != GPUSEG_OBSERVER_OPEN)
		;
	CHECK_EQ(next_of(&o, pid).handle, CLIENT);
	reap(pid);
}

static struct gpuseg_observer_group_record next_account(const struct observer *o)
{
	struct gpuseg_observer_group_record g;

	do {
		for (size_t have = 0; have < sizeof(g);) {
			const ssize_t n = read(o->records, (char *)&g + have, sizeof(g) - have);

			CHECK(n > 0, "the observer has ended");
			have += (size_t)n;
		}
	} while (g.kind != GPUSEG_OBSERVER_GROUP && g.kind != GPUSEG_OBSERVER_GROUP_GONE);
	return g;
}

TEST(should_account_for_control_groups)
{
	const struct observer o = start_observer("nvidia:1:7:any");
	const pid_t pid = in_child(live_a_whole_life);
	struct gpuseg_observer_group_record g;

	reap(pid);
	do
		g = next_account(&o);
	while (g.contexts == 0);
	CHECK(g.ioctls >= IOCTLS_OF_A_LIFE && g.ioctl_ns > 0, "%" PRIu64 " ioctls", (uint64_t)g.ioctls);
	CHECK(g.opens >= 1 && g.lifetime_ns > 0, "%" PRIu64 " opens", (uint64_t)g.opens);
}

/* A control group below the caller's, in the unified hierarchy. */
static const char *make_group(const char *name)
{
	static char paths[4][4096];
	static unsigned made;
	char *path = paths[made++ % ARRAY_LENGTH(paths)];
	struct mntent *entry;
	FILE *mounts = setmntent("/proc/self/mounts", "re");

	CHECK(mounts != NULL, "/proc/self/mounts: %s", strerror(errno));
	while ((entry = getmntent(mounts)) != NULL && strcmp(entry->mnt_type, "cgroup2") != 0)
		;
	if (!entry)
		SKIP("no unified hierarchy of control groups is mounted");
	snprintf(path, sizeof(paths[0]), "%s/gpuseg-test-%d-%s", entry->mnt_dir, (int)getpid(), name);
	endmntent(mounts);
	if (mkdir(path, 0755) != 0)
		SKIP("%s: %s", path, strerror(errno));
	return path;
}

static uint64_t inode_of(const char *path)
{
	struct stat status;

	CHECK(stat(path, &status) == 0, "%s: %s", path, strerror(errno));
	return status.st_ino;
}

/* Removes a group; what was counted of it, complete, since all its processes have ended. */
static struct gpuseg_observer_group_record last_account(const struct observer *o, const char *group)
{
	const uint64_t id = inode_of(group);
	struct gpuseg_observer_group_record g;

	CHECK(rmdir(group) == 0, "%s: %s", group, strerror(errno));
	do
		g = next_account(o);
	while (g.kind != GPUSEG_OBSERVER_GROUP_GONE || g.cgroup != id);
	CHECK_EQ(g.processes, 0);
	return g;
}

static const char *joined;

static void join(void)
{
	char procs[4200];
	int fd;

	snprintf(procs, sizeof(procs), "%s/cgroup.procs", joined);
	fd = open(procs, O_WRONLY | O_CLOEXEC);
	if (fd < 0 || write(fd, "0", 1) != 1)
		_exit(97);
	close(fd);
}

static void live_in_a_group(void)
{
	join();
	live_a_whole_life();
}

TEST(should_keep_the_accounts_of_control_groups_apart)
{
	enum { GROUPS = 2 };
	const char *groups[GROUPS] = {make_group("once"), make_group("twice")};
	const struct observer o = start_observer("nvidia:1:7:any");

	for (uint64_t i = 0; i < GROUPS; i++) {
		joined = groups[i];
		for (uint64_t life = 0; life <= i; life++)
			reap(in_child(live_in_a_group));
	}
	for (uint64_t i = 0; i < GROUPS; i++) {
		const struct gpuseg_observer_group_record g = last_account(&o, groups[i]);

		CHECK_EQ(g.opens, i + 1);
		CHECK_EQ(g.ioctls, IOCTLS_OF_A_LIFE * (i + 1));
		CHECK_EQ(g.contexts, i + 1);
		CHECK(g.context_ns > 0 && g.context_ns < g.lifetime_ns, "%" PRIu64 " ns", (uint64_t)g.context_ns);
		CHECK(g.ioctl_ns > 0 && g.lifetime_ns > g.ioctl_ns, "%" PRIu64 " ns", (uint64_t)g.lifetime_ns);
	}
}

#define NAP_NS (30 * NS_PER_MS)

static void nap(void)
{
	sleep_until(now_ns() + NAP_NS, NULL);
}

/* In the group of this process's turn, with a client of RM; returns the device's descriptor. */
static int join_as_client(void)
{
	int fd;

	join();
	fd = open_device(DEVICE);
	allocate(fd, 0, CLIENT, 0x41);
	return fd;
}

/* One context, freed by its handle; the process goes on. */
static void free_a_context(void)
{
	const int fd = join_as_client();

	allocate(fd, RM_DEVICE, TSG, 0xa06c);
	nap();
	free_object(fd, TSG);
	nap();
	nap();
}

/* Two, freed with their client; and one more, of another device, that is freed with it. */
static void free_what_contains_contexts(void)
{
	const int fd = join_as_client();

	allocate(fd, CLIENT, RM_DEVICE, 0x80);
	allocate(fd, CLIENT, RM_DEVICE + 0x100, 0x80);
	allocate(fd, RM_DEVICE, TSG, 0xa06c);
	allocate(fd, RM_DEVICE, TSG + 1, 0xa06c);
	allocate(fd, RM_DEVICE + 0x100, TSG + 2, 0xa06c);
	nap();
	free_object(fd, RM_DEVICE + 0x100);
	nap();
	free_object(fd, CLIENT);
	nap();
	nap();
}

/* One that nobody frees. */
static void end_with_a_context(void)
{
	const int fd = join_as_client();

	allocate(fd, RM_DEVICE, TSG, 0xa06c);
	nap();
}

/* A nap may last longer than asked for, so only lower limits are known of what is measured and of what is not. */
TEST(should_measure_how_long_contexts_live_for_each_control_group)
{
	static const struct {
		const char *group;
		void (*live)(void);
		uint64_t contexts, naps_alive, naps_after; /* sums over the contexts */
	} lives[] = {
		{"freed", free_a_context, 1, 1, 2},
		{"contained", free_what_contains_contexts, 3, 2 + 2 + 1, 2 + 2 + 3},
		{"kept", end_with_a_context, 1, 1, 0},
	};
	const char *groups[ARRAY_LENGTH(lives)];
	struct observer o;

	for (size_t i = 0; i < ARRAY_LENGTH(lives); i++)
		groups[i] = make_group(lives[i].group);
	o = start_observer("nvidia:1:7:any");
	for (size_t i = 0; i < ARRAY_LENGTH(lives); i++) {
		struct gpuseg_observer_group_record g;

		joined = groups[i];
		reap(in_child(lives[i].live));
		g = last_account(&o, groups[i]);
		CHECK_EQ(g.contexts, lives[i].contexts);
		CHECK(g.context_ns >= lives[i].naps_alive * NAP_NS, "%s: %" PRIu64 " ns", lives[i].group,
		      (uint64_t)g.context_ns);
		CHECK(g.contexts * g.lifetime_ns >= g.context_ns + lives[i].naps_after * NAP_NS,
		      "%s: %" PRIu64 " ns of %" PRIu64, lives[i].group, (uint64_t)g.context_ns,
		      (uint64_t)g.lifetime_ns);
	}
}

static void use_other_drivers(void)
{
	const int fd = open_device(DEVICE);

	ioctl(fd, _IOC(_IOC_READ | _IOC_WRITE, 'K', 2, 88), NULL);   /* kfd: makes a queue */
	ioctl(fd, _IOC(_IOC_READ | _IOC_WRITE, 'K', 7, 24), NULL);   /* changes one */
	ioctl(fd, _IOC(_IOC_READ | _IOC_WRITE, 'G', 9, 16), NULL);   /* nvgpu: makes a TSG */
	ioctl(fd, _IOC(_IOC_READ | _IOC_WRITE, 'H', 107, 16), NULL); /* submits */
}

TEST(should_report_work_that_is_made_and_not_its_submission)
{
	static const char *const devices[] = {"kfd:1:7:any", "nvgpu:1:7:any"};

	for (size_t i = 0; i < ARRAY_LENGTH(devices); i++) {
		const struct observer o = start_observer(devices[i]);
		const pid_t pid = in_child(use_other_drivers);
		struct gpuseg_observer_record r = next_of(&o, pid);

		CHECK_EQ(r.kind, GPUSEG_OBSERVER_OPEN);
		CHECK_EQ(r.engine, GPUSEG_OBSERVER_KFD + i);
		r = next_of(&o, pid);
		CHECK_EQ(r.kind, GPUSEG_OBSERVER_WORK);
		CHECK_EQ(r.engine, GPUSEG_OBSERVER_KFD + i);
		CHECK_EQ(next_of(&o, pid).kind, GPUSEG_OBSERVER_EXIT);
		reap(pid);
		close(o.records);
		CHECK_EQ(rig_wait(o.pid), 0);
	}
}

/* A program that makes a context as CUDA's library does, on the stand-in of RM. */
static pid_t start_program(const char *socket, const char *page)
{
	const char *const arguments[] = {page, "1", NULL};
	const char *build = getenv("GPUSEG_TEST_BUILD");
	char fake[4096];
	pid_t pid;

	snprintf(fake, sizeof(fake), "%s/libgpuseg-rm-fake.so", build ? build : "build");
	setenv("GPUSEG_RM_STANDIN", socket, 1);
	setenv("GPUSEG_RM_SHADOW", DEVICE, 1);
	setenv("LD_PRELOAD", fake, 1);
	pid = rig_start("gpuseg-rm-app", arguments, NULL);
	unsetenv("LD_PRELOAD");
	return pid;
}

TEST(should_report_the_context_of_a_program_on_the_standin)
{
	enum { COMPUTE = 8, ALL = 20 };
	const char *socket = rig_path("rm.sock");
	const char *const arguments[] = {socket, NULL};
	const struct observer o = start_observer("nvidia:1:7:any");
	struct gpuseg_observer_record r;
	int channels = 0, compute = 0, status;
	uint32_t client = 0;
	char ready[8];
	int output;
	pid_t standin, pid;

	standin = rig_start("gpuseg-rm-standin", arguments, &output);
	CHECK(read(output, ready, sizeof(ready)) > 0, "the stand-in does not start");
	pid = start_program(socket, rig_path("page"));
	r = next_of(&o, pid);
	CHECK_EQ(r.kind, GPUSEG_OBSERVER_OPEN);
	while (channels < ALL) {
		r = next_of(&o, pid);
		CHECK(r.kind != GPUSEG_OBSERVER_UNSEEN, "its descriptor was not seen opened");
		if (r.kind != GPUSEG_OBSERVER_ALLOC)
			continue;
		CHECK_EQ(r.owner, pid);
		if (r.class_id == 0x41)
			client = r.handle; /* the last one; the first is freed at once */
		CHECK_EQ(r.client, client);
		channels += (r.class_id & 0xff) == 0x6f;
		compute += (r.class_id & 0xff) == 0x6f && r.parent == TSG;
	}
	CHECK_EQ(compute, COMPUTE);
	CHECK(kill(pid, SIGKILL) == 0 && waitpid(pid, &status, 0) == pid, "%s", strerror(errno));
	do
		r = next_of(&o, pid);
	while (r.kind != GPUSEG_OBSERVER_EXIT);
	CHECK(kill(standin, SIGTERM) == 0, "%s", strerror(errno));
	CHECK_EQ(rig_wait(standin), 0);
}

TEST(should_end_when_the_daemon_is_gone)
{
	const struct observer o = start_observer("nvidia:1:7:any");

	close(o.records);
	CHECK_EQ(rig_wait(o.pid), 0);
}

static int call_observer(const char *path)
{
	struct sockaddr_un address;
	const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	CHECK(fd >= 0 && unix_address(&address, path, NULL) == 0, "%s", path);
	for (const int64_t limit_ns = now_ns() + LIMIT_MS * NS_PER_MS;
	     connect(fd, (struct sockaddr *)&address, sizeof(address)) != 0; sleep_until(now_ns() + NS_PER_MS, NULL))
		CHECK(now_ns() < limit_ns, "%s: %s", path, strerror(errno));
	return fd;
}

static int call_as_daemon(const char *path)
{
	const int fd = call_observer(path);

	CHECK(write(fd, "d", 1) == 1, "%s: %s", path, strerror(errno));
	return fd;
}

TEST(should_serve_the_last_daemon_and_not_mind_who_only_looks)
{
	const char *path = rig_path("observer.sock");
	const char *const arguments[] = {"--socket", path, "--device", "nvidia:1:7:any", NULL};
	struct observer o;
	struct pollfd end = {.events = POLLIN};
	char rest[4096];
	pid_t pid;
	int later;

	require_bpf();
	o.pid = rig_start("gpuseg-observer", arguments, NULL);
	o.records = call_as_daemon(path);
	CHECK_EQ(next(&o).kind, GPUSEG_OBSERVER_HELLO);
	for (int i = 0; i < 5; i++)
		close(call_observer(path));
	pid = in_child(live_a_whole_life);
	CHECK_EQ(next_of(&o, pid).kind, GPUSEG_OBSERVER_OPEN);
	reap(pid);
	later = call_as_daemon(path);
	end.fd = o.records;
	do /* until its end */
		CHECK(poll(&end, 1, LIMIT_MS) == 1, "the first daemon is still served");
	while (read(o.records, rest, sizeof(rest)) > 0);
	o.records = later;
	CHECK_EQ(next(&o).kind, GPUSEG_OBSERVER_HELLO);
	CHECK(kill(o.pid, SIGTERM) == 0, "kill: %s", strerror(errno));
	CHECK_EQ(rig_wait(o.pid), 0);
	CHECK(access(path, F_OK) != 0, "the socket is left behind");
}

static void check_without_capabilities(void)
{
	static const char *const check[] = {"--check", NULL};
	char said[1024];

	for (int c = 0; prctl(PR_CAPBSET_DROP, c, 0, 0, 0) == 0; c++)
		; /* a program that root executes gets what is left: nothing */
	CHECK_EQ(rig_run("gpuseg-observer", check, said, sizeof(said)), EXIT_FAILURE);
	CHECK_CONTAINS(said, "it needs CAP_BPF and CAP_PERFMON");
}

TEST(should_say_that_it_lacks_the_right)
{
	require_bpf();
	if (geteuid() != 0)
		SKIP("only root can give up capabilities of a program to be started");
	reap(in_child(check_without_capabilities));
}

static void check_without_btf(void)
{
	static const char *const check[] = {"--check", NULL};
	char said[1024];

	if (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
	    mount("none", "/sys/kernel/btf", "tmpfs", 0, NULL) != 0)
		_exit(CHECK_SKIPPED);
	CHECK_EQ(rig_run("gpuseg-observer", check, said, sizeof(said)), EXIT_FAILURE);
	CHECK_CONTAINS(said, "this kernel has no BTF");
}

TEST(should_say_that_the_kernel_has_no_btf)
{
	pid_t pid;
	int status;

	require_bpf();
	pid = in_child(check_without_btf);
	CHECK(waitpid(pid, &status, 0) == pid, "waitpid: %s", strerror(errno));
	if (WIFEXITED(status) && WEXITSTATUS(status) == CHECK_SKIPPED)
		SKIP("nothing can be mounted on /sys/kernel/btf here");
	CHECK_EQ(status, 0);
}

TEST(should_refuse_what_is_no_device)
{
	static const char *const arguments[] = {"--device", "nvidia:195", NULL};
	char said[1024];

	require_bpf();
	CHECK_EQ(rig_run("gpuseg-observer", arguments, said, sizeof(said)), EXIT_USAGE);
	CHECK_CONTAINS(said, "nvidia:195");
}

static const struct check_case cases[] = {
	CASE(should_report_a_whole_life_in_order),
	CASE(should_not_report_refusals_and_other_objects),
	CASE(should_not_report_failed_ioctls_of_a_real_driver),
	CASE(should_say_once_that_a_process_uses_what_it_did_not_open),
#ifdef __x86_64__
	CASE(should_say_once_that_a_process_uses_calls_of_32_bit_programs),
#endif
	CASE(should_recognize_a_device_by_its_number_and_not_by_its_name),
	CASE(should_report_the_end_of_a_process_and_not_of_its_threads),
	CASE(should_miss_none_of_a_thousand_processes),
	CASE(should_count_what_is_lost_and_go_on),
	CASE(should_account_for_control_groups),
	CASE(should_keep_the_accounts_of_control_groups_apart),
	CASE(should_measure_how_long_contexts_live_for_each_control_group),
	CASE(should_report_work_that_is_made_and_not_its_submission),
	CASE(should_report_the_context_of_a_program_on_the_standin),
	CASE(should_end_when_the_daemon_is_gone),
	CASE(should_serve_the_last_daemon_and_not_mind_who_only_looks),
	CASE(should_say_that_it_lacks_the_right),
	CASE(should_say_that_the_kernel_has_no_btf),
	CASE(should_refuse_what_is_no_device),
};
CHECK_MAIN_APART(cases)
