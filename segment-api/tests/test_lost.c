/* SPDX-License-Identifier: Apache-2.0 */
/* test_lost.c - a program whose daemon is lost goes on, and says so. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "../src/platform.h"
#include "check.h"
#include "fixture.h"
#include "gpuseg.h"
#include "intercept.h"

#define PATIENCE_NS (30 * NS_PER_S)

static struct fake_daemon d;
static gpuseg_client *client;

static pthread_mutex_t said_mutex = PTHREAD_MUTEX_INITIALIZER;
static char said[4096];

/* The library says its lines by it. */
static long intercept(long number, const long a[6])
{
	if (number != SYS_write || a[0] != STDERR_FILENO)
		return to_libc(number, a);
	pthread_mutex_lock(&said_mutex);
	snprintf(said + strlen(said), sizeof(said) - strlen(said), "%.*s", (int)a[2], (const char *)(uintptr_t)a[1]);
	pthread_mutex_unlock(&said_mutex);
	return a[2];
}

/* How often the library has said it. */
static int times_said(const char *what)
{
	int n = 0;

	pthread_mutex_lock(&said_mutex);
	for (const char *at = said; (at = strstr(at, what)) != NULL; at++)
		n++;
	pthread_mutex_unlock(&said_mutex);
	return n;
}

static void await_said(const char *what, int times)
{
	const int64_t limit_ns = now_ns() + PATIENCE_NS;

	while (times_said(what) < times) {
		CHECK(now_ns() - limit_ns < 0, "\"%s\" is not said in: %s", what, said);
		sleep_ns(NS_PER_MS);
	}
}

static gpuseg_task *open_task(const char *name)
{
	struct gpuseg_task_attr attr = GPUSEG_TASK_ATTR_INIT;
	gpuseg_task *task;

	attr.name = name;
	attr.priority = 70;
	CHECK_EQ(gpuseg_task_open(client, &attr, &task), 0);
	return task;
}

static void start_with(uint32_t flags)
{
	struct gpuseg_connect_attr attr = GPUSEG_CONNECT_ATTR_INIT;

	said[0] = 0;
	fake_daemon_start(&d);
	attr.dir = d.dir;
	attr.name = "robot";
	attr.flags = flags;
	CHECK_EQ(gpuseg_connect(&attr, &client), 0);
}

static void stop(void)
{
	CHECK_EQ(gpuseg_disconnect(client), 0);
	fake_daemon_stop(&d);
}

static struct gpuseg_counters counters(void)
{
	struct gpuseg_counters c = {.size = sizeof(c)};

	CHECK_EQ(gpuseg_get_counters(client, &c), 0);
	return c;
}

static void job(gpuseg_task *task)
{
	CHECK_EQ(gpuseg_hint(task, gpuseg_now_ns()), 0);
	CHECK_EQ(gpuseg_job_release(task, 0), 0);
	CHECK_EQ(gpuseg_begin(task), 0);
	CHECK_EQ(gpuseg_end(task), 0);
	CHECK_EQ(gpuseg_job_end(task), 0);
}

/* Jobs until one of them is not unmanaged any more. */
static void jobs_until_managed(gpuseg_task *task)
{
	const int64_t limit_ns = now_ns() + PATIENCE_NS;
	struct gpuseg_counters before, after;

	do {
		CHECK(now_ns() - limit_ns < 0);
		sleep_ns(NS_PER_MS);
		before = counters();
		job(task);
		after = counters();
	} while (after.unmanaged > before.unmanaged);
}

TEST(should_go_on_until_another_daemon_has_started)
{
	gpuseg_task *camera, *late;

	start_with(0);
	camera = open_task("camera");
	job(camera);
	CHECK_EQ(counters().unmanaged, 0);
	for (int i = 1; i <= 2; i++) {
		const uint64_t unmanaged = counters().unmanaged;
		char gone[64];

		snprintf(gone, sizeof(gone), "daemon %d is gone; \"robot\" runs unmanaged until", d.status->daemon_pid);
		fake_daemon_kill(&d);
		await_said(gone, i);
		CHECK_EQ(gpuseg_is_managed(client), 0);
		job(camera);
		job(camera);
		CHECK_EQ(gpuseg_begin(camera), 0);
		CHECK_EQ(gpuseg_begin(camera), -EALREADY);
		CHECK_EQ(gpuseg_end(camera), 0);
		CHECK_EQ(gpuseg_end(camera), -EINVAL);
		late = open_task("late");
		job(late);
		CHECK_EQ(counters().unmanaged, unmanaged + 4);
		CHECK_EQ(gpuseg_task_close(open_task("short")), 0);
		CHECK_EQ(times_said("is gone"), i);
		fake_daemon_follow(&d);
		jobs_until_managed(camera);
		jobs_until_managed(late);
		CHECK_EQ(d.opens, 2);
		await_said("another daemon schedules \"robot\" now", i);
		CHECK_EQ(gpuseg_task_close(late), 0);
	}
	stop();
}

