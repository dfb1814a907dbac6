/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The KFD side of libgpuseg-preload.so over the stand-in of KFD. This process is the application, and the same thread,
 * or a child, is the daemon. No AMD hardware.
 */
#define _GNU_SOURCE

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "amd/agent_page.h"
#include "amd/amd_state.h"
#include "amd/gpuseg_amd.h"
#include "common/base.h"
#include "tests/check.h"

#define GPU 4711u
#define OTHER_GPU 815u
#define SLOT 3u
#define PATIENT_MS 60000u
#define WAIT_NS (20 * NS_PER_S)
#define RING 0x7f1200000000u
#define NEW_SIZE 96
#define OLD_SIZE 88
#define TABLE_BYTES (1 << 16)

enum { PM4 = 0, SDMA = 1, AQL = 2, SDMA_XGMI = 3 };

struct create {
	uint64_t ring, wptr, rptr, doorbell;
	uint32_t size, gpu_id, type, percentage, priority, id;
	uint8_t rest[NEW_SIZE - 56];
};

struct update {
	uint64_t ring;
	uint32_t id, size, percentage, priority;
};

static char directory[64];
static struct amd_table *table;
static struct gpuseg_kfd_agent *page;
static int kfd = -1;

static void set_up(void)
{
	char path[96];
	int fd;

	strcpy(directory, "/tmp/gpuseg-agent-XXXXXX");
	CHECK(mkdtemp(directory), "mkdtemp: %s", strerror(errno));
	snprintf(path, sizeof(path), "%s/table", directory);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	CHECK(fd >= 0 && ftruncate(fd, TABLE_BYTES) == 0, "%s: %s", path, strerror(errno));
	table = mmap(NULL, sizeof(*table), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	CHECK(table != MAP_FAILED, "mmap: %s", strerror(errno));
	close(fd);
	table->minor = 17;
	table->n_gpus = 2;
	table->gpu_ids[0] = GPU;
	table->gpu_ids[1] = OTHER_GPU;
	setenv(AMD_STATE_ENV, directory, 1);
	kfd = open(GPUSEG_AMD_KFD_DEVICE, O_RDWR | O_CLOEXEC);
	CHECK(kfd >= 0, "open: %s", strerror(errno));
}

static void finish(void)
{
	char command[96];

	snprintf(command, sizeof(command), "rm -rf %s", directory);
	CHECK_EQ(table->foreign, 0);
	CHECK(system(command) == 0, "%s", command);
}

static unsigned long request(unsigned number, size_t size)
{
	return _IOC(_IOC_READ | _IOC_WRITE, 'K', number, size);
}

/* Queue id or -errno. */
static int make(int fd, uint32_t gpu_id, uint32_t type, uint32_t percentage)
{
	struct create c = {
		.ring = RING, .size = 4096, .gpu_id = gpu_id, .type = type, .percentage = percentage, .priority = 7};
	const uint32_t before = percentage;

	if (ioctl(fd, request(2, OLD_SIZE), &c) != 0)
		return -errno;
	return c.percentage == before ? (int)c.id : -EPROTO; /* the application must not see what was sent */
}

static int destroy(int fd, uint32_t id)
{
	uint32_t argument[2] = {id, 0};

	return ioctl(fd, request(3, sizeof(argument)), argument) != 0 ? -errno : 0;
}

static int update(int fd, struct update u)
{
	return ioctl(fd, _IOC(_IOC_WRITE, 'K', 7, sizeof(u)), &u) != 0 ? -errno : 0;
}

static const struct amd_process *me(void)
{
	for (unsigned i = 0; i < AMD_PROCESSES; i++)
		if (table->processes[i].pid == getpid())
			return &table->processes[i];
	return NULL;
}

static const struct amd_queue *queue(int id)
{
	return &me()->queues[id];
}

static int find_page(void)
{
	const int pidfd = pidfd_of(getpid());
	const int result = agent_page_open(getpid(), pidfd, &page);

	close(pidfd);
	if (result == 0) {
		page->slots[SLOT].gpu_id = GPU;
		page->slots[SLOT].period_ms = PATIENT_MS;
	}
	return result;
}

/* 0, or the agent's answer. */
static int order(bool hold)
{
	return agent_page_wait(page, SLOT, agent_page_order(page, SLOT, hold), now_ns() + WAIT_NS);
}

/* Waits, with a limit, for another thread. */
#define EVENTUALLY(condition)                                                                                          \
	do {                                                                                                           \
		const int64_t limit_ns = now_ns() + WAIT_NS;                                                           \
		while (!(condition) && now_ns() < limit_ns)                                                            \
			usleep(1000);                                                                                  \
		CHECK(condition, "not within 20 s");                                                                   \
	} while (0)

/* ---- holding ---- */

TEST(should_disable_compute_queues_and_restore_them_as_they_were)
{
	set_up();
	const int aql = make(kfd, GPU, AQL, 100), pm4 = make(kfd, GPU, PM4, 60);
	const int copies = make(kfd, GPU, SDMA, 100), elsewhere = make(kfd, OTHER_GPU, AQL, 100);

	CHECK(aql >= 0 && pm4 >= 0 && copies >= 0 && elsewhere >= 0, "create");
	CHECK_EQ(find_page(), 0);
	CHECK_EQ(page->known, 4);
	for (int i = 0; i < 2; i++) { /* a second order changes nothing */
		CHECK_EQ(order(true), 0);
		CHECK_EQ(page->slots[SLOT].held, 2);
		CHECK_EQ(queue(aql)->percentage, 0);
		CHECK_EQ(queue(pm4)->percentage, 0);
		CHECK_EQ(queue(copies)->percentage, 100);
		CHECK_EQ(queue(elsewhere)->percentage, 100);
		/* all other values are passed on unchanged */
		CHECK_EQ(queue(aql)->address, RING);
		CHECK_EQ(queue(aql)->size, 4096);
		CHECK_EQ(queue(aql)->priority, 7);
	}
	CHECK_EQ(table->deactivated, 2);
	for (int i = 0; i < 2; i++) {
		CHECK_EQ(order(false), 0);
		CHECK_EQ(page->slots[SLOT].held, 0);
		CHECK_EQ(queue(aql)->percentage, 100);
		CHECK_EQ(queue(pm4)->percentage, 60);
	}
	page->slots[SLOT].flags = GPUSEG_KFD_AGENT_ALL_QUEUES;
	CHECK_EQ(order(true), 0);
	CHECK_EQ(page->slots[SLOT].held, 3);
	CHECK_EQ(queue(copies)->percentage, 0);
	CHECK_EQ(queue(elsewhere)->percentage, 100);
	finish();
}

TEST(should_make_queues_inactive_while_their_gpu_is_held)
{
	set_up();
	make(kfd, GPU, AQL, 100);
	CHECK_EQ(find_page(), 0);
	CHECK_EQ(order(true), 0);

	const uint32_t before = table->deactivated;
	const int id = make(kfd, GPU, AQL, 80), copies = make(kfd, GPU, SDMA_XGMI, 100), idle = make(kfd, GPU, PM4, 0);

	CHECK(id >= 0 && copies >= 0 && idle >= 0, "create: %d %d %d", id, copies, idle);
	CHECK_EQ(queue(id)->percentage, 0);
	CHECK_EQ(table->deactivated, before); /* it never was active */
	CHECK_EQ(queue(copies)->percentage, 100);
	CHECK_EQ(order(false), 0);
	CHECK_EQ(queue(id)->percentage, 80);
	CHECK_EQ(queue(idle)->percentage, 0); /* as the application made it */
	finish();
}

TEST(should_not_let_the_applications_own_updates_end_a_hold)
{
	set_up();
	const int id = make(kfd, GPU, AQL, 100);
	const struct update suspend = {RING, (uint32_t)id, 4096, 0, 7}, resume = {RING, (uint32_t)id, 4096, 100, 7};

	CHECK_EQ(find_page(), 0);
	CHECK_EQ(order(true), 0);
	CHECK_EQ(update(kfd, suspend), 0);
	CHECK_EQ(update(kfd, resume), 0);
	CHECK_EQ(queue(id)->percentage, 0);
	/* changes of other values are passed on */
	CHECK_EQ(update(kfd, (struct update){RING + 4096, (uint32_t)id, 8192, 50, 15}), 0);
	CHECK_EQ(queue(id)->percentage, 0);
	CHECK_EQ(queue(id)->address, RING + 4096);
	CHECK_EQ(queue(id)->priority, 15);
	CHECK_EQ(order(false), 0);
	CHECK_EQ(queue(id)->percentage, 50);
	CHECK_EQ(queue(id)->size, 8192);
	CHECK_EQ(queue(id)->address, RING + 4096);
	CHECK_EQ(queue(id)->priority, 15);
	CHECK_EQ(order(true), 0);
	CHECK_EQ(update(kfd, suspend), 0);
	CHECK_EQ(order(false), 0);
	CHECK_EQ(queue(id)->percentage, 0); /* as the application asked */
	CHECK_EQ(update(kfd, resume), 0);
	CHECK_EQ(queue(id)->percentage, 100);
	finish();
}

TEST(should_refuse_what_the_kernel_refuses_held_or_not)
{
	set_up();
	const int id = make(kfd, GPU, AQL, 100);

	CHECK_EQ(find_page(), 0);
	for (int held = 0; held < 2; held++) {
		CHECK_EQ(order(held), 0);
		CHECK_EQ(update(kfd, (struct update){RING, (uint32_t)id, 4096, 101, 7}), -EINVAL);
		CHECK_EQ(update(kfd, (struct update){RING, (uint32_t)id, 4096, 100, 16}), -EINVAL);
		CHECK_EQ(update(kfd, (struct update){RING, 77, 4096, 100, 7}), -EFAULT);
		CHECK_EQ(update(kfd, (struct update){RING, 1u << 20, 4096, 100, 7}), -EFAULT);
		CHECK_EQ(make(kfd, GPU, AQL, 101), -EINVAL);
		CHECK_EQ(make(kfd, 12345, AQL, 100), -EINVAL);
		CHECK_EQ(destroy(kfd, 77), -EINVAL);
		CHECK_EQ(destroy(kfd, 1u << 20), -EINVAL);
	}
	CHECK_EQ(page->known, 1);
	CHECK_EQ(order(false), 0);
	CHECK_EQ(queue(id)->percentage, 100);
	CHECK_EQ(queue(id)->priority, 7);
	finish();
}

/* The kernel looks at the number only; fields beyond the caller's size are zero. */
TEST(should_respect_the_callers_size_of_an_argument)
{
	set_up();
	struct create c = {.ring = RING, .size = 4096, .gpu_id = GPU, .type = AQL, .percentage = 100};
	struct {
		struct update u;
		uint8_t more[400];
	} longer = {.u = {.ring = RING, .size = 4096, .percentage = 0x0264, .priority = 3}};

	memset(c.rest, 0xa5, sizeof(c.rest));
	CHECK_EQ(ioctl(kfd, request(2, NEW_SIZE), &c), 0);
	for (unsigned i = 0; i < sizeof(c.rest); i++)
		CHECK_EQ(c.rest[i], 0xa5);
	CHECK_EQ(find_page(), 0);
	CHECK_EQ(order(true), 0);
	CHECK_EQ(c.percentage, 100);
	longer.u.id = c.id;
	CHECK_EQ(ioctl(kfd, _IOC(_IOC_WRITE, 'K', 7, sizeof(longer)), &longer), 0);
	CHECK_EQ(longer.u.percentage, 0x0264);		/* the argument is unchanged */
	CHECK_EQ(queue((int)c.id)->percentage, 0x0200); /* which XCC stays */
	CHECK_EQ(order(false), 0);
	CHECK_EQ(queue((int)c.id)->percentage, 0x0264);
	CHECK_EQ(ioctl(kfd, _IOC(_IOC_WRITE, 'K', 7, 16), &longer), 0);
	CHECK_EQ(queue((int)c.id)->percentage, 0);
	CHECK_EQ(queue((int)c.id)->size, 4096);
	finish();
}

TEST(should_forget_a_queue_that_is_destroyed_while_held)
{
	set_up();
	const int first = make(kfd, GPU, AQL, 100), second = make(kfd, GPU, AQL, 100);

	CHECK_EQ(find_page(), 0);
	CHECK_EQ(order(true), 0);
	CHECK_EQ(destroy(kfd, (uint32_t)first), 0);
	CHECK_EQ(page->known, 1);
	CHECK_EQ(order(true), 0);
	CHECK_EQ(page->slots[SLOT].held, 1);
	CHECK_EQ(order(false), 0);
	CHECK_EQ(make(kfd, GPU, SDMA, 100), first); /* its number, for another kind */
	CHECK_EQ(order(true), 0);
	CHECK_EQ(queue(first)->percentage, 100);
	CHECK_EQ(queue(second)->percentage, 0);
	finish();
}

TEST(should_report_the_kernels_error_and_retry_releases)
{
	set_up();
	const int first = make(kfd, GPU, AQL, 100), second = make(kfd, GPU, AQL, 100);

	CHECK_EQ(find_page(), 0);
	table->fail = 1;
	CHECK_EQ(order(true), -EIO);
	CHECK_EQ(page->slots[SLOT].queue, first);
	CHECK_EQ(page->slots[SLOT].held, 1);
	CHECK_EQ(queue(first)->percentage, 100);
	CHECK_EQ(queue(second)->percentage, 0);
	CHECK_EQ(order(true), 0);
	CHECK_EQ(queue(first)->percentage, 0);
	table->fail = 3;
	CHECK_EQ(order(false), -EIO);
	EVENTUALLY(queue(first)->percentage == 100 && queue(second)->percentage == 100); /* without another order */
	CHECK_EQ(table->fail, 0);
	finish();
}

/* ---- descriptors and processes ---- */

TEST(should_hold_through_its_own_descriptor_when_the_application_closed_its)
{
	set_up();
	const int twin = dup(kfd);
	const int id = make(twin, GPU, AQL, 100);

	CHECK(id >= 0, "create: %d", id);
	CHECK_EQ(find_page(), 0);
	close(twin);
	CHECK_EQ(open("/dev/null", O_RDONLY), twin); /* another file has the number now */
	CHECK_EQ(order(true), 0);
	CHECK_EQ(queue(id)->percentage, 0);
	close(kfd);
	CHECK_EQ(order(false), 0);
	CHECK_EQ(queue(id)->percentage, 100);
	CHECK_EQ(order(true), 0);
	CHECK_EQ(queue(id)->percentage, 0);
	finish();
}

/* The number of a descriptor of the device that is not `mine`; -1: there is none. */
static int others_descriptor(int mine)
{
	char link[40], target[128];

	for (int fd = 3; fd < 256; fd++) {
		ssize_t n;

		snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
		n = readlink(link, target, sizeof(target) - 1);
		target[n > 0 ? n : 0] = 0;
		if (fd != mine && strstr(target, GPUSEG_AMD_KFD_DEVICE))
			return fd;
	}
	return -1;
}

/* A file of the application's, /dev/null or the device opened once more, has the number of the agent's descriptor. */
static void covers_the_agents(const char *path)
{
	struct stat before, after;

	set_up();
	const int id = make(kfd, GPU, AQL, 100);

	CHECK(id >= 0, "create: %d", id);
	CHECK_EQ(find_page(), 0);
	CHECK_EQ(order(true), 0);
	const int agents = others_descriptor(kfd), fresh = open(path, O_RDWR | O_CLOEXEC);

	CHECK(agents >= 0 && fresh >= 0, "agent's %d, of %s %d", agents, path, fresh);
	CHECK_EQ(dup2(fresh, agents), agents);
	CHECK_EQ(fstat(agents, &before), 0);
	close(fresh);
	CHECK_EQ(order(false), 0);
	CHECK_EQ(queue(id)->percentage, 100);
	EVENTUALLY(others_descriptor(agents) == kfd); /* it has closed the one that it got instead */
	CHECK_EQ(fstat(agents, &after), 0);
	CHECK(after.st_ino == before.st_ino && after.st_dev == before.st_dev, "%s was replaced", path);
	close(agents);
	close(kfd);
	finish();
}

TEST(should_leave_files_alone_that_have_the_number_of_its_descriptor)
{
#ifdef __SANITIZE_THREAD__
	SKIP("to close what another thread uses is what ThreadSanitizer reports");
#endif
	covers_the_agents("/dev/null");
	covers_the_agents(GPUSEG_AMD_KFD_DEVICE);
}

static int count_descriptors(const char *name)
{
	char link[300], target[128];
	const struct dirent *entry;
	DIR *list = opendir("/proc/self/fd");
	int count = 0;

	while ((entry = readdir(list))) {
		ssize_t n;

		snprintf(link, sizeof(link), "/proc/self/fd/%s", entry->d_name);
		n = readlink(link, target, sizeof(target) - 1);
		target[n > 0 ? n : 0] = 0;
		count += strstr(target, name) != NULL;
	}
	closedir(list);
	return count;
}

static int threads(void)
{
	const struct dirent *entry;
	DIR *list = opendir("/proc/self/task");
	int count = 0;

	while ((entry = readdir(list)))
		count += entry->d_name[0] != '.';
	closedir(list);
	return count;
}

TEST(should_start_nothing_without_a_queue_or_when_disabled)
{
	int pipes[2];

	set_up();
	const int before = threads();

	CHECK(pipe(pipes) == 0, "pipe");
	/* the same numbers, but not to KFD */
	CHECK_EQ(make(pipes[0], GPU, AQL, 100), -ENOTTY);
	CHECK_EQ(destroy(pipes[0], 0), -ENOTTY);
	CHECK_EQ(make(-1, GPU, AQL, 100), -EBADF);
	CHECK_EQ(destroy(kfd, 5), -EINVAL);
	CHECK_EQ(find_page(), -ENOENT);
	CHECK_EQ(threads(), before);
	setenv("GPUSEG_KFD_AGENT", "0", 1);
	CHECK(make(kfd, GPU, AQL, 100) >= 0, "create");
	CHECK_EQ(find_page(), -ENOENT);
	CHECK_EQ(threads(), before);
	finish();
}

/* The device number of KFD on a machine that has KFD. Here a file of the test provides it. */
static const char *numbers;

int open(const char *path, int flags, ...)
{
	int (*next)(const char *, int, ...) = (int (*)(const char *, int, ...))dlsym(RTLD_NEXT, "open");
	va_list list;
	mode_t mode = 0;

	va_start(list, flags);
	if (flags & (O_CREAT | O_TMPFILE))
		mode = va_arg(list, mode_t);
	va_end(list);
	if (numbers && strcmp(path, "/sys/class/kfd/kfd/dev") == 0) {
		const int fd = memfd_create("numbers", MFD_CLOEXEC);

		if (write(fd, numbers, strlen(numbers)) < 0)
			abort();
		lseek(fd, 0, SEEK_SET);
		return fd;
	}
	return next(path, flags, mode);
}

TEST(should_know_the_device_by_its_number_where_it_has_another_name)
{
	set_up();
	const int device = open("/dev/null", O_RDWR | O_CLOEXEC);
	const int other = open("/dev/zero", O_RDWR | O_CLOEXEC);

	numbers = "1:5\n"; /* /dev/zero */
	CHECK_EQ(make(device, GPU, AQL, 100), -ENOTTY);
	CHECK_EQ(find_page(), -ENOENT);
	numbers = "nonsense\n";
	CHECK_EQ(make(device, GPU, AQL, 100), -ENOTTY);
	CHECK_EQ(find_page(), -ENOENT);
	numbers = "1:3\n"; /* /dev/null */
	CHECK_EQ(make(other, GPU, AQL, 100), -ENOTTY);
	CHECK_EQ(find_page(), -ENOENT);
	CHECK_EQ(make(device, GPU, AQL, 100), -ENOTTY);
	CHECK_EQ(find_page(), 0);
	CHECK_EQ(page->known, 0);
	finish();
}

static void in_child(void (*what)(void))
{
	const pid_t child = fork();
	int status;

	if (child == 0) {
		alarm(100);
		what();
		_exit(CHECK_PASSED);
	}
	CHECK(waitpid(child, &status, 0) == child, "waitpid");
	CHECK(WIFEXITED(status), "the child ended by signal %d", WTERMSIG(status));
	CHECK_EQ(WEXITSTATUS(status), CHECK_PASSED);
}

static void forked_child(void)
{
	struct gpuseg_kfd_agent *of_parent;
	int pidfd;

	CHECK_EQ(count_descriptors(GPUSEG_KFD_AGENT_NAME), 0);
	CHECK_EQ(find_page(), -ENOENT);
	/* the kernel's rule: an inherited descriptor cannot be used */
	CHECK_EQ(update(kfd, (struct update){RING, 0, 4096, 100, 7}), -EBADF);
	CHECK_EQ(make(kfd, GPU, AQL, 100), -EBADF);
	CHECK_EQ(destroy(kfd, 0), -EBADF);
	close(kfd);
	kfd = open(GPUSEG_AMD_KFD_DEVICE, O_RDWR | O_CLOEXEC);
	CHECK(kfd >= 0, "open");

	const int id = make(kfd, GPU, AQL, 100);

	CHECK_EQ(id, 0); /* the same number as its parent's, which is held */
	CHECK_EQ(queue(id)->percentage, 100);
	CHECK_EQ(find_page(), 0);
	CHECK_EQ(page->pid, getpid());
	CHECK_EQ(page->known, 1);
	CHECK_EQ(order(true), 0);
	CHECK_EQ(queue(id)->percentage, 0);
	pidfd = pidfd_of(getppid());
	CHECK_EQ(agent_page_open(getppid(), pidfd, &of_parent), 0);
	CHECK(of_parent->slots[SLOT].answered & GPUSEG_KFD_AGENT_HOLD, "the parent's order is the parent's");
}

TEST(should_leave_a_forked_child_without_its_parents_queues)
{
	set_up();
	CHECK_EQ(make(kfd, GPU, AQL, 100), 0);
	CHECK_EQ(find_page(), 0);
	CHECK_EQ(order(true), 0);
	in_child(forked_child);
	CHECK_EQ(queue(0)->percentage, 0);
	CHECK_EQ(order(false), 0);
	CHECK_EQ(queue(0)->percentage, 100);
	finish();
}

/* What a program sees that was started without fork handlers. */
static int spawned(void)
{
	char *arguments[] = {"sh", "-c", "! ls -l /proc/self/fd | grep -q gpuseg", NULL};
	int status = -1;
	pid_t child;

	CHECK(posix_spawnp(&child, "sh", NULL, NULL, arguments, environ) == 0, "posix_spawnp");
	CHECK(waitpid(child, &status, 0) == child, "waitpid");
	return status;
}

TEST(should_pass_nothing_on_through_exec)
{
	set_up();
	make(kfd, GPU, AQL, 100);
	CHECK_EQ(find_page(), 0);
	CHECK_EQ(order(true), 0);
	CHECK_EQ(count_descriptors(AMD_KFD_NAME), 0); /* the stand-in shows it under the device's name */
	CHECK(count_descriptors(GPUSEG_AMD_KFD_DEVICE) == 2, "the application's and the agent's");
	CHECK_EQ(spawned(), 0);
	CHECK_EQ(order(false), 0);
	CHECK_EQ(count_descriptors(GPUSEG_AMD_KFD_DEVICE), 1); /* or the checkpoint's pause would refuse the process */
	finish();
}

TEST(should_refuse_a_process_with_several_kfd_contexts)
{
	set_up();
	const int id = make(kfd, GPU, AQL, 100);

	CHECK_EQ(find_page(), 0);
	CHECK_EQ(order(true), 0);
	CHECK_EQ(ioctl(kfd, _IO('K', 0x27)), 0);
	CHECK_EQ(order(true), -EOPNOTSUPP);
	CHECK_EQ(queue(id)->percentage, 100);
	CHECK_EQ(order(false), 0);
	finish();
}

/* ---- the thread ---- */

TEST(should_block_all_signals_in_its_thread)
{
	char path[300], line[256];
	const struct dirent *entry;
	int found = 0;
	DIR *list;

	set_up();
	make(kfd, GPU, AQL, 100);
	CHECK_EQ(find_page(), 0);
	CHECK_EQ(order(true), 0);
	list = opendir("/proc/self/task");
	while ((entry = readdir(list))) {
		unsigned long long blocked = 0;
		bool ours = false;
		FILE *status;

		snprintf(path, sizeof(path), "/proc/self/task/%s/status", entry->d_name);
		status = entry->d_name[0] == '.' ? NULL : fopen(path, "r");
		while (status && fgets(line, sizeof(line), status)) {
			ours |= strcmp(line, "Name:\tgpuseg-kfd\n") == 0;
			sscanf(line, "SigBlk: %llx", &blocked);
		}
		if (status)
			fclose(status);
		if (ours) {
			/* all but KILL and STOP, and two that are the C library's own */
			CHECK((blocked | 0x180040100ULL) == ~0ULL, "blocks %llx", blocked);
			found++;
		}
	}
	closedir(list);
	CHECK_EQ(found, 1);
	finish();
}

TEST(should_end_a_hold_when_the_daemons_heartbeat_stops)
{
	set_up();
	const int id = make(kfd, GPU, AQL, 100);

	CHECK_EQ(find_page(), 0);
	page->slots[SLOT].period_ms = 200;
	CHECK_EQ(order(true), 0);
	EVENTUALLY(queue(id)->percentage == 100);
	CHECK_EQ(page->slots[SLOT].lapses, 1);
	page->slots[SLOT].beat++; /* too late: the hold has ended until a new order */
	usleep(50000);
	CHECK_EQ(queue(id)->percentage, 100);
	CHECK_EQ(make(kfd, GPU, AQL, 100), id + 1);
	CHECK_EQ(queue(id + 1)->percentage, 100);
	page->slots[SLOT].period_ms = PATIENT_MS;
	CHECK_EQ(order(true), 0);
	CHECK_EQ(queue(id)->percentage, 0);
	CHECK_EQ(page->slots[SLOT].lapses, 1);
	finish();
}

/* If this thread itself does not run for too long, the attempt tells nothing and is repeated. */
TEST(should_keep_a_hold_while_the_daemons_heartbeat_continues)
{
	set_up();
	const int id = make(kfd, GPU, AQL, 100);

	CHECK_EQ(find_page(), 0);
	page->slots[SLOT].period_ms = 1000;
	for (int attempt = 0; attempt < 5; attempt++) {
		const uint32_t before = page->slots[SLOT].lapses;
		int64_t longest_ns = 0, last_ns, end_ns;

		CHECK_EQ(order(true), 0);
		last_ns = now_ns();
		end_ns = last_ns + 2 * NS_PER_S;
		while (last_ns < end_ns) {
			int64_t gap_ns;

			usleep(20000);
			page->slots[SLOT].beat++;
			gap_ns = now_ns() - last_ns;
			longest_ns = gap_ns > longest_ns ? gap_ns : longest_ns;
			last_ns += gap_ns;
		}
		if (longest_ns > 300 * NS_PER_MS)
			continue;
		CHECK_EQ(page->slots[SLOT].lapses, before);
		CHECK_EQ(queue(id)->percentage, 0);
		finish();
		return;
	}
	finish();
	SKIP("this machine keeps a thread waiting for more than 300 ms");
}

/* ---- release by the watchdog ---- */

static struct gpuseg_amd_held payload = {.version = GPUSEG_AMD_HELD_VERSION, .interface = GPUSEG_AMD_AGENT, .fd = SLOT};

static void release_parent(void)
{
	const int pid = getppid();

	CHECK_EQ(gpuseg_amd_release(pid, process_start_ticks(pid) + 1, &payload, sizeof(payload), now_ns() + WAIT_NS),
		 -ESRCH);
	payload.fd = GPUSEG_KFD_AGENT_SLOTS;
	CHECK_EQ(gpuseg_amd_release(pid, process_start_ticks(pid), &payload, sizeof(payload), now_ns()), -EINVAL);
	payload.fd = SLOT;
	CHECK_EQ(gpuseg_amd_release(pid, process_start_ticks(pid), &payload, sizeof(payload), now_ns() + WAIT_NS), 0);
}

TEST(should_be_released_by_the_watchdog)
{
	set_up();
	in_child(release_parent); /* without an agent there is nothing to release */

	const int id = make(kfd, GPU, AQL, 100);

	CHECK_EQ(find_page(), 0);
	CHECK_EQ(order(true), 0);
	in_child(release_parent);
	CHECK_EQ(queue(id)->percentage, 100);
	in_child(release_parent);
	CHECK_EQ(order(true), 0);
	CHECK_EQ(queue(id)->percentage, 0);
	finish();
}

/* Pages that must be refused: too large, not sealed, of another process. */
TEST(should_not_accept_forged_pages)
{
	set_up();
	for (int forgery = 0; forgery < 4; forgery++) {
		const int fd = memfd_create(GPUSEG_KFD_AGENT_NAME, MFD_CLOEXEC | MFD_ALLOW_SEALING);
		const int size = GPUSEG_KFD_AGENT_BYTES + (forgery == 0 ? 4096 : 0);
		const struct gpuseg_kfd_agent forged = {.magic = GPUSEG_KFD_AGENT_MAGIC,
							.version = GPUSEG_KFD_AGENT_VERSION,
							.pid = getpid() + (forgery == 2)};

		CHECK(fd >= 0 && ftruncate(fd, size) == 0, "memfd");
		CHECK(pwrite(fd, &forged, sizeof(forged), 0) == sizeof(forged), "pwrite");
		if (forgery != 1)
			CHECK(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) == 0, "seals");
		CHECK_EQ(find_page(), forgery == 3 ? 0 : -ENOENT);
		if (forgery == 3) { /* it is valid, but no agent answers */
			const uint32_t given = agent_page_order(page, SLOT, true);

			CHECK_EQ(agent_page_wait(page, SLOT, given, now_ns() + 20 * NS_PER_MS), -ETIMEDOUT);
		}
		close(fd);
	}
	finish();
}

