/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_append - the cost of begin and end for their caller.
 *
 * The daemon is the one of the tests, in a thread of this process. It polls without pause, so that its reads take the
 * cache lines away as those of the real dispatcher do, or it reads every 200 us. Each sample includes the two clock
 * reads around the call, whose own cost is printed. The daemon rolls the queue between batches.
 */
#include "bench.h"
#include "check.h"
#include "fixture.h"
#include "gpuseg.h"

#define BATCH 5000
#define BATCHES 20
#define N (BATCH * BATCHES)

static int64_t begins[N], ends[N], clocks[N];

static void measure(bool busy_poll, bool optimistic)
{
	struct gpuseg_connect_attr connect_attr = GPUSEG_CONNECT_ATTR_INIT;
	struct gpuseg_task_attr attr = GPUSEG_TASK_ATTR_INIT;
	static struct fake_daemon d;
	gpuseg_client *client;
	gpuseg_task *task;
	char label[64];
	size_t i = 0;

	fake_daemon_start_sized(&d, 4 << 20, busy_poll);
	connect_attr.dir = d.dir;
	CHECK_EQ(gpuseg_connect(&connect_attr, &client), 0);
	attr.name = "bench";
	attr.priority = 50;
	attr.spin_count = 100000;
	CHECK_EQ(gpuseg_task_open(client, &attr, &task), 0);
	fake_daemon_pregrant(&d, 0, optimistic);
	for (int batch = 0; batch < BATCHES; batch++) {
		for (int j = 0; j < BATCH; j++, i++) {
			int64_t t0 = now_ns(), t1, t2;

			CHECK_EQ(gpuseg_begin(task), 0);
			t1 = now_ns();
			CHECK_EQ(gpuseg_end(task), 0);
			t2 = now_ns();
			begins[i] = t1 - t0;
			ends[i] = t2 - t1;
			clocks[i] = now_ns() - t2;
		}
		CHECK(fake_daemon_wait(&d, 2 * i, NULL));
		fake_daemon_roll(&d, true);
	}
	snprintf(label, sizeof(label), "%s begin, daemon %s", optimistic ? "optimistic" : "granted",
		 busy_poll ? "polling" : "reading each 200 us");
	bench_report(label, begins, N);
	bench_report("  end", ends, N);
	bench_report("  (clock read, contained in each)", clocks, N);
	gpuseg_disconnect(client);
	fake_daemon_stop(&d);
}

int main(void)
{
	alarm(60);
	measure(false, true);
	measure(true, true);
	measure(true, false);
	return 0;
}
