/* SPDX-License-Identifier: Apache-2.0 */
/* test_boost_limit.c - RLIMIT_RTPRIO alone permits a boost up to the limit, and none above it. */
#include <errno.h>
#include <sched.h>
#include <sys/resource.h>

#include "check.h"
#include "fixture.h"
#include "gpuseg.h"

#define CEILING 40
#define NOBODY 65534

TEST(should_need_no_more_than_the_resource_limit)
{
	const struct rlimit limit = {CEILING, CEILING};
	struct gpuseg_connect_attr connect = GPUSEG_CONNECT_ATTR_INIT;
	struct gpuseg_task_attr attr = GPUSEG_TASK_ATTR_INIT;
	static struct fake_daemon d;
	gpuseg_client *client;
	gpuseg_task *task;
	bool as_root;

	if (setrlimit(RLIMIT_RTPRIO, &limit) < 0)
		SKIP("RLIMIT_RTPRIO cannot be set to 40: needs CAP_SYS_RESOURCE, or a hard limit of 40 or more");
	fake_daemon_start(&d);
	connect.dir = d.dir;
	CHECK_EQ(gpuseg_connect(&connect, &client), 0);
	as_root = geteuid() == 0;
	CHECK(!as_root || seteuid(NOBODY) == 0);
	attr.name = "camera";
	attr.priority = 30;
	attr.boost_priority = CEILING + 1;
	CHECK_EQ(gpuseg_task_open(client, &attr, &task), -EPERM);
	attr.boost_priority = CEILING;
	CHECK_EQ(gpuseg_task_open(client, &attr, &task), 0);
	CHECK_EQ(sched_getscheduler(0), SCHED_OTHER);
	CHECK_EQ(gpuseg_begin(task), 0);
	CHECK_EQ(sched_getscheduler(0), SCHED_FIFO);
	CHECK_EQ(gpuseg_end(task), 0);
	CHECK_EQ(sched_getscheduler(0), SCHED_OTHER);
	CHECK(!as_root || seteuid(0) == 0);
	gpuseg_disconnect(client);
	fake_daemon_stop(&d);
}

static const struct check_case cases[] = {CASE(should_need_no_more_than_the_resource_limit)};
CHECK_MAIN(cases)