/* ---- random sequences against a model ---- */

struct model_queue {
	bool live;
	uint32_t gpu_id, type;
	struct update wanted;
};

static uint32_t random_state;

static uint32_t rnd(uint32_t below)
{
	random_state = random_state * 1664525u + 1013904223u;
	return (random_state >> 8) % below;
}

static void compare(const struct model_queue *model, bool held, bool all, int step)
{
	unsigned live = 0;

	for (int i = 0; i < AMD_QUEUES; i++) {
		const struct amd_queue *q = queue(i);
		const struct model_queue *m = &model[i];
		const bool off = held && m->gpu_id == GPU && (all || m->type == AQL || m->type == PM4);

		CHECK((q->used != 0) == m->live, "step %d, queue %d", step, i);
		if (!m->live)
			continue;
		live++;
		CHECK(q->percentage == (off ? m->wanted.percentage & ~0xffu : m->wanted.percentage),
		      "step %d, queue %d: %u, wanted %u, held %d", step, i, q->percentage, m->wanted.percentage, off);
		CHECK(q->address == m->wanted.ring && q->priority == m->wanted.priority &&
			      q->size == (m->wanted.size < 1024 ? 1024 : m->wanted.size),
		      "step %d, queue %d: other fields", step, i);
	}
	CHECK(page->known == live, "step %d: %u in the books, %u live", step, page->known, live);
}

