// SPDX-License-Identifier: GPL-2.0-only
/*
 * /init of the machine in which the scheduler's daemon works with the patched driver: its mechanism amd opens the real
 * /dev/gpuseg-kfd, below which the driver's own queue manager moves queues of real processes on simulated hardware
 * (fake_amdgpu.c). For each kind of GPU an application runs before the daemon comes; then a task with a real-time priority
 * opens segments, and the application's queues must be disabled while one is open, and enabled afterwards.
 *
 * What is not the driver's: /dev/kfd and /sys/class/kfd. The application opens /dev/fake-kfd, and what KFD would show in /sys
 * is written below /amd, where the daemon is told to look. No AMD hardware; nothing here is a measurement.
 *
 * Prints "ok NAME" or "not ok NAME: why", then "guest: P passed, F failed", and ends the machine.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "fake_amdgpu.h"

#define RUN_DIR "/run/gpuseg"
#define SETTINGS "/settings.yaml"
#define KFD "/amd/sys/class/kfd/kfd"
/* Of a bounded wait: an emulated machine on a busy host takes minutes to start a JVM. */
#define LIMIT_S 300

static int passed, failed;
static const char *kind_name;
static bool test_failed;
static int fake_fd = -1;

static const struct kind {
	const char *name;
	uint32_t gpu;
	int gfx;
	int policy;	/* as amdgpu.sched_policy shows it */
} kinds[] = {
	{ "no_hws", FAKE_NO_HWS_GFX9, 90010, 2 },
	{ "hws", FAKE_HWS_GFX9, 90010, 0 },
	{ "mes", FAKE_MES_GFX11, 110000, 0 },
};

static void verdict(const char *name, bool good, const char *why)
{
	if (good) {
		passed++;
		printf("ok %s: %s\n", kind_name, name);
	} else {
		failed++;
		test_failed = true;
		printf("not ok %s: %s: %s\n", kind_name, name, why);
	}
	fflush(stdout);
}

static double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

static void sleep_ms(int ms)
{
	struct timespec t = { ms / 1000, (ms % 1000) * 1000000L };

	while (nanosleep(&t, &t) && errno == EINTR)
		;
}

static void write_file(const char *text, const char *format, ...)
{
	char path[256], *slash;
	va_list args;
	int fd;

	va_start(args, format);
	vsnprintf(path, sizeof(path), format, args);
	va_end(args);
	for (slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = 0;
		mkdir(path, 0755);
		*slash = '/';
	}
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text))
		printf("# %s: errno %d\n", path, errno);
	if (fd >= 0)
		close(fd);
}

/* What KFD would show of one GPU. */
static void show_gpu(const struct kind *kind)
{
	char text[96];

	write_file("0\n", KFD "/topology/nodes/0/gpu_id");
	snprintf(text, sizeof(text), "%u\n", FAKE_GPU_ID(kind->gpu));
	write_file(text, KFD "/topology/nodes/1/gpu_id");
	snprintf(text, sizeof(text), "gfx_target_version %d\n", kind->gfx);
	write_file(text, KFD "/topology/nodes/1/properties");
	snprintf(text, sizeof(text), "%d\n", kind->policy);
	write_file(text, "/amd/sys/module/amdgpu/parameters/sched_policy");
}

/* ---------------------------------------------------------------------------------------- application */

static volatile sig_atomic_t wanted = 1;

static void want_another(int number)
{
	(void)number;
	wanted++;
}

