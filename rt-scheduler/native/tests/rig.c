/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "rig.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base.h"
#include "gpuseg_sim.h"

#define LIMIT_NS (30 * NS_PER_S) /* of a bounded wait: on a busy machine a process may not run for seconds */

static char directory[64];
static pid_t owner;

__attribute__((noreturn)) static void give_up(const char *what)
{
	fprintf(stderr, "rig: %s: %s\n", what, strerror(errno));
	exit(EXIT_FAILURE);
}

static void remove_directory(void)
{
	struct dirent *entry;
	DIR *dir;

	if (getpid() != owner || !(dir = opendir(directory)))
		return;
	while ((entry = readdir(dir)))
		if (entry->d_name[0] != '.')
			unlinkat(dirfd(dir), entry->d_name, 0);
	closedir(dir);
	rmdir(directory);
}

const char *rig_directory(void)
{
	if (directory[0] == '\0') {
		snprintf(directory, sizeof(directory), "/tmp/gpuseg-test-XXXXXX");
		if (!mkdtemp(directory))
			give_up("mkdtemp");
		owner = getpid();
		atexit(remove_directory);
	}
	return directory;
}

const char *rig_path(const char *name)
{
	static char paths[8][128];
	static unsigned next;
	char *path = paths[next++ % ARRAY_LENGTH(paths)];

	snprintf(path, sizeof(paths[0]), "%s/%s", rig_directory(), name);
	return path;
}

pid_t rig_start(const char *program, const char *const arguments[], int *output)
{
	const char *build = getenv("GPUSEG_TEST_BUILD");
	char path[PATH_MAX];
	char *argv[32] = {path};
	int pipefd[2] = {-1, -1};
	pid_t pid;

	snprintf(path, sizeof(path), "%s/%s", build ? build : "build", program);
	for (size_t i = 0; arguments[i]; i++)
		argv[i + 1] = (char *)(uintptr_t)arguments[i];
	if (output && pipe2(pipefd, O_CLOEXEC) != 0)
		give_up("pipe");
	pid = fork();
	if (pid < 0)
		give_up("fork");
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (output) {
			dup2(pipefd[1], STDOUT_FILENO);
			dup2(pipefd[1], STDERR_FILENO);
		}
		execv(path, argv);
		perror(path);
		_exit(127);
	}
	if (output) {
		close(pipefd[1]);
		*output = pipefd[0];
	}
	return pid;
}

int rig_wait(pid_t pid)
{
	int status;

	for (const int64_t limit_ns = now_ns() + LIMIT_NS; now_ns() < limit_ns;
	     sleep_until(now_ns() + NS_PER_MS, NULL)) {
		const pid_t rc = waitpid(pid, &status, WNOHANG);

		if (rc < 0)
			give_up("waitpid");
		if (rc == pid)
			return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	}
	errno = ETIMEDOUT;
	give_up("a program did not end");
}

void rig_read_all(int fd, char *buffer, size_t size)
{
	size_t length = 0;
	ssize_t got;

	while (length + 1 < size && (got = read(fd, buffer + length, size - 1 - length)) > 0)
		length += (size_t)got;
	buffer[length] = '\0';
	close(fd);
}

int rig_run(const char *program, const char *const arguments[], char *buffer, size_t size)
{
	char unused[4096];
	int output;
	const pid_t pid = rig_start(program, arguments, &output);

	rig_read_all(output, buffer ? buffer : unused, buffer ? size : sizeof(unused));
	return rig_wait(pid);
}

pid_t rig_vgpu(const char *const more[])
{
	const char *arguments[24] = {"--dir", rig_directory(), "--log", rig_path("spans"), "--ready-fd"};
	char fd_text[16], parent[16], ready[8] = "";
	size_t n = 5;
	int pipefd[2];
	pid_t pid;

	if (pipe(pipefd) != 0)
		give_up("pipe");
	snprintf(fd_text, sizeof(fd_text), "%d", pipefd[1]);
	snprintf(parent, sizeof(parent), "%d", getpid());
	arguments[n++] = fd_text;
	arguments[n++] = "--parent";
	arguments[n++] = parent;
	for (size_t i = 0; more && more[i]; i++)
		arguments[n++] = more[i];
	fcntl(pipefd[0], F_SETFD, FD_CLOEXEC);
	pid = rig_start("gpuseg-vgpu", arguments, NULL);
	close(pipefd[1]);
	if (read(pipefd[0], ready, sizeof(ready)) != 6 || strcmp(ready, "ready\n") != 0) {
		errno = EPROTO;
		give_up("the virtual GPU did not get ready");
	}
	close(pipefd[0]);
	return pid;
}

