/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program with the library that does what no application should, for `attacks/run`:
 *
 *   client storm DIR SECONDS   connects, marks segments from four threads, disconnects, without a pause; the queue
 *                              rolls meanwhile. Built with ThreadSanitizer: exit status 66 after a data race
 *   client bell DIR SECONDS    makes its doorbell blocking and reads it all the time, while it marks segments
 *
 * Prints how many segments it has begun.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "gpuseg.h"

enum { THREADS = 4, SEGMENTS = 2000, DESCRIPTORS = 64 };

static gpuseg_client *client;
static atomic_long begun;
static time_t until_s;

static bool goes_on(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec < until_s;
}

static void pause_ms(long ms)
{
	nanosleep(&(struct timespec){.tv_nsec = ms * 1000000}, NULL);
}

static gpuseg_task *open_task(const char *name)
{
	struct gpuseg_task_attr attr = GPUSEG_TASK_ATTR_INIT;
	gpuseg_task *task = NULL;

	attr.name = name;
	attr.priority = 1;
	attr.timeout_ns = 1000000;
	return gpuseg_task_open(client, &attr, &task) < 0 ? NULL : task;
}

static void *mark(void *name)
{
	gpuseg_task *task = open_task(name);

	for (int i = 0; task != NULL && i < SEGMENTS && goes_on(); i++) {
		gpuseg_job_release(task, gpuseg_now_ns());
		if (gpuseg_begin_try(task) >= 0) {
			atomic_fetch_add(&begun, 1);
			gpuseg_end(task);
		}
	}
	if (task != NULL)
		gpuseg_task_close(task);
	return NULL;
}

static bool join(const char *dir)
{
	struct gpuseg_connect_attr attr = GPUSEG_CONNECT_ATTR_INIT;

	attr.dir = dir;
	attr.name = "attacker";
	while (gpuseg_connect(&attr, &client) < 0) {
		if (!goes_on())
			return false;
		pause_ms(5);
	}
	return true;
}

static void storm(const char *dir)
{
	static char names[THREADS][8];
	pthread_t threads[THREADS];

	while (goes_on() && join(dir)) {
		for (int i = 0; i < THREADS; i++) {
			snprintf(names[i], sizeof(names[i]), "storm%d", i);
			if (pthread_create(&threads[i], NULL, mark, names[i]) != 0)
				abort();
		}
		for (int i = 0; i < THREADS; i++)
			pthread_join(threads[i], NULL);
		gpuseg_disconnect(client);
	}
}

/* The eventfd that the daemon has passed: this process has no other. */
static int doorbell(void)
{
	for (int fd = 0; fd < DESCRIPTORS; fd++) {
		char link[32], kind[64] = "";

		snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
		if (readlink(link, kind, sizeof(kind) - 1) > 0 && strstr(kind, "eventfd") != NULL)
			return fd;
	}
	return -1;
}

static void *read_bell(void *of)
{
	const int fd = *(int *)of;
	unsigned long long rung;

	fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
	while (read(fd, &rung, sizeof(rung)) > 0)
		continue;
	return NULL;
}

static int bell(const char *dir)
{
	pthread_t reader;
	int fd;
	gpuseg_task *task = join(dir) ? open_task("bell") : NULL;

	fd = doorbell();
	if (task == NULL || fd < 0 || pthread_create(&reader, NULL, read_bell, &fd) != 0)
		return 1;
	while (goes_on()) {
		if (gpuseg_begin_try(task) >= 0) {
			atomic_fetch_add(&begun, 1);
			gpuseg_end(task);
		}
		pause_ms(1);
	}
	return 0;
}

int main(int argc, char **argv)
{
	struct timespec now;
	int status = 0;

	if (argc != 4)
		return 2;
	clock_gettime(CLOCK_MONOTONIC, &now);
	until_s = now.tv_sec + atol(argv[3]);
	if (strcmp(argv[1], "storm") == 0)
		storm(argv[2]);
	else
		status = bell(argv[2]);
	printf("%ld segments\n", atomic_load(&begun));
	fflush(stdout);
	if (strcmp(argv[1], "storm") != 0)
		_exit(status); /* the reader of the bell does not end */
	return begun > 0 ? status : 1;
}
