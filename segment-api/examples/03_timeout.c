/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Three ways to handle a GPU that is not granted in time: one task proceeds without the grant, one skips its frame, and
 * one only tries.
 *
 *   ./03_timeout [JOBS]
 */
#include <gpuseg.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

static gpuseg_task *open_task(gpuseg_client *client, const char *name, enum gpuseg_on_timeout on_timeout)
{
	struct gpuseg_task_attr attr = GPUSEG_TASK_ATTR_INIT;
	gpuseg_task *task;
	int result;

	attr.name = name;
	attr.priority = 40;
	attr.timeout_ns = 5000000; /* 5 ms */
	attr.on_timeout = on_timeout;
	result = gpuseg_task_open(client, &attr, &task);
	if (result < 0) {
		fprintf(stderr, "%s: %s\n", gpuseg_strerror(result), gpuseg_last_message(client));
		exit(1);
	}
	return task;
}

int main(int argc, char **argv)
{
	struct gpuseg_connect_attr connect_attr = GPUSEG_CONNECT_ATTR_INIT;
	int jobs = argc > 1 ? atoi(argv[1]) : 20, late = 0, skipped = 0, busy = 0;
	gpuseg_task *must_run, *may_skip;
	gpuseg_client *client;

	connect_attr.flags = GPUSEG_CONNECT_UNMANAGED_OK;
	if (gpuseg_connect(&connect_attr, &client) < 0) {
		fprintf(stderr, "connect: %s\n", gpuseg_last_message(NULL));
		return 1;
	}
	must_run = open_task(client, "brake", GPUSEG_ON_TIMEOUT_PROCEED);
	may_skip = open_task(client, "overlay", GPUSEG_ON_TIMEOUT_FAIL);
	for (int i = 0; i < jobs; i++) {
		int result = gpuseg_begin(must_run);

		if (result == GPUSEG_PROCEEDED)
			late++; /* the work was done, but unprotected */
		if (result >= 0)
			gpuseg_end(must_run);

		result = gpuseg_begin(may_skip);
		if (result == -ETIMEDOUT)
			skipped++;
		else if (result >= 0)
			gpuseg_end(may_skip);

		result = gpuseg_begin_try(may_skip); /* never waits */
		if (result == -EAGAIN)
			busy++;
		else if (result >= 0)
			gpuseg_end(may_skip);
	}
	printf("%d jobs: %d went on without a grant, %d skipped, %d found the GPU busy\n", jobs, late, skipped, busy);
	gpuseg_disconnect(client);
	return 0;
}