static void *kill_when_asked(void *arg)
{
	(void)arg;
	CHECK(fake_daemon_wait(&d, 1, NULL));
	fake_daemon_kill(&d);
	return NULL;
}

TEST(should_go_on_with_a_begin_that_waited_for_the_daemon)
{
	struct gpuseg_task_status status = {.size = sizeof(status)};
	pthread_t killer;
	gpuseg_task *task;

	start_with(0);
	task = open_task("camera");
	fake_daemon_grants(&d, FAKE_IGNORE, 0);
	CHECK_EQ(pthread_create(&killer, NULL, kill_when_asked, NULL), 0);
	CHECK_EQ(gpuseg_begin(task), 0);
	pthread_join(killer, NULL);
	CHECK_EQ(gpuseg_end(task), 0);
	CHECK_EQ(counters().unmanaged, 1);
	CHECK_EQ(gpuseg_get_task_status(task, &status), 0);
	CHECK_EQ(status.tickets, 1);
	CHECK_EQ(status.task_id, 0);
	stop();
}

TEST(should_end_what_was_begun_before)
{
	gpuseg_task *task;

	start_with(0);
	task = open_task("camera");
	CHECK_EQ(gpuseg_begin(task), 0);
	fake_daemon_kill(&d);
	await_said("is gone", 1);
	CHECK_EQ(gpuseg_end(task), 0);
	CHECK_EQ(counters().unmanaged, 0);
	stop();
}

TEST(should_go_on_with_a_task_that_the_next_daemon_refuses)
{
	gpuseg_task *task;

	start_with(0);
	task = open_task("camera");
	fake_daemon_kill(&d);
	d.refuse_type = GPUSEG_MSG_TASK_OPEN;
	d.refuse_status = -EACCES;
	fake_daemon_follow(&d);
	await_said("task \"camera\" runs unmanaged", 1);
	await_said("another daemon schedules \"robot\" now", 1);
	job(task);
	CHECK_EQ(counters().unmanaged, 1);
	CHECK_EQ(times_said("runs unmanaged until"), 1);
	stop();
}

TEST(should_go_on_for_ever_when_it_is_to_connect_once)
{
	gpuseg_task *task;

	start_with(GPUSEG_CONNECT_ONCE);
	task = open_task("camera");
	fake_daemon_kill(&d);
	await_said("is gone; \"robot\" runs unmanaged\n", 1);
	fake_daemon_follow(&d);
	sleep_ns(300 * NS_PER_MS);
	job(task);
	CHECK_EQ(counters().unmanaged, 1);
	CHECK_EQ(d.opens, 0);
	stop();
}

/* The choice of a program that would rather stop. */
TEST(should_fail_where_it_is_asked_to)
{
	gpuseg_task *task, *late;
	struct gpuseg_task_attr attr = GPUSEG_TASK_ATTR_INIT;
	const int64_t limit_ns = now_ns() + PATIENCE_NS;

	start_with(GPUSEG_CONNECT_FAIL_IF_LOST);
	task = open_task("camera");
	fake_daemon_kill(&d);
	while (gpuseg_is_managed(client)) {
		CHECK(now_ns() - limit_ns < 0);
		sleep_ns(NS_PER_MS);
	}
	CHECK_EQ(gpuseg_job_release(task, 0), -ENOTCONN);
	CHECK_EQ(gpuseg_begin(task), -ENOTCONN);
	attr.name = "late";
	CHECK_EQ(gpuseg_task_open(client, &attr, &late), -ENOTCONN);
	CHECK_EQ(counters().unmanaged, 0);
	CHECK_EQ(times_said("gpuseg"), 0);
	stop();
}

/* It has done what it must not, so it is told, and does not go on as if nothing had been. */
TEST(should_not_go_on_when_the_daemon_dropped_it)
{
	gpuseg_task *task;

	start_with(0);
	task = open_task("camera");
	fake_daemon_poison(&d, GPUSEG_POISON_SEQUENCE);
	CHECK_EQ(gpuseg_begin(task), -EPROTO);
	CHECK_EQ(times_said("gpuseg"), 0);
	stop();
}

static const struct check_case cases[] = {
	CASE(should_go_on_until_another_daemon_has_started),
	CASE(should_go_on_with_a_begin_that_waited_for_the_daemon),
	CASE(should_end_what_was_begun_before),
	CASE(should_go_on_with_a_task_that_the_next_daemon_refuses),
	CASE(should_go_on_for_ever_when_it_is_to_connect_once),
	CASE(should_fail_where_it_is_asked_to),
	CASE(should_not_go_on_when_the_daemon_dropped_it),
};

CHECK_MAIN(cases)
