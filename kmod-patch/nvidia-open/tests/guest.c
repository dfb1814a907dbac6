// SPDX-License-Identifier: GPL-2.0-only
/*
 * The init process of a small QEMU guest: loads gpuseg_nv_test.ko (the patch's sources with a fake Resource Manager) and
 * tests it through /dev/gpuseg-nv and /dev/fake-nvidiactl. Applications are child processes that obey commands.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/klog.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/reboot.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "gpuseg_nv.h"
#include "module/fake_rm.h"

#define ROOT 0x41u
#define DEVICE 0x80u
#define SUBDEVICE 0x2080u
#define TSG 0xa06cu
#define CHANNEL 0xc86fu
#define COMPUTE 0xcbc0u
#define COPY 0xc8b5u

#define ALLOC_32 _IOC(_IOC_READ | _IOC_WRITE, 'F', 0x2b, 32)
#define ALLOC_48 _IOC(_IOC_READ | _IOC_WRITE, 'F', 0x2b, 48)
#define FREE _IOC(_IOC_READ | _IOC_WRITE, 'F', 0x29, 16)
#define DUP _IOC(_IOC_READ | _IOC_WRITE, 'F', 0x34, 28)

#define ARRAY(a) (sizeof(a) / sizeof((a)[0]))
#define DUMP_MAX 8192

static int passed, failed, skipped;
static int fake = -1;  /* the test's own open file of the fake device */
static int control = -1; /* /dev/gpuseg-nv */