/* A process that works on the GPU without end; it makes another queue on SIGUSR1. */
static pid_t start_application(const struct kind *kind)
{
	static uint64_t wptr = 0x5157505452u;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid)
		return pid;
	signal(SIGUSR1, want_another);
	close(fake_fd);
	fake_fd = open("/dev/fake-kfd", O_RDWR | O_CLOEXEC);
	for (int made = 0;;) {
		struct fake_queue queue = { .gpu = kind->gpu, .type = FAKE_COMPUTE, .percent = 100, .wptr = (uintptr_t)&wptr };
		char text[16];

		if (made == wanted) {
			sleep_ms(20);
			continue;
		}
		if (ioctl(fake_fd, FAKE_CREATE, &queue)) {
			printf("# application: CREATE errno %d\n", errno);
			_exit(1);
		}
		snprintf(text, sizeof(text), "%u\n", FAKE_GPU_ID(kind->gpu));
		write_file("0\n", KFD "/proc/%d/queues/%u/type", getpid(), queue.queue_id);
		write_file(text, KFD "/proc/%d/queues/%u/gpuid", getpid(), queue.queue_id);
		made++;
	}
}

struct view {
	uint32_t queues, on_hardware, held, rule_breaks;
};

/* The application's queues as the driver and the hardware know them. */
static struct view look(const struct kind *kind, pid_t pid)
{
	struct fake_queue_state queues[FAKE_MAX_STATE];
	struct fake_state state = { .gpu = kind->gpu, .n_queues = FAKE_MAX_STATE, .queues = (uintptr_t)queues };
	struct view view = { 0 };

	if (ioctl(fake_fd, FAKE_STATE, &state)) {
		printf("# STATE: errno %d\n", errno);
		view.rule_breaks = 1;
		return view;
	}
	view.rule_breaks = state.rule_breaks;
	for (uint32_t i = 0; i < state.n_queues && i < FAKE_MAX_STATE; i++) {
		if (queues[i].pid != pid)
			continue;
		view.queues++;
		view.on_hardware += queues[i].on_hardware;
		view.held += queues[i].is_held;
	}
	return view;
}

/* True as soon as the application has that many queues, all off the hardware and held, or all on it. */
static bool becomes(const struct kind *kind, pid_t pid, uint32_t queues, bool off)
{
	double until = now_s() + LIMIT_S;
	struct view view;

	do {
		view = look(kind, pid);
		if (view.queues == queues && view.on_hardware == (off ? 0 : queues) && view.held == (off ? queues : 0))
			return true;
		sleep_ms(2);
	} while (now_s() < until);
	printf("# %u queues, %u on the hardware, %u held\n", view.queues, view.on_hardware, view.held);
	return false;
}

/* ------------------------------------------------------------------------------------ the other programs */

/* Runs a program; its standard output goes into file @out if there is one. */
static pid_t start(char *const argv[], const char *out)
{
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid)
		return pid;
	if (out) {
		int fd = open(out, O_WRONLY | O_CREAT | O_TRUNC, 0644);

		dup2(fd, 1);
		dup2(fd, 2);
	}
	execv(argv[0], argv);
	printf("# %s: errno %d\n", argv[0], errno);
	_exit(127);
}

static bool alive(pid_t pid)
{
	return waitpid(pid, NULL, WNOHANG) == 0;
}

static void end(pid_t pid)
{
	if (pid > 0) {
		kill(pid, SIGCONT);
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
	}
}

/* A process by its name, which may be cut. */
static pid_t find(const char *name)
{
	char path[32], text[32];

	for (pid_t pid = 2; pid < 32768; pid++) {
		FILE *file;
		bool same;

		snprintf(path, sizeof(path), "/proc/%d/comm", pid);
		file = fopen(path, "r");
		if (!file)
			continue;
		same = fgets(text, sizeof(text), file) && strncmp(text, name, strcspn(text, "\n")) == 0;
		fclose(file);
		if (same)
			return pid;
	}
	return 0;
}

static void show(const char *path)
{
	char line[512];
	FILE *file = fopen(path, "r");

	while (file && fgets(line, sizeof(line), file))
		printf("# %s: %s", path, line);
	if (file)
		fclose(file);
}