static int random_sequence(uint32_t seed)
{
	struct model_queue model[AMD_QUEUES] = {0};
	bool held = false, all = false;

	random_state = seed;
	for (int step = 0; step < 400; step++) {
		const uint32_t id = rnd(AMD_QUEUES + 1);
		struct model_queue *m = id < AMD_QUEUES ? &model[id] : NULL;
		struct update u = {.ring = rnd(4) ? RING + 4096 * rnd(8) : 0,
				   .id = id,
				   .size = 512u << rnd(5),
				   .percentage = rnd(103) | (rnd(4) ? 0 : 0x300),
				   .priority = rnd(17)};
		const bool valid = (u.percentage & 0xff) <= 100 && u.priority <= 15;

		switch (rnd(7)) {
		case 0:
		case 1: {
			struct create c = {.ring = u.ring,
					   .size = u.size,
					   .gpu_id = rnd(3) ? GPU : OTHER_GPU,
					   .type = rnd(4),
					   .percentage = u.percentage,
					   .priority = u.priority};
			const int made = ioctl(kfd, request(2, rnd(2) ? OLD_SIZE : NEW_SIZE), &c);
			unsigned lowest = 0;

			while (lowest < AMD_QUEUES && model[lowest].live)
				lowest++;
			CHECK((made == 0) == (valid && lowest < AMD_QUEUES), "step %d: create", step);
			if (made == 0) {
				CHECK_EQ(c.id, lowest);
				CHECK_EQ(c.percentage, u.percentage);
				u.id = lowest;
				model[lowest] = (struct model_queue){true, c.gpu_id, c.type, u};
			}
			break;
		}
		case 2:
			CHECK_EQ(destroy(kfd, id), m && m->live ? 0 : -EINVAL);
			if (m)
				m->live = false;
			break;
		case 3:
		case 4:
			CHECK_EQ(update(kfd, u), !valid ? -EINVAL : m && m->live ? 0 : -EFAULT);
			if (valid && m && m->live)
				m->wanted = u;
			break;
		case 5:
			all = rnd(2);
			page->slots[SLOT].flags = all ? GPUSEG_KFD_AGENT_ALL_QUEUES : 0;
			held = true;
			CHECK_EQ(order(true), 0);
			break;
		default:
			held = false;
			CHECK_EQ(order(false), 0);
		}
		compare(model, held, all, step);
	}
	for (uint32_t i = 0; i < AMD_QUEUES; i++)
		destroy(kfd, i);
	return order(false);
}