#define CHECK(condition)                                                                                               \
	do {                                                                                                           \
		if (!(condition)) {                                                                                    \
			printf("    guest.c:%d: %s (errno %d %s)\n", __LINE__, #condition, errno, strerror(errno));     \
			return false;                                                                                  \
		}                                                                                                      \
	} while (0)

/* --- applications --- */

enum { OPEN = 1, ALLOCATE, RELEASE, DUPLICATE, CLOSE, NAME, STORM, PASS_ON };

struct command {
	uint32_t op, client, parent, handle, class_id, device, brief;
	uint32_t source_client, source;
	char name[16];
};

struct app {
	pid_t pid;
	int socket;
	uint32_t client;
};

static long allocate(int fd, uint32_t client, uint32_t parent, uint32_t *handle, uint32_t class_id, uint32_t device,
		     bool brief)
{
	uint32_t b[12] = {client, parent, *handle, class_id};
	uint64_t params = (uintptr_t)&device;

	memcpy(&b[4], &params, sizeof(params));
	if (ioctl(fd, brief ? ALLOC_32 : ALLOC_48, b))
		return -errno;
	*handle = b[2];
	return b[brief ? 7 : 10];
}

static long release(int fd, uint32_t client, uint32_t handle)
{
	uint32_t b[4] = {client, 0, handle};

	return ioctl(fd, FREE, b) ? -errno : (long)b[3];
}

static long duplicate(int fd, const struct command *c)
{
	uint32_t b[7] = {c->client, c->parent, c->handle, c->source_client, c->source};

	return ioctl(fd, DUP, b) ? -errno : (long)b[6];
}

static uint64_t rng(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

/* Makes and frees without end, until killed. */
static void storm(uint64_t seed)
{
	for (;;) {
		int fd = open("/dev/fake-nvidiactl", O_RDWR | O_CLOEXEC);
		uint32_t client = 0, h;

		if (fd < 0 || allocate(fd, 0, 0, &client, ROOT, 0, false))
			_exit(3);
		h = 1;
		allocate(fd, client, client, &h, DEVICE, rng(&seed) & 1, false);
		h = 2;
		allocate(fd, client, 1, &h, SUBDEVICE, 0, false);
		for (int i = 0; i < 40; i++) {
			uint32_t t = 0x100 + rng(&seed) % 4, ch = 0x200 + rng(&seed) % 16, e = 0x300 + rng(&seed) % 16;

			switch (rng(&seed) % 6) {
			case 0:
				allocate(fd, client, 1, &t, TSG, 0, false);
				break;
			case 1:
			case 2:
				allocate(fd, client, t, &ch, CHANNEL, 0, rng(&seed) & 1);
				break;
			case 3:
				allocate(fd, client, ch, &e, COMPUTE, 0, false);
				break;
			case 4:
				release(fd, client, ch);
				break;
			default:
				release(fd, client, t);
				break;
			}
		}
		if (rng(&seed) & 1)
			release(fd, client, client);
		close(fd);
	}
}

static void app_main(int s)
{
	struct command c;
	int fd = -1;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (recv(s, &c, sizeof(c), 0) == sizeof(c)) {
		struct {
			int32_t result;
			uint32_t handle;
		} reply = {0, c.handle};

		switch (c.op) {
		case OPEN:
			fd = open("/dev/fake-nvidiactl", O_RDWR | O_CLOEXEC);
			reply.result = fd < 0 ? -errno : 0;
			break;
		case ALLOCATE:
			reply.result = (int)allocate(fd, c.client, c.parent, &reply.handle, c.class_id, c.device, c.brief);
			break;
		case RELEASE:
			reply.result = (int)release(fd, c.client, c.handle);
			break;
		case DUPLICATE:
			reply.result = (int)duplicate(fd, &c);
			break;
		case CLOSE:
			reply.result = close(fd);
			break;
		case NAME:
			prctl(PR_SET_NAME, c.name);
			break;
		case PASS_ON: /* a child keeps the descriptor when we die */
			if (fork() == 0) {
				prctl(PR_SET_PDEATHSIG, 0);
				for (;;)
					pause();
			}
			break;
		case STORM:
			send(s, &reply, sizeof(reply), MSG_NOSIGNAL);
			storm(c.handle);
			break;
		}
		send(s, &reply, sizeof(reply), MSG_NOSIGNAL);
	}
	_exit(0);
}

static struct app start(void)
{
	struct app a = {0};
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return a;
	a.pid = fork();
	if (a.pid == 0) {
		close(pair[0]);
		close(control);
		close(fake);
		app_main(pair[1]);
	}
	close(pair[1]);
	a.socket = pair[0];
	return a;
}

static long order(struct app *a, struct command c, uint32_t *handle)
{
	struct {
		int32_t result;
		uint32_t handle;
	} reply = {0};

	if (send(a->socket, &c, sizeof(c), MSG_NOSIGNAL) != sizeof(c) ||
	    recv(a->socket, &reply, sizeof(reply), 0) != sizeof(reply))
		return -EPIPE;
	if (handle)
		*handle = reply.handle;
	return reply.result;
}

static long make(struct app *a, uint32_t parent, uint32_t handle, uint32_t class_id)
{
	return order(a, (struct command){.op = ALLOCATE, .client = a->client, .parent = parent, .handle = handle,
					 .class_id = class_id, .brief = handle & 1}, NULL);
}

static long unmake(struct app *a, uint32_t handle)
{
	return order(a, (struct command){.op = RELEASE, .client = a->client, .handle = handle}, NULL);
}

static bool open_client(struct app *a, uint32_t device)
{
	struct command root = {.op = ALLOCATE, .class_id = ROOT};

	return order(a, (struct command){.op = OPEN}, NULL) == 0 && order(a, root, &a->client) == 0 &&
	       order(a, (struct command){.op = ALLOCATE, .client = a->client, .parent = a->client, .handle = 1,
					 .class_id = DEVICE, .device = device}, NULL) == 0 &&
	       make(a, 1, 2, SUBDEVICE) == 0;
}

/* As CUDA does: a compute TSG of some channels, a copy TSG of 4. */
static bool make_context(struct app *a, uint32_t channels)
{
	if (make(a, 1, 0x10, TSG) || make(a, 1, 0x11, TSG))
		return false;
	for (uint32_t i = 0; i < channels; i++)
		if (make(a, 0x10, 0x100 + i, CHANNEL))
			return false;
	for (uint32_t i = 0; i < 4; i++)
		if (make(a, 0x11, 0x80 + i, CHANNEL))
			return false;
	return make(a, 0x100, 0x1000, COMPUTE) == 0 && make(a, 0x80, 0x1001, COPY) == 0;
}

static struct app start_context(uint32_t device, uint32_t channels)
{
	struct app a = start();

	if (!open_client(&a, device) || !make_context(&a, channels))
		a.pid = 0;
	return a;
}

static void stop(struct app *a)
{
	if (a->pid > 0) {
		close(a->socket);
		kill(a->pid, SIGKILL);
		waitpid(a->pid, NULL, 0);
	}
	a->pid = 0;
}

/* --- the two devices --- */

static struct fake_channel channels[DUMP_MAX];

static struct fake_dump dump(void)
{
	struct fake_dump d = {.channels = (uintptr_t)channels, .room = DUMP_MAX};

	if (ioctl(fake, FAKE_DUMP, &d))
		d.count = UINT32_MAX;
	return d;
}

static uint32_t off_of(const struct app *a)
{
	struct fake_dump d = dump();
	uint32_t n = 0;

	for (uint32_t i = 0; i < d.count; i++)
		n += channels[i].client == a->client && channels[i].disables;
	return n;
}

static uint32_t off_all(void)
{
	struct fake_dump d = dump();
	uint32_t n = 0;

	for (uint32_t i = 0; i < d.count; i++)
		n += channels[i].disables;
	return n;
}

static void inject(uint32_t status, uint32_t at, uint32_t count, uint32_t enables)
{
	struct fake_inject i = {.status = status, .at = at, .count = count, .enables = enables};

	ioctl(fake, FAKE_INJECT, &i);
}

static uint64_t ticks_of(pid_t pid)
{
	char path[64], line[512];
	unsigned long long ticks = 0;
	char *p;
	int fd, n;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	fd = open(path, O_RDONLY);
	n = (int)read(fd, line, sizeof(line) - 1);
	close(fd);
	if (n <= 0)
		return 0;
	line[n] = 0;
	p = strrchr(line, ')') + 2;
	for (int field = 3; field < 22; field++)
		p = strchr(p, ' ') + 1;
	sscanf(p, "%llu", &ticks);
	return ticks;
}

static struct gpuseg_nv_switch last;

static int switch_many(struct gpuseg_nv_target *t, uint32_t n, uint32_t flags)
{
	last = (struct gpuseg_nv_switch){.targets = (uintptr_t)t, .count = n, .flags = flags};
	return ioctl(control, GPUSEG_NV_IOC_SWITCH, &last) ? -errno : 0;
}

static int switch_one(const struct app *a, uint32_t op, uint32_t flags)
{
	struct gpuseg_nv_target t = {.pid = a->pid, .op = op, .start_ticks = ticks_of(a->pid)};

	return switch_many(&t, 1, flags);
}

static int hold(const struct app *a)
{
	return switch_one(a, GPUSEG_NV_OP_HOLD, 0);
}

static int let_go(const struct app *a)
{
	return switch_one(a, GPUSEG_NV_OP_RELEASE, 0);
}

static struct gpuseg_nv_info info(void)
{
	struct gpuseg_nv_info i = {0};

	ioctl(control, GPUSEG_NV_IOC_INFO, &i);
	return i;
}

static bool open_control(void)
{
	control = open("/dev/gpuseg-nv", O_RDWR | O_CLOEXEC);
	return control >= 0;
}

static void close_control(void)
{
	close(control);
	control = -1;
}

static bool within(int ms, bool (*condition)(const struct app *), const struct app *a)
{
	for (int i = 0; i < ms; i++) {
		if (condition(a))
			return true;
		usleep(1000);
	}
	return false;
}

static bool nothing_off(const struct app *a)
{
	(void)a;
	return off_all() == 0;
}

/* --- tests --- */

static bool should_admit_only_administrators(void)
{
	struct stat s;
	int status;
	pid_t pid;

	CHECK(stat("/dev/gpuseg-nv", &s) == 0 && (s.st_mode & 0777) == 0600);
	CHECK(chmod("/dev/gpuseg-nv", 0666) == 0);
	pid = fork();
	if (pid == 0) {
		if (setgid(1000) || setuid(1000))
			_exit(9);
		_exit(open("/dev/gpuseg-nv", O_RDWR) < 0 ? errno : 0);
	}
	waitpid(pid, &status, 0);
	CHECK(chmod("/dev/gpuseg-nv", 0600) == 0);
	CHECK(WEXITSTATUS(status) == EPERM);
	return true;
}

static bool should_admit_one_controller_at_a_time(void)
{
	CHECK(open("/dev/gpuseg-nv", O_RDWR) < 0 && errno == EBUSY);
	close_control();
	CHECK(open_control());
	return true;
}

static bool should_refuse_what_it_does_not_understand(void)
{
	struct gpuseg_nv_target t = {.pid = getpid(), .op = 9};
	struct gpuseg_nv_watchdog w = {.period_ms = 5};
	struct gpuseg_nv_name n;
	struct gpuseg_nv_list l = {.reserved = 1};

	CHECK(switch_many(&t, 1, 0) == -EINVAL);
	t.op = GPUSEG_NV_OP_HOLD;
	t.pid = 0;
	CHECK(switch_many(&t, 1, 0) == -EINVAL);
	CHECK(switch_many(&t, 0, 0x100) == -EINVAL);
	CHECK(switch_many(&t, 0, GPUSEG_NV_WINDOW_OPEN | GPUSEG_NV_WINDOW_CLOSE) == -EINVAL);
	CHECK(switch_many(NULL, 1, 0) == -EFAULT);
	CHECK(switch_many(&t, GPUSEG_NV_TARGETS_MAX + 1, 0) == -E2BIG);
	CHECK(ioctl(control, GPUSEG_NV_IOC_WATCHDOG, &w) && errno == ERANGE);
	w = (struct gpuseg_nv_watchdog){.period_ms = 100, .reserved = 1};
	CHECK(ioctl(control, GPUSEG_NV_IOC_WATCHDOG, &w) && errno == EINVAL);
	memset(&n, 'x', sizeof(n));
	CHECK(ioctl(control, GPUSEG_NV_IOC_PROTECT, &n) && errno == EINVAL);
	CHECK(ioctl(control, GPUSEG_NV_IOC_LIST, &l) && errno == EINVAL);
	CHECK(ioctl(control, _IO(GPUSEG_NV_MAGIC, 99)) && errno == ENOTTY);
	CHECK(ioctl(control, GPUSEG_NV_IOC_INFO, NULL) && errno == EFAULT);
	return true;
}

static bool should_know_a_process_by_its_start_time(void)
{
	struct app a = start_context(0, 2);
	struct gpuseg_nv_target t = {.pid = a.pid, .op = GPUSEG_NV_OP_HOLD, .start_ticks = ticks_of(a.pid) + 1};

	CHECK(a.pid > 0);
	CHECK(switch_many(&t, 1, 0) == -EIO && t.result == -ESRCH && off_of(&a) == 0);
	t.start_ticks--;
	CHECK(switch_many(&t, 1, 0) == 0 && t.channels == 2);
	stop(&a);
	CHECK(switch_many(&t, 1, 0) == -EIO && t.result == -ESRCH);
	return true;
}

static bool should_take_compute_channels_off_and_bring_them_back(void)
{
	struct app a = start_context(0, 8);

	CHECK(a.pid > 0);
	CHECK(hold(&a) == 0 && off_of(&a) == 8 && last.rm_calls == 1);
	CHECK(hold(&a) == 0 && off_of(&a) == 8 && last.rm_calls == 0);
	CHECK(switch_one(&a, GPUSEG_NV_OP_HOLD, GPUSEG_NV_ALL_ENGINES) == 0 && off_of(&a) == 12);
	CHECK(hold(&a) == 0 && off_of(&a) == 8);
	CHECK(let_go(&a) == 0 && off_of(&a) == 0);
	stop(&a);
	return true;
}

static bool should_switch_many_processes_in_few_calls_and_hold_before_it_releases(void)
{
	struct app a[9];
	struct gpuseg_nv_target t[9];

	for (int i = 0; i < 9; i++) {
		a[i] = start_context(0, 8);
		CHECK(a[i].pid > 0);
		t[i] = (struct gpuseg_nv_target){.pid = a[i].pid, .op = GPUSEG_NV_OP_HOLD};
	}
	CHECK(switch_many(t, 9, 0) == 0 && last.rm_calls == 2);
	CHECK(dump().largest == 64 && off_all() == 72);
	for (int i = 0; i < 9; i++)
		t[i].op = GPUSEG_NV_OP_RELEASE;
	CHECK(switch_many(t, 9, 0) == 0 && last.rm_calls == 2 && off_all() == 0);
	for (int i = 0; i < 9; i++)
		stop(&a[i]);
	return true;
}

static bool should_never_mix_gpus_in_a_call(void)
{
	struct app a = start_context(0, 8), b = start_context(1, 8);
	struct gpuseg_nv_target t[] = {{.pid = a.pid, .op = GPUSEG_NV_OP_HOLD}, {.pid = b.pid, .op = GPUSEG_NV_OP_HOLD}};

	CHECK(switch_many(t, 2, 0) == 0 && last.rm_calls == 2 && off_all() == 16 && dump().wrong_gpu == 0);
	stop(&a);
	stop(&b);
	return true;
}

static bool should_start_held_what_a_held_process_makes(void)
{
	struct app a = start();

	CHECK(hold(&a) == 0);
	CHECK(open_client(&a, 0) && make_context(&a, 3) && off_of(&a) == 3);
	CHECK(make(&a, 0x10, 0x200, CHANNEL) == 0 && off_of(&a) == 4);
	CHECK(make(&a, 1, 0x12, TSG) == 0 && make(&a, 0x12, 0x201, CHANNEL) == 0 && off_of(&a) == 4);
	CHECK(make(&a, 0x201, 0x1002, COMPUTE) == 0 && off_of(&a) == 5);
	CHECK(let_go(&a) == 0 && off_of(&a) == 0);
	stop(&a);
	return true;
}

static bool should_catch_new_processes_while_a_window_is_open(void)
{
	struct app known = start_context(0, 2), a, b, c, d;
	struct gpuseg_nv_name name = {"compositor"};
	struct gpuseg_nv_process found[16];
	struct gpuseg_nv_list list = {.processes = (uintptr_t)found, .count = 16};
	struct pollfd p = {.fd = control, .events = POLLIN};
	struct gpuseg_nv_target t = {.op = GPUSEG_NV_OP_EXEMPT};
	bool seen = false;

	a = start();
	b = start();
	c = start();
	CHECK(ioctl(control, GPUSEG_NV_IOC_PROTECT, &name) == 0);
	t.pid = b.pid;
	CHECK(switch_many(&t, 1, GPUSEG_NV_WINDOW_OPEN) == 0 && info().window == 1);
	CHECK(poll(&p, 1, 0) == 0);
	CHECK(order(&c, (struct command){.op = NAME, .name = "compositor"}, NULL) == 0);
	CHECK(open_client(&a, 0) && make_context(&a, 2) && off_of(&a) == 2);
	CHECK(open_client(&b, 0) && make_context(&b, 2) && off_of(&b) == 0);
	CHECK(open_client(&c, 0) && make_context(&c, 2) && off_of(&c) == 0);
	CHECK(make(&known, 0x10, 0x300, CHANNEL) == 0 && off_of(&known) == 0);
	CHECK(poll(&p, 1, 0) == 1);
	CHECK(ioctl(control, GPUSEG_NV_IOC_LIST, &list) == 0 && list.count == 4);
	for (uint32_t i = 0; i < 4; i++)
		if (found[i].pid == a.pid) {
			seen = found[i].flags == (GPUSEG_NV_PROCESS_HELD | GPUSEG_NV_PROCESS_CAUGHT) &&
			       found[i].off == 2 && found[i].channels == 6 && found[i].start_ticks == ticks_of(a.pid);
		} else {
			CHECK(found[i].flags == 0);
		}
	CHECK(seen && poll(&p, 1, 0) == 0);
	d = start();
	CHECK(open_client(&d, 0) && make_context(&d, 2) && off_of(&d) == 2);
	CHECK(hold(&d) == 0);
	CHECK(switch_many(NULL, 0, GPUSEG_NV_WINDOW_CLOSE) == 0 && off_of(&a) == 0 && off_of(&d) == 2);
	CHECK(let_go(&d) == 0);
	stop(&a);
	stop(&b);
	stop(&c);
	stop(&d);
	stop(&known);
	return true;
}

static bool should_release_everything_when_the_controller_is_killed(void)
{
	struct app a = start_context(0, 8);
	int status;
	pid_t pid;

	close_control();
	pid = fork();
	if (pid == 0) {
		if (!open_control() || hold(&a))
			_exit(1);
		kill(getpid(), SIGKILL);
	}
	waitpid(pid, &status, 0);
	CHECK(WIFSIGNALED(status) && off_of(&a) == 0);
	CHECK(open_control() && info().held == 0);
	stop(&a);
	return true;
}

static bool should_hold_until_the_last_descriptor_of_the_controller_is_closed(void)
{
	struct app a = start_context(0, 2);
	int copy = dup(control);

	CHECK(hold(&a) == 0);
	close(control);
	CHECK(off_of(&a) == 2);
	close(copy);
	CHECK(off_of(&a) == 0 && open_control());
	stop(&a);
	return true;
}

static bool should_release_everything_when_the_watchdog_lapses(void)
{
	struct app a = start_context(0, 8);
	/* Long enough for a busy host that stops this machine for a second. */
	struct gpuseg_nv_watchdog w = {.period_ms = 2500};

	CHECK(ioctl(control, GPUSEG_NV_IOC_WATCHDOG, &w) == 0 && hold(&a) == 0);
	for (int i = 0; i < 12; i++) {
		usleep(250000);
		CHECK(ioctl(control, GPUSEG_NV_IOC_WATCHDOG, &w) == 0);
	}
	CHECK(off_of(&a) == 8 && info().lapses == 0);
	CHECK(within(30000, nothing_off, NULL) && info().lapses == 1);
	w.period_ms = 0;
	CHECK(ioctl(control, GPUSEG_NV_IOC_WATCHDOG, &w) == 0);
	CHECK(hold(&a) == 0 && last.flags & GPUSEG_NV_LAPSED);
	CHECK(hold(&a) == 0 && !(last.flags & GPUSEG_NV_LAPSED));
	usleep(3000000);
	CHECK(off_of(&a) == 8);
	stop(&a);
	return true;
}

static bool should_forget_a_process_that_is_killed_while_held(void)
{
	struct app a = start_context(0, 8);

	CHECK(hold(&a) == 0 && off_of(&a) == 8);
	stop(&a);
	CHECK(dump().count == 0 && info().channels == 0);
	CHECK(switch_many(NULL, 0, 0) == 0 && info().processes == 0);
	return true;
}

static bool should_release_what_a_child_keeps_open_after_its_parent_died(void)
{
	struct app a = start_context(0, 2);

	CHECK(order(&a, (struct command){.op = PASS_ON}, NULL) == 0 && hold(&a) == 0);
	stop(&a);
	CHECK(dump().count == 6 && off_all() == 2);
	CHECK(switch_many(NULL, 0, 0) == 0 && off_all() == 0);
	CHECK(kill(-1, SIGKILL) == 0);
	while (waitpid(-1, NULL, 0) > 0)
		;
	for (int i = 0; i < 30000 && dump().count; i++)
		usleep(1000);
	CHECK(dump().count == 0);
	return true;
}

static bool should_know_what_became_of_each_channel_when_a_batch_fails(void)
{
	struct app a = start_context(0, 8), b = start_context(0, 8);
	struct gpuseg_nv_target t[] = {{.pid = a.pid, .op = GPUSEG_NV_OP_HOLD}, {.pid = b.pid, .op = GPUSEG_NV_OP_HOLD}};

	inject(0x56, 11, 1, 0);
	CHECK(switch_many(t, 2, 0) == 0 && last.rm_status == 0x56 && off_all() == 16);
	t[0].op = t[1].op = GPUSEG_NV_OP_RELEASE;
	inject(0x56, 5, 1, 1);
	CHECK(switch_many(t, 2, 0) == 0 && off_all() == 0);
	t[0].op = t[1].op = GPUSEG_NV_OP_HOLD;
	inject(0x56, 0, 3, 0); /* the batch and the first two on their own */
	CHECK(switch_many(t, 2, 0) == -EIO && off_all() == 14);
	CHECK((t[0].result == -EIO) != (t[1].result == -EIO) && t[0].channels + t[1].channels == 14);
	CHECK(switch_many(t, 2, 0) == 0 && off_all() == 16);
	t[0].op = t[1].op = GPUSEG_NV_OP_RELEASE;
	inject(0x56, 0, 4, 1);
	CHECK(switch_many(t, 2, 0) == -EIO && off_all() == 3);
	CHECK(within(30000, nothing_off, NULL)); /* enabling is tried again without being asked */
	CHECK(dump().twice == 0);
	stop(&a);
	stop(&b);
	return true;
}

static bool should_survive_a_free_that_fails(void)
{
	struct app a = start_context(0, 4);

	inject(0x56, 0, 1, 2);
	CHECK(unmake(&a, 0x10) == 0x56);
	CHECK(hold(&a) == 0 && off_of(&a) == 4);
	inject(0x56, 0, 1, 2);
	CHECK(unmake(&a, a.client) == 0x56);
	CHECK(let_go(&a) == 0 && off_of(&a) == 0);
	CHECK(unmake(&a, 0x10) == 0 && hold(&a) == 0 && off_of(&a) == 0);
	CHECK(make(&a, 1, 0x10, TSG) == 0 && make(&a, 0x10, 0x100, CHANNEL) == 0);
	CHECK(off_of(&a) == 0 && make(&a, 0x100, 0x1000, COMPUTE) == 0 && off_of(&a) == 1);
	CHECK(unmake(&a, 0x100) == 0 && make(&a, 0x10, 0x100, CHANNEL) == 0 && off_of(&a) == 1);
	CHECK(unmake(&a, a.client) == 0 && info().channels == 0);
	stop(&a);
	return true;
}

static bool should_follow_duplicates(void)
{
	struct app a = start_context(0, 2), b = start();
	struct command dup = {.op = DUPLICATE, .parent = 1, .handle = 0x50, .source_client = a.client, .source = 0x10};

	CHECK(open_client(&b, 0));
	dup.client = b.client;
	CHECK(order(&b, dup, NULL) == 0);
	CHECK(hold(&b) == 0 && off_of(&b) == 0);
	CHECK(make(&b, 0x50, 0x60, CHANNEL) == 0 && off_of(&b) == 1);
	stop(&a);
	stop(&b);
	return true;
}

/* --- random sequences against a model --- */

#define APPS 6
#define TSGS 4
#define SLOTS 8
#define STEPS_DEFAULT 10000

struct model_app {
	struct app app;
	bool client;
	bool wanted, caught, exempt, protected;
	bool tsg[TSGS], compute[TSGS];
	bool channel[TSGS][SLOTS];
	uint32_t device;
};

static struct model_app model[APPS];
static bool model_window, model_all;

static uint32_t model_channels(const struct model_app *m)
{
	uint32_t n = 0;

	for (int t = 0; t < TSGS; t++)
		for (int s = 0; s < SLOTS; s++)
			n += m->channel[t][s];
	return n;
}

static bool model_agrees(void)
{
	struct fake_dump d = dump();
	uint32_t expected = 0, met = 0;

	for (int i = 0; i < APPS; i++)
		expected += model_channels(&model[i]);
	CHECK(d.count == expected && d.gone == 0 && d.wrong_gpu == 0 && d.twice == 0);
	for (uint32_t k = 0; k < d.count; k++)
		for (int i = 0; i < APPS; i++) {
			const struct model_app *m = &model[i];
			const uint32_t t = (channels[k].handle - 0x100) / SLOTS, s = (channels[k].handle - 0x100) % SLOTS;

			if (!m->client || m->app.client != channels[k].client)
				continue;
			met++;
			CHECK(t < TSGS && m->channel[t][s]);
			CHECK(channels[k].disables == ((m->wanted || m->caught) && (model_all || m->compute[t])));
		}
	CHECK(met == d.count);
	return true;
}

static void model_forget(struct model_app *m)
{
	m->client = false;
	memset(m->tsg, 0, sizeof(m->tsg));
	memset(m->compute, 0, sizeof(m->compute));
	memset(m->channel, 0, sizeof(m->channel));
}

static bool model_birth(struct model_app *m, uint64_t *seed)
{
	*m = (struct model_app){.app = start(), .device = rng(seed) & 1};
	m->protected = rng(seed) % 8 == 0;
	CHECK(m->app.pid > 0);
	if (m->protected)
		CHECK(order(&m->app, (struct command){.op = NAME, .name = "compositor"}, NULL) == 0);
	CHECK(open_client(&m->app, m->device));
	m->client = true;
	return true;
}

static void model_switch(struct gpuseg_nv_target *t, const int *who, uint32_t n, uint32_t flags)
{
	if (flags & (GPUSEG_NV_WINDOW_OPEN | GPUSEG_NV_WINDOW_CLOSE)) {
		model_window = flags & GPUSEG_NV_WINDOW_OPEN;
		for (int i = 0; i < APPS; i++) {
			model[i].exempt = false;
			if (!model_window)
				model[i].caught = false;
		}
	}
	model_all = flags & GPUSEG_NV_ALL_ENGINES;
	for (uint32_t k = 0; k < n; k++) {
		struct model_app *m = &model[who[k]];

		if (t[k].op == GPUSEG_NV_OP_HOLD)
			m->wanted = true;
		else if (t[k].op == GPUSEG_NV_OP_RELEASE)
			m->wanted = m->caught = false;
		else
			m->exempt = true;
	}
}

static bool step(uint64_t *seed)
{
	struct model_app *m = &model[rng(seed) % APPS];
	const uint32_t t = rng(seed) % TSGS, s = rng(seed) % SLOTS;
	const uint32_t tsg = 0x10 + t, channel = 0x100 + t * SLOTS + s;
	struct gpuseg_nv_target targets[APPS];
	int who[APPS];
	uint32_t n = 0;

	switch (rng(seed) % 20) {
	case 0 ... 2:
		if (!m->client)
			return true;
		CHECK((make(&m->app, 1, tsg, TSG) == 0) == !m->tsg[t]);
		m->tsg[t] = true;
		break;
	case 3 ... 7:
		if (!m->client)
			return true;
		CHECK((make(&m->app, tsg, channel, CHANNEL) == 0) == (m->tsg[t] && !m->channel[t][s]));
		if (m->tsg[t] && !m->channel[t][s]) {
			m->channel[t][s] = true;
			if (model_window && !m->exempt && !m->wanted && !m->caught && !m->protected &&
			    model_channels(m) == 1)
				m->caught = true;
		}
		break;
	case 8 ... 9:
		if (!m->channel[t][s])
			return true;
		if (make(&m->app, channel, 0x1000 + channel, COMPUTE) == 0)
			m->compute[t] = true;
		break;
	case 10:
		if (!m->client)
			return true;
		CHECK((unmake(&m->app, channel) == 0) == m->channel[t][s]);
		m->channel[t][s] = false;
		break;
	case 11:
		if (!m->client || rng(seed) % 3)
			return true;
		CHECK((unmake(&m->app, tsg) == 0) == m->tsg[t]);
		m->tsg[t] = m->compute[t] = false;
		memset(m->channel[t], 0, sizeof(m->channel[t]));
		break;
	case 12:
		if (rng(seed) % 6)
			return true;
		if (rng(seed) & 1) { /* the client, and a new one in the same file or another */
			if (m->client && rng(seed) & 1)
				CHECK(unmake(&m->app, m->app.client) == 0);
			else
				CHECK(order(&m->app, (struct command){.op = CLOSE}, NULL) == 0);
			model_forget(m);
			CHECK(open_client(&m->app, m->device));
			m->client = true;
		} else {
			stop(&m->app);
			model_forget(m);
			CHECK(model_birth(m, seed));
		}
		break;
	case 13:
		if (rng(seed) % 8)
			return true;
		close_control();
		CHECK(open_control());
		for (int i = 0; i < APPS; i++)
			model[i].wanted = model[i].caught = model[i].exempt = false;
		model_window = model_all = false;
		CHECK(ioctl(control, GPUSEG_NV_IOC_PROTECT, &(struct gpuseg_nv_name){"compositor"}) == 0);
		break;
	default:
		for (int i = 0; i < APPS; i++)
			if (rng(seed) % 3 == 0) {
				who[n] = i;
				targets[n++] = (struct gpuseg_nv_target){.pid = model[i].app.pid, .op = 1 + rng(seed) % 2};
			}
		if (n && rng(seed) % 4 == 0) {
			targets[0].op = GPUSEG_NV_OP_EXEMPT;
			CHECK(switch_many(targets, n, GPUSEG_NV_WINDOW_OPEN) == 0);
			model_switch(targets, who, n, GPUSEG_NV_WINDOW_OPEN);
		} else {
			const uint32_t flags = (rng(seed) % 6 == 0 ? GPUSEG_NV_WINDOW_CLOSE : 0) |
					       (rng(seed) % 6 == 0 ? GPUSEG_NV_ALL_ENGINES : 0);

			CHECK(switch_many(targets, n, flags) == 0);
			model_switch(targets, who, n, flags);
		}
		break;
	}
	return model_agrees();
}

static bool should_agree_with_the_model_in_random_sequences(void)
{
	const char *wanted = getenv("GPUSEG_STEPS");
	const int steps = wanted ? atoi(wanted) : STEPS_DEFAULT;
	const uint64_t first = 88172645463325252ull;
	uint64_t seed = first;

	CHECK(ioctl(control, GPUSEG_NV_IOC_PROTECT, &(struct gpuseg_nv_name){"compositor"}) == 0);
	for (int i = 0; i < APPS; i++)
		CHECK(model_birth(&model[i], &seed));
	for (int i = 0; i < steps; i++)
		if (!step(&seed)) {
			printf("    step %d of seed %llu\n", i, (unsigned long long)first);
			return false;
		}
	for (int i = 0; i < APPS; i++)
		stop(&model[i].app);
	close_control();
	CHECK(open_control());
	CHECK(dump().count == 0 && info().processes == 0 && info().clients == 0);
	printf("    %d steps\n", steps);
	return true;
}

static bool should_leave_nothing_behind_after_a_storm(void)
{
	struct app apps[4];
	uint64_t seed = 362436069;
	struct timespec now, began;
	struct fake_inject slow = {.delay_us = 50};
	uint32_t rounds = 0;

	CHECK(ioctl(fake, FAKE_INJECT, &slow) == 0);
	for (int i = 0; i < 4; i++) {
		apps[i] = start();
		CHECK(order(&apps[i], (struct command){.op = STORM, .handle = 77 + i}, NULL) == 0);
	}
	clock_gettime(CLOCK_MONOTONIC, &began);
	do {
		struct gpuseg_nv_target t[4];
		const int victim = rng(&seed) % 64;

		for (int i = 0; i < 4; i++)
			t[i] = (struct gpuseg_nv_target){.pid = apps[i].pid, .op = 1 + rng(&seed) % 2};
		CHECK(switch_many(t, 4, rng(&seed) % 3) == 0 || last.rm_status == 0 || last.rm_calls);
		CHECK(dump().gone == 0 && dump().wrong_gpu == 0 && dump().twice == 0);
		if (victim < 4) {
			stop(&apps[victim]);
			apps[victim] = start();
			CHECK(order(&apps[victim], (struct command){.op = STORM, .handle = rounds + 1}, NULL) == 0);
		}
		if (rng(&seed) % 50 == 0) {
			close_control();
			CHECK(open_control());
		}
		rounds++;
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while (now.tv_sec - began.tv_sec < 4);
	for (int i = 0; i < 4; i++)
		stop(&apps[i]);
	slow.delay_us = 0;
	CHECK(ioctl(fake, FAKE_INJECT, &slow) == 0);
	CHECK(switch_many(NULL, 0, 0) == 0);
	CHECK(dump().count == 0 && dump().gone == 0 && info().processes == 0);
	printf("    %u switches against 4 processes\n", rounds);
	return true;
}

/* --- the guest --- */

static bool run(const char *name, bool (*test)(void))
{
	const bool ok = test();

	printf("%s %s\n", ok ? "ok  " : "FAIL", name);
	fflush(stdout);
	passed += ok;
	failed += !ok;
	inject(0, 0, 0, 0);
	return ok;
}

static bool kernel_log_is_clean(void)
{
	static const char *const bad[] = {"WARNING:", "BUG:", "KASAN:", "INFO: possible", "Oops", "leaked",
					  "refcount", "INFO: task"};
	static char log[1 << 20];
	const int n = klogctl(3, log, sizeof(log) - 1);
	bool clean = true;

	log[n > 0 ? n : 0] = 0;
	for (char *line = strtok(log, "\n"); line; line = strtok(NULL, "\n")) {
		for (size_t i = 0; i < ARRAY(bad); i++)
			if (strstr(line, bad[i])) {
				printf("    %s\n", line);
				clean = false;
			}
	}
	return clean;
}

static bool should_unload_with_a_clean_kernel_log(void)
{
	close(fake);
	close_control();
	CHECK(syscall(SYS_delete_module, "gpuseg_nv_test", 0) == 0);
	CHECK(access("/dev/gpuseg-nv", F_OK) != 0);
	CHECK(kernel_log_is_clean());
	return true;
}

#define RUN(test) run(#test, test)

int main(void)
{
	int fd;

	setvbuf(stdout, NULL, _IOLBF, 0);
	mkdir("/proc", 0755);
	mkdir("/dev", 0755);
	mount("proc", "/proc", "proc", 0, NULL);
	mount("devtmpfs", "/dev", "devtmpfs", 0, NULL);
	fd = open("/dev/console", O_RDWR);
	if (fd >= 0) {
		dup2(fd, 0);
		dup2(fd, 1);
		dup2(fd, 2);
	}
	fd = open("/gpuseg_nv_test.ko", O_RDONLY | O_CLOEXEC);
	if (fd < 0 || syscall(SYS_finit_module, fd, "", 0)) {
		printf("FAIL the module cannot be loaded: %s\n0 passed, 1 failed, 0 skipped\n", strerror(errno));
		reboot(RB_POWER_OFF);
	}
	fake = open("/dev/fake-nvidiactl", O_RDWR | O_CLOEXEC);
	RUN(should_admit_only_administrators);
	if (!open_control())
		printf("FAIL /dev/gpuseg-nv: %s\n", strerror(errno));
	RUN(should_admit_one_controller_at_a_time);
	RUN(should_refuse_what_it_does_not_understand);
	RUN(should_know_a_process_by_its_start_time);
	RUN(should_take_compute_channels_off_and_bring_them_back);
	RUN(should_switch_many_processes_in_few_calls_and_hold_before_it_releases);
	RUN(should_never_mix_gpus_in_a_call);
	RUN(should_start_held_what_a_held_process_makes);
	RUN(should_catch_new_processes_while_a_window_is_open);
	RUN(should_release_everything_when_the_controller_is_killed);
	RUN(should_hold_until_the_last_descriptor_of_the_controller_is_closed);
	RUN(should_release_everything_when_the_watchdog_lapses);
	RUN(should_forget_a_process_that_is_killed_while_held);
	RUN(should_release_what_a_child_keeps_open_after_its_parent_died);
	RUN(should_know_what_became_of_each_channel_when_a_batch_fails);
	RUN(should_survive_a_free_that_fails);
	RUN(should_follow_duplicates);
	RUN(should_agree_with_the_model_in_random_sequences);
	RUN(should_leave_nothing_behind_after_a_storm);
	RUN(should_unload_with_a_clean_kernel_log);
	printf("%d passed, %d failed, %d skipped\n", passed, failed, skipped);
	fflush(stdout);
	sync();
	reboot(RB_POWER_OFF);
	return 0;
}