/* /java.args: one argument a line, as far as the command. */
static pid_t start_daemon(void)
{
	static char text[16384];
	static char *argv[256];
	double until = now_s() + LIMIT_S;
	int fd = open("/java.args", O_RDONLY | O_CLOEXEC), n = 0;
	ssize_t size = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);
	FILE *settings;
	pid_t pid;
	char *at;

	if (fd >= 0)
		close(fd);
	text[size > 0 ? size : 0] = 0;
	settings = fopen(SETTINGS, "w");
	if (!settings || fputs("warm-up: false\n", settings) < 0 || fclose(settings)) {
		printf("# %s cannot be written: %m\n", SETTINGS);
		return -1;
	}
	for (at = strtok(text, "\n"); at && n < 240; at = strtok(NULL, "\n"))
		argv[n++] = at;
	argv[n++] = "run";
	argv[n++] = "--dir";
	argv[n++] = RUN_DIR;
	argv[n++] = "--mechanism";
	argv[n++] = "amd";
	argv[n++] = "--policy";
	argv[n++] = "fp";
	argv[n++] = "--config";
	argv[n++] = SETTINGS;
	argv[n] = NULL;
	unlink(RUN_DIR "/gpuseg.sock");
	pid = start(argv, "/daemon.out");
	while (access(RUN_DIR "/gpuseg.sock", F_OK) && now_s() < until && alive(pid))
		sleep_ms(20);
	if (access(RUN_DIR "/gpuseg.sock", F_OK)) {
		show("/daemon.out");
		return -1;
	}
	return pid;
}

/* A task that opens segments of 3 s, one after the other, with pauses too short for anybody to see. */
static pid_t start_client(void)
{
	static char *argv[] = { "/task_client", RUN_DIR, "open:rt:50:0:0:0:0", "segments:rt:1000:3000000", NULL };

	return start(argv, "/client.out");
}

/*
 * Whether the client's segments disable the application's queues. On a slow host the daemon may answer a client's request,
 * the first or that after a stop, later than the library waits; that client has ended, and another is started.
 */
static bool becomes_held(const struct kind *kind, pid_t application, uint32_t queues, pid_t *client)
{
	double until = now_s() + LIMIT_S;
	struct view view;

	do {
		view = look(kind, application);
		if (view.queues == queues && view.on_hardware == 0 && view.held == queues)
			return true;
		if (!alive(*client)) {
			show("/client.out");
			*client = start_client();
		}
		sleep_ms(2);
	} while (now_s() < until);
	printf("# %u queues, %u on the hardware, %u held\n", view.queues, view.on_hardware, view.held);
	return false;
}

/* --------------------------------------------------------------------------------------------- the test */

static void work_with(const struct kind *kind)
{
	pid_t application, daemon, client = -1, watchdog;
	double began = now_s();

	kind_name = kind->name;
	show_gpu(kind);
	application = start_application(kind);
	verdict("an application works before the daemon comes", becomes(kind, application, 1, false), "no queue on the hardware");
	daemon = start_daemon();
	verdict("the daemon starts with mechanism amd", daemon > 0, "no socket");
	if (daemon <= 0)
		goto out;
	printf("# %s: the daemon answers after %.1f s\n", kind_name, now_s() - began);
	verdict("it leaves the application alone", becomes(kind, application, 1, false), "its queue is off");
	client = start_client();
	verdict("the application is off the hardware while a real-time segment is open", becomes_held(kind, application, 1, &client),
		"it still runs");
	kill(application, SIGUSR1);
	verdict("a queue that it makes meanwhile starts off", becomes(kind, application, 2, true), "it is on the hardware");
	end(client);
	client = -1;
	verdict("it is enabled when the segment's task dies", becomes(kind, application, 2, false), "its queues stay disabled");

	client = start_client();
	verdict("it is disabled again by the next task", becomes_held(kind, application, 2, &client), "it still runs");
	kill(daemon, SIGSTOP);
	verdict("it is enabled when the whole daemon is stopped (SIGSTOP)", becomes(kind, application, 2, false), "its queues stay disabled");
	kill(daemon, SIGCONT);
	verdict("it is disabled when the daemon continues", becomes_held(kind, application, 2, &client), "it still runs");
	/* Only the kernel is left then. */
	watchdog = find("gpuseg-watchdog");
	verdict("the daemon has a watchdog process", watchdog > 0, "none in /proc");
	if (watchdog > 0)
		kill(watchdog, SIGSTOP);
	kill(daemon, SIGSTOP);
	verdict("it is enabled when the watchdog process is stopped too: the kernel's watchdog", becomes(kind, application, 2, false), "its queues stay disabled");
	if (watchdog > 0)
		kill(watchdog, SIGCONT);
	kill(daemon, SIGCONT);
	verdict("it is disabled when both continue", becomes_held(kind, application, 2, &client), "it still runs");
	end(daemon);
	daemon = -1;
	verdict("it is enabled when the daemon is killed", becomes(kind, application, 2, false), "its queues stay disabled");
out:
	if (test_failed) {
		show("/daemon.out");
		show("/client.out");
	}
	end(client);
	end(daemon);
	end(application);
	verdict("nothing happened that may not happen to hardware", look(kind, 0).rule_breaks == 0, "see the kernel's log");
	test_failed = false;
}

