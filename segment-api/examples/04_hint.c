/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A task that knows when it will need the GPU gives a hint. Lower work is then disabled while the task still computes
 * on the host, and the segment begins without waiting for that.
 *
 *   ./04_hint [JOBS]
 */
#include <gpuseg.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define HOST_NS 2000000 /* duration of the host part */

static void spend(int64_t duration_ns)
{
	struct timespec ts = {.tv_sec = duration_ns / 1000000000, .tv_nsec = duration_ns % 1000000000};

	nanosleep(&ts, NULL);
}

int main(int argc, char **argv)
{
	struct gpuseg_connect_attr connect_attr = GPUSEG_CONNECT_ATTR_INIT;
	struct gpuseg_task_attr attr = GPUSEG_TASK_ATTR_INIT;
	int jobs = argc > 1 ? atoi(argv[1]) : 20, result;
	int64_t waited_ns = 0;
	gpuseg_client *client;
	gpuseg_task *task;

	connect_attr.flags = GPUSEG_CONNECT_UNMANAGED_OK;
	if (gpuseg_connect(&connect_attr, &client) < 0) {
		fprintf(stderr, "connect: %s\n", gpuseg_last_message(NULL));
		return 1;
	}
	attr.name = "lidar";
	attr.priority = 80;
	result = gpuseg_task_open(client, &attr, &task);
	for (int i = 0; i < jobs && result >= 0; i++) {
		int64_t asked_ns;

		gpuseg_hint(task, gpuseg_now_ns() + HOST_NS); /* advice, so a failure can be ignored */
		spend(HOST_NS);
		asked_ns = gpuseg_now_ns();
		result = gpuseg_begin(task);
		if (result < 0)
			break;
		waited_ns += gpuseg_now_ns() - asked_ns;
		spend(1000000);
		result = gpuseg_end(task);
	}
	if (result < 0)
		fprintf(stderr, "%s: %s\n", gpuseg_strerror(result), gpuseg_last_message(client));
	else if (jobs > 0)
		printf("%d segments, %" PRId64 " ns mean wait\n", jobs, waited_ns / jobs);
	gpuseg_disconnect(client);
	return result < 0;
}