TEST(should_agree_with_a_model_after_every_step_of_random_sequences)
{
	set_up();
	const int id = make(kfd, GPU, AQL, 100);

	CHECK_EQ(find_page(), 0);
	CHECK_EQ(destroy(kfd, (uint32_t)id), 0);
	const char *more = getenv("GPUSEG_AGENT_SEEDS"); /* first of four seeds */
	const uint32_t first = more ? (uint32_t)strtoul(more, NULL, 10) : 1;

	for (uint32_t seed = first; seed < first + 4; seed++) {
		const int result = random_sequence(seed);

		CHECK(result == 0, "seed %u", seed);
	}
	finish();
}

/* ---- threads that race ---- */

static int stop_racing;
static int raced; /* the first error of an application's thread */

static void *race(void *seed)
{
	uint32_t state = (uint32_t)(uintptr_t)seed;

	while (!__atomic_load_n(&stop_racing, __ATOMIC_ACQUIRE)) {
		const int id = make(kfd, GPU, AQL, 100);

		state = state * 1664525u + 1013904223u;
		if (id < 0 || update(kfd, (struct update){RING, (uint32_t)id, 4096, (state >> 9) % 101, 3}) != 0 ||
		    update(kfd, (struct update){RING, (uint32_t)id, 4096, 100, 7}) != 0 ||
		    destroy(kfd, (uint32_t)id) != 0)
			__atomic_store_n(&raced, 1, __ATOMIC_RELEASE);
	}
	return NULL;
}

