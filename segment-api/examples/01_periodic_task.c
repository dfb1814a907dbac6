/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A periodic task with one GPU segment per job.
 *
 *   ./01_periodic_task [JOBS]
 *
 * It also runs without a daemon, and says so. Then nothing is scheduled, and the marks cost almost nothing.
 */
#include <gpuseg.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define PERIOD_NS 20000000 /* 20 ms */
#define GPU_WORK_NS 2000000

static void sleep_until(int64_t time_ns)
{
	struct timespec ts = {.tv_sec = time_ns / 1000000000, .tv_nsec = time_ns % 1000000000};

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL) != 0)
		;
}

/* In place of launching kernels and waiting for them. */
static void use_the_gpu(void)
{
	sleep_until(gpuseg_now_ns() + GPU_WORK_NS);
}

static int failed(const char *what, int result, const gpuseg_client *client)
{
	fprintf(stderr, "%s: %s (%s)\n", what, gpuseg_strerror(result), gpuseg_last_message(client));
	return 1;
}

int main(int argc, char **argv)
{
	struct gpuseg_connect_attr connect_attr = GPUSEG_CONNECT_ATTR_INIT;
	struct gpuseg_task_attr attr = GPUSEG_TASK_ATTR_INIT;
	gpuseg_client *client;
	gpuseg_task *task;
	int64_t release_ns, worst_ns = 0;
	int jobs = argc > 1 ? atoi(argv[1]) : 50;
	int result;

	connect_attr.flags = GPUSEG_CONNECT_UNMANAGED_OK;
	result = gpuseg_connect(&connect_attr, &client);
	if (result < 0)
		return failed("connect", result, NULL);
	if (!gpuseg_is_managed(client))
		printf("no daemon: running unmanaged\n");

	attr.name = "periodic";
	attr.priority = 70;
	attr.period_ns = PERIOD_NS;
	result = gpuseg_task_open(client, &attr, &task);
	if (result < 0) {
		failed("open task", result, client);
		gpuseg_disconnect(client);
		return 1;
	}

	release_ns = gpuseg_now_ns();
	for (int job = 0; job < jobs && result >= 0; job++) {
		int64_t response_ns;

		sleep_until(release_ns);
		gpuseg_job_release(task, release_ns);
		result = gpuseg_begin(task);
		if (result < 0) {
			failed("begin", result, client);
			break;
		}
		use_the_gpu();
		gpuseg_end(task);
		gpuseg_job_end(task);
		response_ns = gpuseg_now_ns() - release_ns;
		if (response_ns > worst_ns)
			worst_ns = response_ns;
		release_ns += PERIOD_NS;
	}
	printf("%d jobs, worst response %" PRId64 " us of %d us\n", jobs, worst_ns / 1000, PERIOD_NS / 1000);
	gpuseg_disconnect(client);
	return result < 0;
}
