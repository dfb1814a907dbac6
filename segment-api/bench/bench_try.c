/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_try - the cost of a gpuseg_begin_try() that is not granted. A polling program makes many of them.
 *
 * Measures the whole call (two appends, a spin of 200 polls, the message), the storing of the message alone, and the
 * reading of the message with gpuseg_last_message(). Each sample includes two clock reads.
 */
#include <errno.h>

#include "bench.h"
#include "check.h"
#include "fixture.h"
#include "gpuseg.h"
#include "internal.h"

#define BATCH 5000
#define BATCHES 4
#define N (BATCH * BATCHES)

static int64_t calls[N], notes[N], reads[N];

int main(void)
{
	struct gpuseg_connect_attr connect_attr = GPUSEG_CONNECT_ATTR_INIT;
	struct gpuseg_task_attr attr = GPUSEG_TASK_ATTR_INIT;
	static struct fake_daemon d;
	gpuseg_client *client;
	gpuseg_task *task;
	size_t i = 0;

	alarm(60);
	fake_daemon_start_sized(&d, 4 << 20, false);
	connect_attr.dir = d.dir;
	CHECK_EQ(gpuseg_connect(&connect_attr, &client), 0);
	attr.name = "poller";
	attr.priority = 50;
	CHECK_EQ(gpuseg_task_open(client, &attr, &task), 0);
	fake_daemon_grants(&d, FAKE_IGNORE, 0);
	for (int batch = 0; batch < BATCHES; batch++) {
		for (int j = 0; j < BATCH; j++, i++) {
			int64_t t0 = now_ns(), t1, t2;

			CHECK_EQ(gpuseg_begin_try(task), -EAGAIN);
			t1 = now_ns();
			CHECK_EQ(fail_segment(client, -EAGAIN, i, 1), -EAGAIN);
			t2 = now_ns();
			calls[i] = t1 - t0;
			notes[i] = t2 - t1;
			CHECK(*gpuseg_last_message(client));
			reads[i] = now_ns() - t2;
		}
		CHECK(fake_daemon_wait(&d, 2 * i, NULL));
		fake_daemon_roll(&d, true);
	}
	bench_report("begin_try, not granted", calls, N);
	bench_report("  its message: noted", notes, N);
	bench_report("  its message: read", reads, N);
	gpuseg_disconnect(client);
	fake_daemon_stop(&d);
	return 0;
}