TEST(should_have_no_active_queue_once_a_hold_is_answered_whatever_threads_do)
{
	pthread_t racers[3];

	set_up();
	const int lasting = make(kfd, GPU, AQL, 100);

	CHECK_EQ(find_page(), 0);
	for (uintptr_t i = 0; i < 3; i++)
		CHECK(pthread_create(&racers[i], NULL, race, (void *)(i + 1)) == 0, "pthread_create");
	for (int round = 0; round < 150; round++) {
		CHECK_EQ(order(true), 0);
		/*
		 * answered: from here on no queue of this GPU is active, including those that are created or changed
		 * now
		 */
		for (int look = 0; look < 20; look++)
			for (int i = 0; i < AMD_QUEUES; i++)
				CHECK(!queue(i)->used || (queue(i)->percentage & 0xff) == 0,
				      "round %d: queue %d has %u", round, i, queue(i)->percentage);
		CHECK_EQ(order(false), 0);
		CHECK_EQ(queue(lasting)->percentage, 100);
	}
	__atomic_store_n(&stop_racing, 1, __ATOMIC_RELEASE);
	for (int i = 0; i < 3; i++)
		pthread_join(racers[i], NULL);
	CHECK_EQ(raced, 0);
	CHECK_EQ(page->known, 1);
	finish();
}