size_t rig_stop_vgpu(pid_t vgpu, struct gpuseg_sim_span spans[], size_t capacity)
{
	ssize_t length;
	int fd, status;

	kill(vgpu, SIGTERM);
	status = rig_wait(vgpu);
	if (status != 0) {
		fprintf(stderr, "rig: the virtual GPU ended with %d\n", status);
		exit(EXIT_FAILURE);
	}
	fd = open(rig_path("spans"), O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		give_up("log");
	length = read(fd, spans, capacity * sizeof(spans[0]));
	close(fd);
	if (length < 0 || length % (ssize_t)sizeof(spans[0]) != 0)
		give_up("log");
	return (size_t)length / sizeof(spans[0]);
}

__attribute__((noreturn)) static void be_application(const int64_t durations_ns[], size_t count, int events, int orders,
						     bool held)
{
	gpuseg_sim *gpu = NULL;
	uint64_t fence = 0;
	int rc = 0;
	char c;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (held && read(orders, &c, 1) != 1)
		_exit(1);
	rc = gpuseg_sim_open(rig_directory(), &gpu);
	for (size_t i = 0; i < count && rc == 0; i++)
		rc = gpuseg_sim_submit(gpu, durations_ns[i], &fence);
	c = rc == 0 ? 's' : 'e';
	if (write(events, &c, 1) != 1)
		_exit(1);
	if (rc == 0)
		rc = gpuseg_sim_wait(gpu, fence, GPUSEG_SIM_BLOCK, -1);
	c = rc == 0 ? 'd' : 'e';
	if (write(events, &c, 1) != 1)
		_exit(1);
	for (;;)
		pause();
}

static struct rig_application start_application(const int64_t durations_ns[], size_t count, bool held)
{
	int events[2], orders[2];
	struct rig_application a;

	rig_directory();
	if (pipe2(events, O_CLOEXEC) != 0 || pipe2(orders, O_CLOEXEC) != 0)
		give_up("pipe");
	a.pid = fork();
	if (a.pid < 0)
		give_up("fork");
	if (a.pid == 0)
		be_application(durations_ns, count, events[1], orders[0], held);
	close(events[1]);
	close(orders[0]);
	a.events = events[0];
	a.orders = orders[1];
	return a;
}

struct rig_application rig_application(const int64_t durations_ns[], size_t count)
{
	const struct rig_application a = start_application(durations_ns, count, false);

	if (rig_event(&a) != 's') {
		errno = EPROTO;
		give_up("an application could not submit");
	}
	return a;
}

struct rig_application rig_held_application(const int64_t durations_ns[], size_t count)
{
	return start_application(durations_ns, count, true);
}

void rig_let_go(const struct rig_application *application)
{
	if (write(application->orders, "g", 1) != 1)
		give_up("order");
}

char rig_event(const struct rig_application *application)
{
	struct pollfd p = {.fd = application->events, .events = POLLIN};
	char c;

	return poll(&p, 1, (int)(LIMIT_NS / NS_PER_MS)) == 1 && read(application->events, &c, 1) == 1 ? c : 't';
}

int rig_connect(const char *socket_name)
{
	const struct timeval limit = {.tv_sec = LIMIT_NS / NS_PER_S};
	struct sockaddr_un address;
	const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	unix_address(&address, rig_directory(), socket_name);
	if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)) != 0 ||
	    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)) != 0)
		give_up(socket_name);
	return fd;
}

ssize_t rig_receive(int fd, void *packet, size_t size)
{
	ssize_t got;

	do
		got = recv(fd, packet, size, 0);
	while (got < 0 && errno == EINTR);
	return got;
}

struct gpuseg_sim_msg rig_message(uint32_t op)
{
	return (struct gpuseg_sim_msg){.magic = GPUSEG_SIM_MAGIC, .version = GPUSEG_ABI_VERSION, .op = op};
}

struct gpuseg_sim_msg rig_operate(int control, uint32_t op, const pid_t pids[], uint32_t count, int64_t arg_ns)
{
	struct gpuseg_sim_msg m = rig_message(op);

	m.count = count;
	m.arg_ns = arg_ns;
	for (uint32_t i = 0; i < count; i++)
		m.pids[i] = pids[i];
	if (send(control, &m, sizeof(m), MSG_NOSIGNAL) != sizeof(m) || rig_receive(control, &m, sizeof(m)) != sizeof(m))
		give_up("operation");
	return m;
}

struct gpuseg_sim_info rig_info(int control)
{
	const struct gpuseg_sim_msg m = rig_message(GPUSEG_SIM_INFO);
	struct {
		struct gpuseg_sim_msg msg;
		struct gpuseg_sim_info info;
	} reply;

	if (send(control, &m, sizeof(m), MSG_NOSIGNAL) != sizeof(m) ||
	    rig_receive(control, &reply, sizeof(reply)) != sizeof(reply))
		give_up("info");
	return reply.info;
}

bool rig_until(bool (*condition)(void *argument), void *argument)
{
	for (const int64_t limit_ns = now_ns() + LIMIT_NS; now_ns() < limit_ns; sleep_until(now_ns() + NS_PER_MS, NULL))
		if (condition(argument))
			return true;
	return false;
}
