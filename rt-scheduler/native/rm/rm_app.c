/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpuseg-rm-app - a process whose ioctls look like those of a CUDA program: objects, handles and their order as libcuda
 * of 580.159.04 used them on an H200, then kernels back to back, each result checked. Runs with libgpuseg-rm-fake.so
 * preloaded.
 *
 * usage: gpuseg-rm-app PAGE KERNEL_MS [again | two | leaderless | gpus | fork | child | exec CHILDPAGE | client]
 *   PAGE    mapped file: pid, ready, stop, kernels, wrong, last_ns, longest_ns (struct page)
 *   again   creates a second context (another client, other channels) when `again` in PAGE becomes 1
 *   two     the same with the same client, as a second context of one CUDA process
 *   leaderless  as two, and the main thread ends before: the process goes on without it
 *   gpus    the same on the next GPU
 *   fork    works in a child; the parent waits
 *   child   works itself; a child that is forked later holds the descriptors and does nothing
 *   exec    works itself; a child that is forked later executes this program again, on CHILDPAGE
 *   client  opens the driver and creates no channels, as a process whose work another process does (possibly MPS on
 *           older GPUs)
 *
 * GPUSEG_RM_PAUSE_MS=N: so long after the device was opened the context is made, as a CUDA program reads its libraries
 * and initializes meanwhile. CUDA_VISIBLE_DEVICES=N: on GPU N. CUDA_MPS_PIPE_DIRECTORY: see rm_context.h. A real MPS
 * server has no kernels of its own; here they show whether the server is enabled.
 */
#define _GNU_SOURCE
#include "gpuseg_rm.h"
#include "rm_context.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct page {
	int32_t pid;
	uint32_t ready;
	uint32_t stop;
	uint32_t again;
	uint64_t kernels;
	uint64_t wrong;
	int64_t last_ns;
	int64_t longest_ns;
	int64_t first_ns;
	uint64_t kernels2;
	int32_t child;
};

static int64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static volatile struct page *shared;
static double kernel_ms;
static const char *mode = "";
static struct context first;

static void *second_context(void *arg)
{
	struct context c;
	int fd;

	(void)arg;
	while (!shared->again && !shared->stop)
		usleep(1000);
	if (strcmp(mode, "leaderless") == 0)
		usleep(500000); /* the main thread ends */
	if (strcmp(mode, "again") == 0) {
		fd = open("/dev/nvidiactl", O_RDWR | O_CLOEXEC);
		if (fd < 0)
			exit(1);
		c = make_context(fd, visible_gpu());
	} else {
		c = add_context(first.fd, first.client, SECOND_CONTEXT, visible_gpu() + (strcmp(mode, "gpus") == 0));
	}
	while (!shared->stop) {
		if (kernel(&c, kernel_ms, shared->kernels2 + 7) != 1)
			exit(1);
		shared->kernels2 = shared->kernels2 + 1;
	}
	return NULL;
}

int main(int argc, char **argv)
{
	const pid_t parent = getpid();
	pthread_t second;
	struct context c;
	pid_t child;
	int fd;

	if (argc < 3 || (argc > 3 && strcmp(argv[3], "exec") == 0 && argc < 5)) {
		fprintf(stderr, "usage: gpuseg-rm-app PAGE KERNEL_MS [again | two | leaderless | gpus | fork | child | "
				"exec PAGE | client]\n");
		return 2;
	}
	kernel_ms = atof(argv[2]);
	mode = argc > 3 ? argv[3] : "";
	fd = open(argv[1], O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	if (fd < 0 || ftruncate(fd, 4096) != 0) {
		perror(argv[1]);
		return 1;
	}
	shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (shared == MAP_FAILED)
		return 1;
	if (strcmp(mode, "fork") == 0) {
		child = fork();
		if (child != 0) {
			int status = 0;

			waitpid(child, &status, 0);
			return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
		}
	}
	fd = open("/dev/nvidiactl", O_RDWR | O_CLOEXEC);
	if (fd < 0) {
		perror("/dev/nvidiactl");
		return 1;
	}
	if (strcmp(mode, "client") == 0) {
		allocate(fd, 0, 0, 0, GPUSEG_RM_CLASS_CLIENT, 0);
		shared->pid = getpid();
		__atomic_store_n(&shared->ready, 1, __ATOMIC_RELEASE);
		while (!shared->stop)
			usleep(1000);
		return 0;
	}
	if (getenv("GPUSEG_RM_PAUSE_MS"))
		usleep((useconds_t)(1000 * atoi(getenv("GPUSEG_RM_PAUSE_MS"))));
	first = make_context(fd, visible_gpu());
	c = first;
	if (strcmp(mode, "child") == 0 || strcmp(mode, "exec") == 0) {
		child = fork();
		if (child == 0 && mode[0] == 'c') {
			while (!shared->stop && getppid() == parent)
				usleep(1000);
			_exit(0);
		}
		if (child == 0) {
			execl("/proc/self/exe", argv[0], argv[4], argv[2], (char *)NULL);
			_exit(127);
		}
		shared->child = child;
	}
	if (strcmp(mode, "again") == 0 || strcmp(mode, "two") == 0 || strcmp(mode, "leaderless") == 0 ||
	    strcmp(mode, "gpus") == 0)
		pthread_create(&second, NULL, second_context, NULL);
	shared->pid = getpid();
	shared->first_ns = now_ns();
	__atomic_store_n(&shared->ready, 1, __ATOMIC_RELEASE);
	while (!shared->stop) {
		int64_t begin = now_ns();
		int right = kernel(&c, kernel_ms, shared->kernels + 1);
		int64_t end = now_ns();

		if (right < 0)
			return 1;
		shared->wrong = shared->wrong + (right == 0);
		shared->last_ns = end;
		if (end - begin > shared->longest_ns)
			shared->longest_ns = end - begin;
		shared->kernels = shared->kernels + 1;
		if (strcmp(mode, "leaderless") == 0 && shared->again)
			pthread_exit(NULL);
	}
	return shared->wrong ? 1 : 0;
}