static const struct check_case cases[] = {
	CASE(should_disable_compute_queues_and_restore_them_as_they_were),
	CASE(should_make_queues_inactive_while_their_gpu_is_held),
	CASE(should_not_let_the_applications_own_updates_end_a_hold),
	CASE(should_refuse_what_the_kernel_refuses_held_or_not),
	CASE(should_respect_the_callers_size_of_an_argument),
	CASE(should_forget_a_queue_that_is_destroyed_while_held),
	CASE(should_report_the_kernels_error_and_retry_releases),
	CASE(should_hold_through_its_own_descriptor_when_the_application_closed_its),
	CASE(should_leave_files_alone_that_have_the_number_of_its_descriptor),
	CASE(should_start_nothing_without_a_queue_or_when_disabled),
	CASE(should_know_the_device_by_its_number_where_it_has_another_name),
	CASE(should_leave_a_forked_child_without_its_parents_queues),
	CASE(should_pass_nothing_on_through_exec),
	CASE(should_refuse_a_process_with_several_kfd_contexts),
	CASE(should_block_all_signals_in_its_thread),
	CASE(should_end_a_hold_when_the_daemons_heartbeat_stops),
	CASE(should_keep_a_hold_while_the_daemons_heartbeat_continues),
	CASE(should_be_released_by_the_watchdog),
	CASE(should_not_accept_forged_pages),
	CASE(should_agree_with_a_model_after_every_step_of_random_sequences),
	CASE(should_have_no_active_queue_once_a_hold_is_answered_whatever_threads_do),
};
CHECK_MAIN_APART(cases)
