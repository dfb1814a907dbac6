/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A job with two GPU segments and host work between them: only the GPU parts are marked, so lower tasks use the GPU
 * while this one computes on the host.
 *
 *   ./02_two_segments [JOBS]
 */
#include <gpuseg.h>

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static void spend(int64_t duration_ns) /* in place of host or GPU work */
{
	struct timespec ts = {.tv_sec = duration_ns / 1000000000, .tv_nsec = duration_ns % 1000000000};

	nanosleep(&ts, NULL);
}

/* One segment: 0, or a negative result if it could not begin. */
static int segment(gpuseg_task *task, int64_t device_ns)
{
	int result = gpuseg_begin(task);

	if (result < 0)
		return result;
	spend(device_ns);
	return gpuseg_end_measured(task, device_ns); /* the daemon compares it with the analysis */
}

static int job(gpuseg_task *task)
{
	int result = gpuseg_job_release(task, 0);

	spend(1000000);
	if (result == 0)
		result = segment(task, 3000000); /* detect */
	spend(500000);
	if (result == 0)
		result = segment(task, 1000000); /* track */
	return result < 0 ? result : gpuseg_job_end(task);
}

int main(int argc, char **argv)
{
	struct gpuseg_connect_attr connect_attr = GPUSEG_CONNECT_ATTR_INIT;
	struct gpuseg_task_attr attr = GPUSEG_TASK_ATTR_INIT;
	int jobs = argc > 1 ? atoi(argv[1]) : 20;
	gpuseg_client *client;
	gpuseg_task *task;
	int result;

	connect_attr.flags = GPUSEG_CONNECT_UNMANAGED_OK;
	result = gpuseg_connect(&connect_attr, &client);
	if (result < 0) {
		fprintf(stderr, "connect: %s\n", gpuseg_last_message(NULL));
		return 1;
	}
	attr.name = "detector";
	attr.priority = 60;
	attr.deadline_ns = 50000000;
	result = gpuseg_task_open(client, &attr, &task);
	for (int i = 0; i < jobs && result == 0; i++)
		result = job(task);
	if (result < 0)
		fprintf(stderr, "%s: %s\n", gpuseg_strerror(result), gpuseg_last_message(client));
	else
		printf("%d jobs of two segments\n", jobs);
	gpuseg_disconnect(client);
	return result < 0;
}
