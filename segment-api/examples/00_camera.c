/* SPDX-License-Identifier: Apache-2.0 */
#include <gpuseg.h>
#include <stdio.h>
#include <unistd.h>

static void detect_obstacles(void) /* launch your kernels here, and wait for them */
{
	usleep(4000);
}

int main(void)
{
	struct gpuseg_task_attr attr = GPUSEG_TASK_ATTR_INIT;
	gpuseg_client *client = NULL;
	gpuseg_task *task;

	attr.name = "camera";
	attr.priority = 70; /* 1..99, 99 is the highest; 0 is best effort */
	/* one job every 33 ms; the deadline is the period */
	attr.period_ns = 33 * 1000000;
	if (gpuseg_connect(NULL, &client) < 0 || gpuseg_task_open(client, &attr, &task) < 0) {
		fprintf(stderr, "camera: %s\n", gpuseg_last_message(client));
		return 1;
	}
	for (int job = 0; job < 100; job++) {
		gpuseg_job_release(task, gpuseg_now_ns());
		gpuseg_begin(task); /* returns at once if nothing of higher rank runs, else waits for the grant */
		detect_obstacles();
		gpuseg_end(task); /* never waits */
		gpuseg_job_end(task);
		usleep(29000);
	}
	gpuseg_disconnect(client);
	return 0;
}
