/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "latency/mps.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base.h"

#define VARIABLE "CUDA_MPS_PIPE_DIRECTORY"
#define DIRECTORY_DEFAULT "/tmp/nvidia-mps"
#define NOWHERE "/nonexistent/gpuseg-latency"
#define LEAVE_OUT VARIABLE "=/none leaves MPS out"
#define START_LIMIT_NS (60 * NS_PER_S) /* a server may have to be started, or serve another user */
#define LOOK_NS (10 * NS_PER_MS)

enum { ARGUMENTS_MAX = 64 };

/* Says nothing to the daemon: a socket of another type is refused by the kernel, and only if somebody listens. */
static bool listens(const char *directory)
{
	struct sockaddr_un address;
	const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bool lives = false;

	if (fd >= 0 && unix_address(&address, directory, "control") == 0)
		lives = connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0 || errno == EPROTOTYPE;
	if (fd >= 0)
		close(fd);
	return lives;
}

static bool has_reader(const char *path)
{
	const int fd = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

bool mps_find(char *directory, size_t size)
{
	const char *named = getenv(VARIABLE);
	char path[4096];
	struct stat file;

	snprintf(directory, size, "%s", named && *named ? named : DIRECTORY_DEFAULT);
	snprintf(path, sizeof(path), "%s/control", directory);
	if (stat(path, &file) != 0)
		return false;
	return S_ISFIFO(file.st_mode) ? has_reader(path) : S_ISSOCK(file.st_mode) && listens(directory);
}

static void set_percent(int percent)
{
	char text[16];

	snprintf(text, sizeof(text), "%d", percent);
	setenv("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", text, 1);
}

void mps_limit(int percent)
{
	set_percent(percent);
	setenv("CUDA_MPS_CLIENT_PRIORITY", "1", 1); /* below normal; servers that do not know it ignore it */
}

void mps_avoid(void)
{
	setenv(VARIABLE, NOWHERE, 1);
}

static pid_t start(const char *directory, int fd, int reserve, char **argv)
{
	const pid_t parent = getpid(), pid = fork();
	char descriptor[16], *arguments[ARGUMENTS_MAX] = {argv[0], MPS_ARGUMENT, descriptor};

	if (pid != 0)
		return pid;
	/* SIGTERM: a client of MPS that is killed while it has work can take the server with it. */
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != parent)
		_exit(EXIT_FAILURE);
	snprintf(descriptor, sizeof(descriptor), "%d", fd);
	for (int i = 1, n = 3; argv[i] && n < ARGUMENTS_MAX - 1; i++)
		arguments[n++] = argv[i];
	setenv(VARIABLE, directory, 1);
	if (reserve)
		set_percent(reserve);
	fcntl(fd, F_SETFD, 0);
	execv("/proc/self/exe", arguments);
	_exit(127);
}

/* 0, or -1 after one line. */
static int wait_for(pid_t pid, const struct mps_page *page, const char *directory)
{
	const int64_t limit_ns = now_ns() + START_LIMIT_NS;
	bool late = false, told = false;
	pid_t ended;
	int status = 0;

	while ((ended = waitpid(pid, &status, WNOHANG)) == 0) {
		late = late || (!__atomic_load_n(&page->started, __ATOMIC_ACQUIRE) && now_ns() > limit_ns);
		if (late)
			kill(pid, SIGKILL); /* it has no context yet */
		else if (stopping && !told)
			kill(pid, SIGTERM);
		told = stopping;
		sleep_until(now_ns() + LOOK_NS, NULL);
	}
	if (late)
		message("MPS in %s gave no context within 60 s; " LEAVE_OUT, directory);
	else if (ended != pid)
		message("MPS in %s: how the process ended is not known: %s", directory, strerror(errno));
	else if (WIFSIGNALED(status))
		message("MPS in %s: the process ended by signal %d; " LEAVE_OUT, directory, WTERMSIG(status));
	else if (WEXITSTATUS(status) > EXIT_FAILURE) /* after a failure it has said why */
		message("MPS in %s: the process ended with status %d", directory, WEXITSTATUS(status));
	return !late && ended == pid && WIFEXITED(status) && WEXITSTATUS(status) == EXIT_SUCCESS ? 0 : -1;
}

int mps_run(const char *directory, const struct mps_page *order, char **argv, struct measurement *m)
{
	const int fd = memfd_create("gpuseg-latency-mps", MFD_CLOEXEC);
	struct mps_page *page = MAP_FAILED;
	pid_t pid = -1;
	int rc = -1;

	if (fd >= 0 && ftruncate(fd, sizeof(*page)) == 0)
		page = mmap(NULL, sizeof(*page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (page != MAP_FAILED) {
		*page = *order;
		pid = start(directory, fd, order->reserve, argv);
	}
	if (pid < 0)
		message("MPS: no process: %s", strerror(errno));
	else
		rc = wait_for(pid, page, directory);
	if (pid > 0 && __atomic_load_n(&page->done, __ATOMIC_ACQUIRE)) /* pairs with main.c: measure_in_mps() */
		*m = page->measurement;
	if (page != MAP_FAILED)
		munmap(page, sizeof(*page));
	if (fd >= 0)
		close(fd);
	return rc;
}

struct mps_page *mps_take(const char *descriptor)
{
	struct mps_page *page =
		mmap(NULL, sizeof(*page), PROT_READ | PROT_WRITE, MAP_SHARED, (int)strtol(descriptor, NULL, 10), 0);

	if (page == MAP_FAILED)
		message(MPS_ARGUMENT " %s: %s", descriptor, strerror(errno));
	return page == MAP_FAILED ? NULL : page;
}

int mps_check(struct gpu *gpu, const struct mps_page *page)
{
	int shared = 1;

	if (gpu->index != page->gpu_index) {
		message("MPS shows the GPUs in another order (GPU %d where %d was asked for); " LEAVE_OUT, gpu->index,
			page->gpu_index);
		return -1;
	}
	/* Drivers that do not know the attribute fail; what they do cannot be asked. */
	if (gpu->cuda.cuDeviceGetAttribute(&shared, CU_DEVICE_ATTRIBUTE_MPS_ENABLED, gpu->device) == CUDA_SUCCESS &&
	    !shared) {
		message("MPS is there, but the driver makes contexts outside of it; " LEAVE_OUT);
		return -1;
	}
	return 0;
}
