/* SPDX-License-Identifier: Apache-2.0 */
/* test_expected.c - gpuseg_expected(): who waits is told, also by the next daemon. Refusals first. */
#include <errno.h>
#include <sys/wait.h>

#include "../src/platform.h"
#include "check.h"
#include "fixture.h"
#include "gpuseg.h"

#define OLD_MINOR 9
#define PATIENCE_NS (30 * NS_PER_S)
#define SHORT_NS (5 * NS_PER_MS)

static struct fake_daemon daemon_;
static gpuseg_client *client;
static gpuseg_task *task;

static void open_task(const char *dir)
{
	struct gpuseg_connect_attr attr = GPUSEG_CONNECT_ATTR_INIT;
	struct gpuseg_task_attr task_attr = GPUSEG_TASK_ATTR_INIT;

	attr.dir = dir;
	attr.flags = GPUSEG_CONNECT_FAIL_IF_LOST;
	CHECK_EQ(gpuseg_connect(&attr, &client), 0);
	task_attr.name = "waits";
	task_attr.priority = 70;
	CHECK_EQ(gpuseg_task_open(client, &task_attr, &task), 0);
}

static void start(void)
{
	fake_daemon_start(&daemon_);
	open_task(daemon_.dir);
}

static void stop(void)
{
	CHECK_EQ(gpuseg_disconnect(client), 0);
	fake_daemon_stop(&daemon_);
}

TEST(should_refuse_a_negative_time)
{
	uint32_t seen = 0;

	start();
	CHECK_EQ(gpuseg_expected(task, &seen, -1), -EINVAL);
	CHECK_CONTAINS(gpuseg_last_message(client), "\"waits\": time to wait is -1 ns; give 0 or more");
	stop();
}

TEST(should_refuse_a_forked_child)
{
	int status;
	pid_t child;

	start();
	child = fork();
	CHECK(child >= 0);
	if (child == 0) {
		uint32_t seen = 0;

		_exit(gpuseg_expected(task, &seen, SHORT_NS) == -EOWNERDEAD ? 0 : 1);
	}
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK_EQ(status, 0);
	stop();
}

TEST(should_time_out_without_a_daemon)
{
	uint32_t seen = 0;
	int64_t began_ns;

	setenv("GPUSEG_UNMANAGED", "1", 1);
	open_task("/nonexistent");
	unsetenv("GPUSEG_UNMANAGED");
	began_ns = now_ns();
	CHECK_EQ(gpuseg_expected(task, &seen, SHORT_NS), -ETIMEDOUT);
	CHECK(now_ns() - began_ns >= SHORT_NS, "it returned early");
	CHECK_EQ(gpuseg_expected(task, &seen, 0), -ETIMEDOUT);
	CHECK_EQ(gpuseg_disconnect(client), 0);
}

TEST(should_not_ask_a_daemon_that_does_not_say_what_it_expects)
{
	uint32_t seen = 0;

	start();
	__atomic_store_n(&daemon_.session->version, GPUSEG_ABI_MAJOR << 16 | OLD_MINOR, __ATOMIC_RELEASE);
	CHECK_EQ(gpuseg_expected(task, &seen, SHORT_NS), -ETIMEDOUT);
	CHECK(!fake_daemon_expect(&daemon_, 0));
	stop();
}

TEST(should_tell_each_change_once)
{
	uint32_t seen = 0;

	start();
	CHECK(!fake_daemon_expect(&daemon_, 0), "nobody has asked");
	CHECK_EQ(gpuseg_expected(task, &seen, 0), -ETIMEDOUT);
	for (int i = 0; i < 3; i++) {
		CHECK(fake_daemon_expect(&daemon_, 0));
		CHECK_EQ(gpuseg_expected(task, &seen, PATIENCE_NS), 0);
		CHECK_EQ(gpuseg_expected(task, &seen, SHORT_NS), -ETIMEDOUT);
	}
	CHECK(fake_daemon_expect(&daemon_, 0));
	CHECK(fake_daemon_expect(&daemon_, 0));
	CHECK_EQ(gpuseg_expected(task, &seen, INT64_MAX), 0);
	CHECK_EQ(gpuseg_expected(task, &seen, 0), -ETIMEDOUT);
	stop();
}

static int told;  /* atomic: how often the thread was told */
static bool ends; /* atomic */

static void *waiter(void *arg)
{
	uint32_t seen = 0;

	(void)arg;
	while (!__atomic_load_n(&ends, __ATOMIC_ACQUIRE)) {
		const int ret = gpuseg_expected(task, &seen, 10 * NS_PER_S);

		CHECK_EQ(ret, 0);
		__atomic_fetch_add(&told, 1, __ATOMIC_RELEASE);
	}
	return NULL;
}

/* Until the thread is told once more; the daemon says it again and again, since the thread may not have asked yet. */
static void tell(void)
{
	const int before = __atomic_load_n(&told, __ATOMIC_ACQUIRE);
	const int64_t limit_ns = now_ns() + PATIENCE_NS;

	while (__atomic_load_n(&told, __ATOMIC_ACQUIRE) == before) {
		CHECK(now_ns() - limit_ns < 0);
		fake_daemon_expect(&daemon_, 0);
		sleep_ns(NS_PER_MS);
	}
}

static void await_managed(bool wanted)
{
	const int64_t limit_ns = now_ns() + PATIENCE_NS;

	while (gpuseg_is_managed(client) != wanted) {
		CHECK(now_ns() - limit_ns < 0);
		sleep_ns(NS_PER_MS);
	}
}

/* Under ThreadSanitizer, too: the task's thread switches to the next connection while another thread waits. */
TEST(should_follow_the_task_to_the_next_daemon)
{
	pthread_t thread;

	start();
	CHECK_EQ(pthread_create(&thread, NULL, waiter, NULL), 0);
	for (int i = 0; i < 3; i++) {
		const int64_t limit_ns = now_ns() + PATIENCE_NS;
		int ret;

		tell();
		fake_daemon_kill(&daemon_);
		await_managed(false);
		fake_daemon_follow(&daemon_);
		await_managed(true);
		while ((ret = gpuseg_begin_timed(task, NS_PER_S)) == -ENOTCONN) {
			CHECK(now_ns() - limit_ns < 0);
			sleep_ns(NS_PER_MS);
		}
		CHECK_EQ(ret, 0);
		CHECK_EQ(gpuseg_end(task), 0);
		tell();
	}
	__atomic_store_n(&ends, true, __ATOMIC_RELEASE);
	tell();
	CHECK_EQ(pthread_join(thread, NULL), 0);
	stop();
}

static const struct check_case cases[] = {
	CASE(should_refuse_a_negative_time),	CASE(should_refuse_a_forked_child),
	CASE(should_time_out_without_a_daemon), CASE(should_not_ask_a_daemon_that_does_not_say_what_it_expects),
	CASE(should_tell_each_change_once),	CASE(should_follow_the_task_to_the_next_daemon)};
CHECK_MAIN(cases)