static void no_complaints_of_the_kernel(void)
{
	static const char *const bad[] = { "BUG:", "WARNING:", "KASAN", "possible circular", "INFO: task", "Oops", "allocations are left", "fake-kfd:" };
	static char line[8192], found[200];
	int fd = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	ssize_t n;

	kind_name = "all";
	while ((n = read(fd, line, sizeof(line) - 1)) > 0 || (n < 0 && errno == EPIPE)) {
		if (n < 0)
			continue;
		line[n] = 0;
		for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
			if (strstr(line, bad[i]))
				snprintf(found, sizeof(found), "%.190s", line);
	}
	verdict("no complaints of the kernel", fd >= 0 && !found[0], found);
}

static bool load_module(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	bool good = fd >= 0 && syscall(SYS_finit_module, fd, "", 0) == 0;

	if (fd >= 0)
		close(fd);
	return good;
}

/* Waits for the process that was just killed, and for the watchdog, which ends after it. 0, or errno after 30 s. */
static int unload_module(void)
{
	int error;

	for (double end_s = now_s() + 30; ; sleep_ms(100)) {
		error = syscall(SYS_delete_module, "gpuseg_fake", O_NONBLOCK) == 0 ? 0 : errno;
		if ((error != EAGAIN && error != EBUSY) || now_s() > end_s)
			return error;
	}
}

int main(void)
{
	static const char *const mounts[][2] = { { "proc", "/proc" }, { "sysfs", "/sys" }, { "devtmpfs", "/dev" }, { "tmpfs", "/tmp" }, { "tmpfs", "/run" } };
	int console, error;

	for (size_t i = 0; i < sizeof(mounts) / sizeof(mounts[0]); i++) {
		mkdir(mounts[i][1], 0755);
		mount(mounts[i][0], mounts[i][1], mounts[i][0], 0, NULL);
	}
	mkdir("/dev/shm", 01777);
	mount("tmpfs", "/dev/shm", "tmpfs", 0, NULL);
	console = open("/dev/console", O_RDWR);
	dup2(console, 0);
	dup2(console, 1);
	dup2(console, 2);
	setvbuf(stdout, NULL, _IOLBF, 0);
	setenv("PATH", "/bin:/usr/bin", 1);
	setenv("HOME", "/tmp", 1);

	kind_name = "all";
	verdict("the module loads", load_module("/gpuseg_fake.ko"), "see the kernel's log");
	fake_fd = open("/dev/fake-kfd", O_RDWR | O_CLOEXEC);
	for (size_t i = 0; fake_fd >= 0 && i < sizeof(kinds) / sizeof(kinds[0]); i++)
		work_with(&kinds[i]);
	close(fake_fd);
	kind_name = "all";
	error = unload_module();
	verdict("the module unloads: no process has the device open", error == 0, strerror(error));
	no_complaints_of_the_kernel();
	printf("guest: %d passed, %d failed\n", passed, failed);
	fflush(stdout);
	sync();
	reboot(RB_AUTOBOOT);
	for (;;)
		pause();
}
